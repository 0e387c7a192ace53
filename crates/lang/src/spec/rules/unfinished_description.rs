use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Tool;
use crate::text::Location;

rule! {
    /// an unfinished description
    ///
    /// The description is sent unchanged, and the model has to guess the purpose of the tool.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "TODO: say what it does")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the current time.")
    /// ```
    pub(crate) UNFINISHED_DESCRIPTION, "DT119", "unfinished-description", Warning
}

/// Marks at the start of an unfinished description.
const MARKS: [&str; 6] = ["TODO", "FIXME", "TBD", "XXX", "Lorem ipsum", "..."];

pub(in crate::spec) fn check(tool: &Tool) -> Option<Diagnostic> {
    let description = tool.description.value.trim();
    let mark = MARKS.into_iter().find(|mark| {
        let rest = description.strip_prefix(mark);
        // `TODOs of the project` is a description.
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric) && !is_list_of(rest))
    })?;
    let at = Location { source: tool.source, span: tool.description.span };
    let message = format!("the description of `{}` is unfinished: `{mark}`", tool.name.value);
    Some(Diagnostic::new(&UNFINISHED_DESCRIPTION, at, message))
}

/// Whether the mark is a part of the description, as in `TODO entries of the agenda`.
fn is_list_of(rest: &str) -> bool {
    rest.starts_with(' ') && rest.chars().nth(1).is_some_and(char::is_lowercase)
}
