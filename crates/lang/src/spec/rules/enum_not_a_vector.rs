use crate::diagnostic::{Diagnostic, Edit, Fix, rule};
use crate::spec::keywords::TYPES;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, SourceId, Span};

rule! {
    /// an :enum that is not a vector of constants
    ///
    /// Emacs writes a vector as a JSON array. It interprets a list as a plist and rejects it, and it rejects symbols
    /// too. gptel then fails when it sends the first request, and all tools of the request fail with it.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ("fast" "slow"))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ["fast" "slow"])))
    /// ```
    pub(crate) ENUM_NOT_A_VECTOR, "DT207", "enum-not-a-vector", Error
}

pub(in crate::spec) fn finding(at: Location, found: &Datum) -> Diagnostic {
    let message = format!("`:enum` takes a vector, found {}", found.describe());
    let finding =
        Diagnostic::new(&ENUM_NOT_A_VECTOR, at, message).note("write `:enum [\"first\" \"second\"]`");
    let is_plain = |item: &Datum| matches!(item.kind, DatumKind::String(_) | DatumKind::Number(_));
    match &found.kind {
        DatumKind::List(items) if items.iter().all(is_plain) => super::as_vector(finding, found),
        DatumKind::Quoted(inner) => match &inner.kind {
            DatumKind::List(items) if items.iter().all(is_plain) => {
                without_quote(super::as_vector(finding, inner), at.span)
            }
            _ => finding,
        },
        _ => finding,
    }
}

/// Extends the fix so that it also replaces the quote.
fn without_quote(mut finding: Diagnostic, quoted: Span) -> Diagnostic {
    if let Some(edit) = finding.fix.as_mut().and_then(|fix| fix.edits.first_mut()) {
        edit.span.start = quoted.start;
    }
    finding
}

/// Reports symbols and keywords among the values. Only the first one is reported, but all are fixed if their meaning is
/// clear from `types`, the types of the schema; an empty list means any type.
pub(in crate::spec) fn of_symbols(source: SourceId, items: &[Datum], types: &[String]) -> Option<Diagnostic> {
    let symbols = || items.iter().filter_map(|item| Some((item.span, symbol_of(item)?)));
    let (span, word) = symbols().next()?;
    let sort = if word.starts_with(':') { "keyword" } else { "symbol" };
    let message = format!("`:enum` values must be constants, found the {sort} `{word}`");
    let mut finding = Diagnostic::new(&ENUM_NOT_A_VECTOR, Location { source, span }, message);
    let edit = |(span, word)| Some(Edit { span, replacement: constant_of(word, types)? });
    let edits: Option<Vec<Edit>> = symbols().map(edit).collect();
    finding.fix = edits.map(|edits| {
        let are_strings = edits.iter().all(|edit| edit.replacement.starts_with('"'));
        let title = if are_strings { "write strings" } else { "write constants" };
        // Without a type, `true` may be an ordinary word.
        let is_safe = are_strings || !types.is_empty();
        Fix { title: String::from(title), edits, is_safe }
    });
    Some(finding)
}

/// Returns the constant of one of `types` for a symbol.
fn constant_of(word: &str, types: &[String]) -> Option<String> {
    let word = word.strip_prefix(':').unwrap_or(word);
    let takes = |name: &str| {
        types.is_empty() || types.iter().any(|known| known == name || !TYPES.contains(&known.as_str()))
    };
    match word {
        "true" if takes("boolean") => Some(String::from("t")),
        "false" if takes("boolean") => Some(String::from(":json-false")),
        "null" if takes("null") => Some(String::from(":null")),
        _ => takes("string").then(|| super::quoted(word)),
    }
}

/// Returns the name of a symbol that is not a constant.
pub(in crate::spec) fn symbol_of(datum: &Datum) -> Option<&str> {
    match &datum.kind {
        DatumKind::Symbol(word) if word != "t" => Some(word),
        DatumKind::Keyword(word)
            if ![":json-false", ":false", ":null", ":json-null"].contains(&word.as_str()) =>
        {
            Some(word)
        }
        DatumKind::Quoted(inner) => match &inner.kind {
            DatumKind::Symbol(word) => Some(word),
            _ => None,
        },
        _ => None,
    }
}
