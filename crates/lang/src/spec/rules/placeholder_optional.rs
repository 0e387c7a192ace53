use crate::diagnostic::{Diagnostic, Severity, rule};
use crate::spec::{CommandPlaceholder, Tool, ToolCommand};
use crate::text::Location;

rule! {
    /// a placeholder that does not agree with :optional
    ///
    /// If an optional argument is absent, the word of its placeholder `{name?}` is dropped. The question mark shows this
    /// in the command, so it is required for optional arguments and misleading for others.
    ///
    /// ```eld fails
    /// (deftool :name "list" :description "List a folder." :command ["ls" "{folder}"]
    ///  :args ((:name "folder" :description "The folder." :type string :optional t)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "list" :description "List a folder." :command ["ls" "{folder?}"]
    ///  :args ((:name "folder" :description "The folder." :type string :optional t)))
    /// ```
    pub(crate) PLACEHOLDER_OPTIONAL, "DT144", "placeholder-optional", Error
}

pub(in crate::spec) fn check(tool: &Tool, command: &ToolCommand, findings: &mut Vec<Diagnostic>) {
    for template in command.templates() {
        for placeholder in template.value.placeholders() {
            let name = &placeholder.name;
            let mut arguments = tool.arguments.iter();
            let Some(argument) = arguments
                .find(|argument| argument.name.value == *name && argument.optional != placeholder.optional)
            else {
                continue;
            };
            let message = if argument.optional {
                format!("`{name}` is optional, so a call may have no value for `{placeholder}`")
            } else {
                format!("`{name}` is required, so `{placeholder}` always has a value")
            };
            let meant = CommandPlaceholder { name: name.clone(), optional: argument.optional };
            let at = Location { source: tool.source, span: template.span };
            let written = super::quoted(&template.value.renamed(name, &meant).to_string());
            let mut finding = Diagnostic::new(&PLACEHOLDER_OPTIONAL, at, message).fixed_by(
                format!("write `{meant}`"),
                at.span,
                written,
            );
            if !argument.optional {
                finding.severity = Severity::Warning;
            }
            findings.push(finding);
        }
    }
}
