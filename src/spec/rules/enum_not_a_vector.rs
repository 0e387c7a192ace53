use crate::diagnostic::{Diagnostic, Edit, Fix, rule};
use crate::syntax::rules::not_json;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, SourceId, Span};

rule! {
    /// an :enum that is not a vector of constants
    ///
    /// Emacs writes a vector as a JSON array; a list is taken for a plist and refused, and so is a symbol. gptel fails when the first
    /// request is sent, for every tool of the request.
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
        _ => finding,
    }
}

/// Values that are symbols or keywords; the first of them is told, and all are mended.
pub(in crate::spec) fn of_symbols(source: SourceId, items: &[Datum]) -> Option<Diagnostic> {
    let mut symbols = items.iter().filter_map(|item| Some((item.span, symbol_of(item)?)));
    let (span, word) = symbols.next()?;
    let sort = if word.starts_with(':') { "keyword" } else { "symbol" };
    let message = format!("`:enum` values are constants, and `{word}` is a {sort}");
    let mut finding = Diagnostic::new(&ENUM_NOT_A_VECTOR, Location { source, span }, message);
    let all: Vec<(Span, &str)> = std::iter::once((span, word)).chain(symbols).collect();
    let is_constant = |word: &str| not_json::constant_meant(word).is_some();
    // `[true false]` of a boolean, and words of a language, of a string.
    let are_constants = all.iter().all(|(_, word)| is_constant(word));
    let edit = |(span, word): &(Span, &str)| Edit {
        span: *span,
        replacement: match not_json::constant_meant(word).filter(|_| are_constants) {
            Some(constant) => constant.to_owned(),
            None => super::quoted(word.strip_prefix(':').unwrap_or(word)),
        },
    };
    finding.fix = Some(Fix {
        title: String::from(if are_constants { "write JSON constants" } else { "write strings" }),
        edits: all.iter().map(edit).collect(),
        is_safe: !all.iter().any(|(_, word)| is_constant(word)),
    });
    Some(finding)
}

/// The name of a symbol that is no constant.
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
