use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// an unknown permission
    ///
    /// A script may use only what `:allow` lists. A misspelt permission grants nothing, and the script fails when it
    /// is called.
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
    let finding = Diagnostic::new(&ALLOW_UNKNOWN, at, format!("unknown permission `:{key}`"));
    match nearest(key, known.iter().copied()) {
        Some(near) => finding.did_you_mean(at.span, format!(":{near}")),
        None => finding.note("permissions: :net :read :write :run :env"),
    }
}
