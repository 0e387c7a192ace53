use crate::diagnostic::{Diagnostic, Severity, rule};
use crate::spec::Tool;
use crate::text::Location;

rule! {
    /// the callback of an :async tool in its argument list
    ///
    /// The caller passes the callback as the first argument. If `:args` contains the callback too, the model has to
    /// pass a value for it, and the function receives one argument too many.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :async t :args ((:name "callback" :description "Called with it." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :async t :args ())
    /// ```
    pub(crate) CALLBACK_ARGUMENT, "DT239", "callback-argument", Warning
}

/// `findings` ends with the findings for the tool's form.
pub(in crate::spec) fn check(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let Some(first) = tool.arguments.first().filter(|_| tool.is_async) else { return };
    if matches!(first.name.value.as_str(), "callback" | "cb") {
        let at = Location { source: tool.source, span: first.name.span };
        let message = "the callback of an `:async` tool is not an argument for the model";
        let mut finding = Diagnostic::new(&CALLBACK_ARGUMENT, at, message).note("remove it from `:args`");
        // Other findings for this argument, such as `:type function`, are dropped: the argument is to be removed.
        let of_it = |other: &Diagnostic| {
            let start = other.primary.span.start;
            (first.span.start..first.span.end).contains(&start)
        };
        let start = findings.iter().rposition(|other| !is_in_tool(tool, other)).map_or(0, |index| index + 1);
        let own = findings.split_off(start.min(findings.len()));
        let (inside, outside): (Vec<_>, Vec<_>) = own.into_iter().partition(of_it);
        findings.extend(outside);
        finding.severity = inside.iter().map(|other| other.severity).fold(finding.severity, Severity::max);
        findings.push(finding);
    }
}

fn is_in_tool(tool: &Tool, finding: &Diagnostic) -> bool {
    (tool.span.start..tool.span.end).contains(&finding.primary.span.start)
}
