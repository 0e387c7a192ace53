use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{CommandInput, CommandPlaceholder, Tool, ToolCommand};
use crate::text::Location;

rule! {
    /// an argument that :command does not use
    ///
    /// The model writes a value for the argument, but the program does not receive it: no word and no `:stdin` has its
    /// placeholder. `:stdin json` passes all arguments.
    ///
    /// ```eld fails
    /// (deftool :name "count" :description "Count words." :command ["wc" "{file}"]
    ///  :args ((:name "file" :description "The file." :type string)
    ///         (:name "what" :description "What to count." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "count" :description "Count words." :command ["wc" "--{what}" "{file}"]
    ///  :args ((:name "file" :description "The file." :type string)
    ///         (:name "what" :description "What to count." :type string)))
    /// ```
    pub(crate) UNUSED_ARGUMENT, "DT145", "unused-argument", Warning
}

pub(in crate::spec) fn check(tool: &Tool, command: &ToolCommand, findings: &mut Vec<Diagnostic>) {
    if command.stdin == Some(CommandInput::Json) {
        return;
    }
    for argument in &tool.arguments {
        let name = &argument.name.value;
        let mut placeholders = command.templates().flat_map(|template| template.value.placeholders());
        if !placeholders.any(|placeholder| placeholder.name == *name) {
            let at = Location { source: tool.source, span: argument.name.span };
            let placeholder = CommandPlaceholder { name: name.clone(), optional: argument.optional };
            let message = format!("`:command` does not use the argument `{name}`");
            findings.push(Diagnostic::new(&UNUSED_ARGUMENT, at, message).note(format!(
                "write `{placeholder}` in a word, or pass all arguments with `:stdin json`"
            )));
        }
    }
}
