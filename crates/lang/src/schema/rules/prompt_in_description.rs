use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an ask whose prompt is in the description of the tool
    ///
    /// The description is sent to the model. With the prompt in it, word for word, the ask shows only that the model can
    /// copy an example, and not that it uses the tool for other prompts.
    ///
    /// ```eld fails
    /// (defproject :preview (asks))
    /// (deftool :name "now" :description "Tell the time, as for \"What time is it?\" or \"Is it late?\""
    ///     :asks [("What time is it?" :call t)])
    /// ```
    ///
    /// ```eld repaired
    /// (defproject :preview (asks))
    /// (deftool :name "now" :description "Tell the time, as for \"What time is it?\" or \"Is it late?\""
    ///     :asks [("How long is it until noon?" :call t)])
    /// ```
    pub(crate) PROMPT_IN_DESCRIPTION, "DT262", "prompt-in-description", Warning
}

/// `tool` is the tool with this description.
pub(in crate::schema) fn finding(at: Location, tool: &str) -> Diagnostic {
    Diagnostic::new(&PROMPT_IN_DESCRIPTION, at, format!("the description of `{tool}` contains this prompt"))
        .note("the model can copy the answer; write another prompt")
}
