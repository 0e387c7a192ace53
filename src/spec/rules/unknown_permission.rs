use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// a permission that does not exist
    ///
    /// A script may use what `:allow` lists and nothing else. A grant that is misspelt grants nothing, and the script fails
    /// when it is called.
    ///
    /// ```eld fails
    /// (deftool :name "note" :description "Read a note." :allow (:reed ["notes/"]))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "note" :description "Read a note." :allow (:read ["notes/"]))
    /// ```
    pub(crate) ALLOW_UNKNOWN, "DT114", "unknown-permission", Error
}

pub(in crate::spec) fn finding(at: Location, key: &str, known: &[&str]) -> Diagnostic {
    let finding = Diagnostic::new(&ALLOW_UNKNOWN, at, format!("`:{key}` is no permission"));
    match nearest(key, known.iter().copied()) {
        Some(near) => finding.meant(at.span, format!(":{near}")),
        None => finding.note("permissions: :net :read :write :run :env"),
    }
}
