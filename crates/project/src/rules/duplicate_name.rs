use deftool_lang::diagnostic::{Diagnostic, Label, rule};
use deftool_lang::text::Location;

rule! {
    /// a duplicate name
    ///
    /// Tool names in a request must be unique; OpenAI and Anthropic reject duplicates. The first definition is used,
    /// later ones are ignored. gptel allows the same name in different categories, but one request cannot contain both.
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
    pub DUPLICATE_NAME, "DT111", "duplicate-name", Error
}

/// `what`: `tool` or `worker`. `categories`: the categories of both tools, if they differ.
pub(crate) fn finding(
    at: Location,
    what: &str,
    name: &str,
    first: Location,
    categories: Option<(&str, &str)>,
) -> Diagnostic {
    let mut finding = Diagnostic::new(&DUPLICATE_NAME, at, format!("duplicate {what} `{name}`"));
    finding.labels.push(Label { location: first, message: String::from("first defined here") });
    match categories {
        Some((one, other)) => finding.note(format!(
            "gptel allows it, because the categories \"{one}\" and \"{other}\" differ; an API request cannot contain both"
        )),
        None => finding,
    }
}
