use crate::diagnostic::{Diagnostic, rule};
use crate::syntax::{Datum, DatumKind};
use crate::text::Location;

rule! {
    /// :anyOf or a similar keyword that is not a vector of schemas
    ///
    /// The alternatives must be a JSON array. Emacs writes a vector as an array, but it cannot write a list of plists.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :anyOf ((:type string) (:type null)))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :anyOf [(:type string) (:type null)])))
    /// ```
    pub(crate) UNION_NOT_A_VECTOR, "DT234", "union-not-a-vector", Error
}

pub(in crate::spec) fn finding(at: Location, key: &str, found: &Datum) -> Diagnostic {
    let message = format!("`:{key}` takes a vector of schema plists, found {}", found.describe());
    let finding = Diagnostic::new(&UNION_NOT_A_VECTOR, at, message);
    match &found.kind {
        DatumKind::List(items) if items.iter().all(|item| matches!(item.kind, DatumKind::List(_))) => {
            super::as_vector(finding, found)
        }
        _ => finding.note(format!("write `:{key} [(:type string) (:type null)]`")),
    }
}
