use deftool_lang::diagnostic::{Diagnostic, Label, rule};
use deftool_lang::text::Location;

rule! {
    /// a duplicate name
    ///
    /// Tool names in a request must be unique; OpenAI and Anthropic reject duplicates. The first definition is used,
    /// later ones are ignored. In Emacs Lisp, tools of different categories may have the same name; a request can only
    /// contain one of them. A project has at most one worker with `:default t`.
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

/// `what`: `tool`, `worker` or `default worker`.
pub(crate) fn finding(at: Location, what: &str, name: &str, first: Location) -> Diagnostic {
    let mut finding = Diagnostic::new(&DUPLICATE_NAME, at, format!("duplicate {what} `{name}`"));
    finding.labels.push(Label { location: first, message: String::from("first defined here") });
    finding
}
