use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a value where a plist needs a key
    ///
    /// In a plist, keys and values alternate. If a value is in the position of a key, Emacs signals an error or swaps
    /// keys and values from there on. An unescaped quotation mark inside a string has the same effect, because the
    /// string ends there and the rest is read as symbols.
    ///
    /// ```eld fails
    /// (deftool :name "now" 5 :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) STRAY_VALUE, "DT104", "stray-value", Error
}

/// `touches_string` means that the value directly follows a string.
pub(in crate::spec) fn finding(at: Location, found: &str, touches_string: bool) -> Diagnostic {
    let finding = Diagnostic::new(&STRAY_VALUE, at, format!("expected a key such as `:name`, found {found}"));
    if touches_string {
        finding.note("the previous string ends here; write `\\\"` for a quotation mark inside a string")
    } else {
        finding
    }
}
