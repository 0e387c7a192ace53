use crate::diagnostic::{Diagnostic, Label, rule};
use crate::text::Location;

rule! {
    /// two definitions of one name
    ///
    /// A request holds each name once; OpenAI and Anthropic refuse one with two. The first definition counts, the second is left
    /// out. gptel keeps tools of several categories apart and takes both, until a request sends them together.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// (deftool :name "now" :description "Tell the date.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    pub(crate) DUPLICATE_NAME, "DT111", "duplicate-name", Error
}

/// `what`: in the plural; `categories`: those of both, where they differ.
pub(in crate::project) fn finding(
    at: Location,
    what: &str,
    name: &str,
    first: Location,
    categories: Option<(&str, &str)>,
) -> Diagnostic {
    let mut finding = Diagnostic::new(&DUPLICATE_NAME, at, format!("two {what} called `{name}`"));
    finding.labels.push(Label { location: first, message: String::from("first defined here") });
    match categories {
        Some((one, other)) => finding.note(format!(
            "gptel keeps the categories \"{one}\" and \"{other}\" apart; a request to an API cannot hold both tools"
        )),
        None => finding,
    }
}
