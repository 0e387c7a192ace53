use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Tool;
use crate::text::Location;

rule! {
    /// a description that OpenAI refuses for its length
    ///
    /// Some models of OpenAI answer a function description of more than 1,024 characters with an error for the whole request
    /// ("string too long. Expected a string with maximum length 1024", seen from 2024 to 2025); others take it. Every
    /// request carries it, so it also costs.
    ///
    /// ```eld fails
    /// (deftool :name "long" :description "Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC. Tell the current time of a city, with its offset from UTC.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "long" :description "Tell the current time of a city, with its offset from UTC.")
    /// ```
    pub(crate) LONG_DESCRIPTION, "DT120", "long-description", Warning
}

const MOST: usize = 1024;

pub(in crate::spec) fn check(tool: &Tool) -> Option<Diagnostic> {
    let length = tool.description.value.chars().count();
    if length <= MOST {
        return None;
    }
    let at = Location { source: tool.source, span: tool.description.span };
    let name = &tool.name.value;
    let message = format!("the description of `{name}` has {length} characters; some OpenAI models take {MOST}");
    Some(
        Diagnostic::new(&LONG_DESCRIPTION, at, message)
            .note("move what belongs to one argument into that argument's `:description`"),
    )
}
