use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a key without a value
    ///
    /// The value is missing, or the next key is in its position. Emacs uses the next key as the value.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :timeout)
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time." :timeout "5s")
    /// ```
    pub(crate) ODD_PLIST, "DT105", "odd-plist", Error
}

pub(in crate::spec) fn finding(at: Location, key: &str) -> Diagnostic {
    let finding = Diagnostic::new(&ODD_PLIST, at, format!("missing value for `:{key}`"));
    match key {
        "optional" | "async" | "confirm" | "include" | "final-turn" | "default" => {
            finding.maybe_fixed_by(format!("write `:{key} t`"), at.span, format!(":{key} t"))
        }
        _ => finding,
    }
}
