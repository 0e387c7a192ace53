use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{CommandPlaceholder, Tool, ToolCommand, nearest};
use crate::text::Location;

rule! {
    /// a placeholder for an unknown argument
    ///
    /// `{name}` in `:command` and `:stdin` stands for the value of an argument in `:args`. For literal braces, write `{{`
    /// and `}}`.
    ///
    /// ```eld fails
    /// (deftool :name "count" :description "Count words." :command ["wc" "-w" "{fiel}" "{file}"]
    ///  :args ((:name "file" :description "The file." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "count" :description "Count words." :command ["wc" "-w" "{file}"]
    ///  :args ((:name "file" :description "The file." :type string)))
    /// ```
    pub(crate) UNKNOWN_PLACEHOLDER, "DT142", "unknown-placeholder", Error
}

/// Maximum number of suggestions for one tool, to limit their cost.
const MAX_SUGGESTIONS: usize = 20;

pub(in crate::spec) fn check(tool: &Tool, command: &ToolCommand, findings: &mut Vec<Diagnostic>) {
    let names = || tool.arguments.iter().map(|argument| argument.name.value.as_str());
    let placeholders = command
        .templates()
        .flat_map(|template| template.value.placeholders().map(move |placeholder| (template, placeholder)));
    let unknown = placeholders.filter(|(_, placeholder)| !names().any(|name| name == placeholder.name));
    for (index, (template, placeholder)) in unknown.enumerate() {
        let at = Location { source: tool.source, span: template.span };
        let message = format!("the tool has no argument `{}` for `{placeholder}`", placeholder.name);
        let finding = Diagnostic::new(&UNKNOWN_PLACEHOLDER, at, message);
        let near = (index < MAX_SUGGESTIONS).then(|| nearest(&placeholder.name, names())).flatten();
        findings.push(match near {
            Some(near) => {
                let meant = CommandPlaceholder { name: near.to_owned(), optional: placeholder.optional };
                let written = template.value.renamed(&placeholder.name, &meant).to_string();
                finding.did_you_mean(at.span, super::quoted(&written))
            }
            None => finding.note("for literal braces, write `{{` and `}}`"),
        });
    }
}
