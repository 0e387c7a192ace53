//! Values in `:asks` and `defask`.

use super::{WRONG_VALUE, finding};
use crate::diagnostic::{Diagnostic, Edit};
use crate::spec::reference::PATTERNS;
use crate::spec::rules::{as_vector, unknown_name};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, Span};

/// What `:call` of an ask takes.
pub(in crate::spec) const CALL: &str = "arguments such as `(:city \"Oslo\")`, t or nil";

/// What `:call` of an element of `:calls` takes.
pub(in crate::spec) const EXPECTED_CALL: &str = "arguments such as `(:city \"Oslo\")`, or t for any";

/// What `:call` of an element of `:history` takes.
pub(in crate::spec) const PAST_CALL: &str = "arguments such as `(:city \"Oslo\")`";

/// Reports a value that is not a vector of lists.
pub(in crate::spec) fn entries(at: Location, key: &str, expected: &str, found: &Datum) -> Diagnostic {
    let DatumKind::List(items) = &found.kind else { return finding(at, key, expected, found.describe()) };
    match items.first().map(|first| &first.kind) {
        Some(DatumKind::String(_) | DatumKind::Symbol(_)) => {
            let edit = |at: u32, bracket: &str| Edit {
                span: Span { start: at, end: at },
                replacement: bracket.to_owned(),
            };
            let edits = vec![edit(at.span.start, "["), edit(at.span.end, "]")];
            finding(at, key, expected, "a single one").fixed_by_edits("wrap it in brackets", edits)
        }
        Some(DatumKind::Keyword(_)) => finding(at, key, expected, "a single plist"),
        Some(_) | None => as_vector(finding(at, key, expected, "a list"), found),
    }
}

/// Reports a value of `:call` that has another form than those in `expected`.
pub(in crate::spec) fn call(at: Location, expected: &str, found: &Datum) -> Diagnostic {
    let found_word = match &found.kind {
        DatumKind::Symbol(word) => format!("`{word}`"),
        _ => found.describe().to_owned(),
    };
    let finding = finding(at, "call", expected, &found_word);
    match &found.kind {
        DatumKind::Symbol(word) if word == "none" && expected == CALL => finding.did_you_mean(at.span, "nil"),
        DatumKind::List(items) if items.is_empty() => {
            finding.note("if the model should call no tool, write `:call none` in place of `:calls`")
        }
        DatumKind::List(items) if matches!(items.first(), Some(first) if is_pattern(first)) => {
            finding.note("write it as the value of an argument: `:call (:city (any \"Oslo\" \"Bergen\"))`")
        }
        _ => finding,
    }
}

fn is_pattern(head: &Datum) -> bool {
    matches!(&head.kind, DatumKind::Symbol(word) if PATTERNS.iter().any(|pattern| pattern.head == word))
}

/// Reports `:calls []`.
pub(in crate::spec) fn no_calls(at: Location, expected: &str) -> Diagnostic {
    finding(at, "calls", expected, "none").note("if the model should call no tool, write `:call none`")
}

/// Reports `:call none` beside `:calls`.
pub(in crate::spec) fn both(at: Location) -> Diagnostic {
    Diagnostic::new(&WRONG_VALUE, at, "`:call none` excludes `:calls`").note("remove one of the two")
}

/// Reports a list that begins with a symbol, `word` at `head`, and stands for no values.
pub(in crate::spec) fn pattern(at: Location, word: &str, head: Location) -> Diagnostic {
    let takes = match word {
        "any" => "`any` takes at least one value",
        "optional" => "`optional` takes one value",
        "schema" => "`schema` takes the keys of a JSON Schema: `(schema :type string)`",
        _ => {
            let message = format!("unknown form `({word} …)`");
            let known = PATTERNS.map(|pattern| pattern.head);
            let finding = unknown_name::finding(head, message, word, known, str::to_owned);
            return finding.note(
                "a list that begins with a symbol is `(any A B …)`, `(optional A)` or `(schema :type …)`; \
                 an object is a plist `(:key value)`, an array a vector",
            );
        }
    };
    Diagnostic::new(&WRONG_VALUE, at, takes)
}
