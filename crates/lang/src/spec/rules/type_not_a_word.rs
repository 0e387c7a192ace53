use crate::diagnostic::{Diagnostic, Edit, Fix, rule};
use crate::spec::keywords::TYPES;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, SourceId};

rule! {
    /// a :type that is neither a word nor a vector of strings
    ///
    /// Several types are written as a vector of strings. gptel converts a symbol that is the value of `:type`, but not
    /// symbols in a vector, which Emacs then cannot write. gptel interprets a list as a plist.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type [string null])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type ["string" "null"])))
    /// ```
    pub(crate) TYPE_NOT_A_WORD, "DT235", "type-not-a-word", Error
}

pub(in crate::spec) fn finding(at: Location, found: &Datum) -> Diagnostic {
    let message = format!("`:type` takes a symbol such as `string`, found {}", found.describe());
    let finding = Diagnostic::new(&TYPE_NOT_A_WORD, at, message);
    let DatumKind::List(items) = &found.kind else { return finding };
    let words: Option<Vec<&str>> = items.iter().map(word_of).collect();
    match words.as_deref() {
        Some([word]) => finding.maybe_fixed_by(format!("write `{word}`"), at.span, *word),
        Some(words) => {
            let strings: Vec<String> = words.iter().map(|word| super::quoted(word)).collect();
            let vector = format!("[{}]", strings.join(" "));
            finding.maybe_fixed_by(format!("write `{vector}`"), at.span, vector)
        }
        None => finding,
    }
}

/// Reports vector elements that are not strings. Only the first one is reported, but all are fixed.
pub(in crate::spec) fn in_vector(source: SourceId, items: &[Datum]) -> Option<Diagnostic> {
    let is_wrong = |item: &&Datum| !matches!(item.kind, DatumKind::String(_) | DatumKind::Invalid);
    let first = items.iter().find(is_wrong)?;
    let message = format!("types in a vector must be strings, found {}", first.describe());
    let mut finding = Diagnostic::new(&TYPE_NOT_A_WORD, Location { source, span: first.span }, message);
    let edits: Option<Vec<Edit>> = items
        .iter()
        .filter(is_wrong)
        .map(|item| {
            let inside = match &item.kind {
                DatumKind::Quoted(inner) => inner,
                _ => item,
            };
            let word = if inside.is_nil() { "null" } else { word_of(inside)? };
            Some(Edit { span: item.span, replacement: super::quoted(word) })
        })
        .collect();
    finding.fix = edits.map(|edits| Fix { title: String::from("write strings"), edits, is_safe: true });
    Some(finding)
}

fn word_of(datum: &Datum) -> Option<&str> {
    match &datum.kind {
        DatumKind::Symbol(word) | DatumKind::String(word) => Some(word).filter(|word| TYPES.contains(&word.as_str())),
        _ => None,
    }
    .map(String::as_str)
}
