use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Tool;
use crate::text::Location;

rule! {
    /// the callback of an :async tool among its arguments
    ///
    /// The callback is handed in first by whoever runs the tool. Among `:args` it is asked of the model, which has none to give, and the function is
    /// called with two.
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

pub(in crate::spec) fn check(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let Some(first) = tool.arguments.first().filter(|_| tool.is_async) else { return };
    if matches!(first.name.value.as_str(), "callback" | "cb") {
        let at = Location { source: tool.source, span: first.name.span };
        let message = "the callback of an `:async` tool is no argument of the model's";
        findings.push(Diagnostic::new(&CALLBACK_ARGUMENT, at, message).note("leave it out of `:args`"));
    }
}
