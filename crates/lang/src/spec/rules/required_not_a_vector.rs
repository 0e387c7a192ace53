use crate::diagnostic::{Diagnostic, Edit, Fix, rule};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, SourceId};

rule! {
    /// :required that is not a vector of strings
    ///
    /// Emacs writes a vector as a JSON array. When the request is sent, Emacs rejects symbols and lists of strings.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)) :required ("id"))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)) :required ["id"])))
    /// ```
    pub(crate) REQUIRED_NOT_A_VECTOR, "DT221", "required-not-a-vector", Error
}

/// Checks the value of `:required`. Only the first wrong element is reported, but all are fixed.
pub(in crate::spec) fn check(source: SourceId, value: &Datum) -> Option<Diagnostic> {
    let at = |span| Location { source, span };
    let DatumKind::Vector(items) = &value.kind else {
        let message = format!("`:required` takes a vector of property names, found {}", value.describe());
        let is_flag = matches!(&value.kind, DatumKind::Symbol(word) if matches!(word.as_str(), "true" | "false"));
        let finding = Diagnostic::new(&REQUIRED_NOT_A_VECTOR, at(value.span), message).note(if is_flag {
            "`:required` is not a flag; an argument is required unless it has `:optional t`"
        } else {
            "write `:required [\"first\" \"second\"]`"
        });
        return Some(match &value.kind {
            DatumKind::String(name) => {
                finding.maybe_fixed_by("write a vector", value.span, format!("[{}]", super::quoted(name)))
            }
            DatumKind::List(items) if items.iter().all(|item| matches!(item.kind, DatumKind::String(_))) => {
                super::as_vector(finding, value)
            }
            _ => finding,
        });
    };
    let is_wrong = |item: &&Datum| !matches!(item.kind, DatumKind::String(_) | DatumKind::Invalid);
    let first = items.iter().find(is_wrong)?;
    let message = format!("`:required` takes property names as strings, found {}", first.describe());
    let mut finding = Diagnostic::new(&REQUIRED_NOT_A_VECTOR, at(first.span), message);
    let edit = |item: &Datum| {
        let (DatumKind::Symbol(word) | DatumKind::Keyword(word)) = &item.kind else { return None };
        Some(Edit { span: item.span, replacement: super::quoted(word.strip_prefix(':').unwrap_or(word)) })
    };
    let edits: Option<Vec<Edit>> = items.iter().filter(is_wrong).map(edit).collect();
    finding.fix = edits.map(|edits| Fix { title: String::from("write strings"), edits, is_safe: true });
    Some(finding)
}
