use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{Argument, Json, JsonKind};
use crate::text::{Location, SourceId, Span};

rule! {
    /// an argument that is optional only in its description
    ///
    /// Arguments are required unless they have `:optional t`, regardless of the description. The model must pass a
    /// required argument in every call, and makes up a value if it has none.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Optional: an x." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :optional t)))
    /// ```
    pub(crate) OPTIONAL_IN_WORDS, "DT251", "optional-in-words", Warning
}

pub(in crate::spec) fn check(source: SourceId, argument: &Argument, findings: &mut Vec<Diagnostic>) {
    let Some(Json { span, kind: JsonKind::String(text) }) = argument.keyword("description") else { return };
    if argument.optional || !is_marked_optional(text) {
        return;
    }
    let message = format!("the description of `{}` marks it as optional, but it is required without `:optional t`", argument.name.value);
    let end = Span { start: span.end, end: span.end };
    findings.push(
        Diagnostic::new(&OPTIONAL_IN_WORDS, Location { source, span: *span }, message)
            .maybe_fixed_by("add `:optional t`", end, " :optional t"),
    );
}

/// Matches only unambiguous phrases: "Optional …", "… (optional)".
fn is_marked_optional(text: &str) -> bool {
    const WORD: &str = "optional";
    let starts = |text: &str| text.get(..WORD.len()).is_some_and(|start| start.eq_ignore_ascii_case(WORD));
    let trimmed = text.trim_start_matches(['(', '[', ' ', '\n']);
    let ends_there = |text: &str| {
        text.get(WORD.len()..).and_then(|rest| rest.chars().next()).is_none_or(|next| !next.is_alphanumeric())
    };
    (starts(trimmed) && ends_there(trimmed)) || text.contains("(optional)") || text.contains("(Optional)")
}
