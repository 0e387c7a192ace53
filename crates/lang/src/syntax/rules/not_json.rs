use crate::diagnostic::{Diagnostic, Edit, Fix, rule};
use crate::syntax::{Datum, DatumKind, quoted};
use crate::text::{Location, Span};

rule! {
    /// a value that has no JSON form
    ///
    /// Emacs writes strings, numbers, vectors, plists, t, :json-false and :null as JSON. It rejects everything else
    /// when the first request is sent: other symbols and keywords, lists that are not plists, dotted pairs, infinite
    /// and NaN floats, and strings with raw bytes.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type array :items (:type string) :default ("a" "b") :optional t)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type array :items (:type string) :default ["a" "b"] :optional t)))
    /// ```
    pub(crate) NOT_JSON, "DT214", "not-json", Error
}

/// A symbol other than t and nil.
pub(crate) fn symbol(at: Location, word: &str) -> Diagnostic {
    let finding = Diagnostic::new(&NOT_JSON, at, format!("the symbol `{word}` has no JSON form"))
        .labelled("expected a string, a number, a vector, a plist, t or :json-false");
    match constant_meant(word) {
        Some(constant) => finding.maybe_fixed_by(format!("write `{constant}`"), at.span, constant),
        None => finding.maybe_fixed_by("write a string", at.span, quoted(word)),
    }
}

/// Returns the Emacs value for a JSON constant with this name.
pub(crate) fn constant_meant(word: &str) -> Option<&'static str> {
    match word {
        "false" => Some(":json-false"),
        "true" => Some("t"),
        "null" => Some(":null"),
        _ => None,
    }
}

/// Drops the fix of a finding if its value has none of the expected `types`; an empty list means any type. If a string
/// is expected, `true` and `false` are fixed as strings.
pub(crate) fn expect(finding: &mut Diagnostic, types: &[String]) {
    if *finding.rule != NOT_JSON || types.is_empty() {
        return;
    }
    let takes = |name: &str| types.iter().any(|known| known == name);
    let Some(edit) = finding.fix.as_mut().and_then(|fix| fix.edits.first_mut()) else { return };
    let made = match edit.replacement.as_str() {
        "t" | ":json-false" => "boolean",
        ":null" => "null",
        "[" => "array",
        _ => "string",
    };
    if takes(made) {
        return;
    }
    let word = match edit.replacement.as_str() {
        "t" => "true",
        ":json-false" => "false",
        _ => "",
    };
    if !word.is_empty() && takes("string") {
        edit.replacement = format!("\"{word}\"");
        if let Some(fix) = &mut finding.fix {
            fix.title = String::from("write a string");
        }
    } else {
        finding.fix = None;
    }
}

/// Reports a keyword without a JSON value.
pub(crate) fn keyword(at: Location, word: &str) -> Diagnostic {
    Diagnostic::new(&NOT_JSON, at, format!("the keyword `{word}` has no JSON form"))
        .labelled("expected a string, a number, a vector, a plist, t or :json-false")
}

/// Reports a list that is not a plist.
pub(crate) fn list(at: Location, found: &Datum) -> Diagnostic {
    let finding = Diagnostic::new(&NOT_JSON, at, "a list has no JSON form; write a vector `[…]` for an array")
        .note("an object is a plist `(:key value)`");
    let is_plain = |item: &Datum| matches!(item.kind, DatumKind::String(_) | DatumKind::Number(_));
    match &found.kind {
        DatumKind::List(items) if items.iter().all(is_plain) => as_vector(finding, found),
        _ => finding,
    }
}

/// Reports a dotted list.
pub(crate) fn dotted(at: Location) -> Diagnostic {
    Diagnostic::new(&NOT_JSON, at, "a dotted list has no JSON form; an object is a plist `(:key value)`")
}

/// Reports an infinity or a NaN, as written.
pub(crate) fn not_finite(at: Location, number: &str) -> Diagnostic {
    Diagnostic::new(&NOT_JSON, at, format!("the number `{number}` has no JSON form"))
}

/// Adds a fix that replaces the parentheses with brackets, if they directly enclose the first and the last element.
pub(crate) fn as_vector(mut finding: Diagnostic, found: &Datum) -> Diagnostic {
    let DatumKind::List(items) = &found.kind else { return finding };
    let (Some(first), Some(last)) = (items.first(), items.last()) else { return finding };
    let (open, close) = (found.span.start, found.span.end.saturating_sub(1));
    if first.span.start == open + 1 && last.span.end == close {
        let edit = |start, replacement: &str| Edit {
            span: Span { start, end: start + 1 },
            replacement: replacement.to_owned(),
        };
        let edits = vec![edit(open, "["), edit(close, "]")];
        finding.fix = Some(Fix { title: String::from("write a vector"), edits, is_safe: true });
    }
    finding
}
