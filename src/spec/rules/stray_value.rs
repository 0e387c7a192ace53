use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a value where a plist expects a key
    ///
    /// In a plist keys and values alternate. Emacs signals an error for a keyword list that is out of step, or takes keys for
    /// values and values for keys from there on. A quotation mark inside of a string that lacks its backslash looks
    /// like this, too: the string ends there and the rest of it is words.
    ///
    /// ```eld fails
    /// (deftool :name "now" description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) STRAY_VALUE, "DT104", "stray-value", Error
}

/// `touches_string`: it stands right behind a string.
pub(in crate::spec) fn finding(at: Location, found: &str, touches_string: bool) -> Diagnostic {
    let finding = Diagnostic::new(&STRAY_VALUE, at, format!("expected a key such as `:name`, found {found}"));
    if touches_string {
        finding.note("the string before it ends here; a quotation mark inside of a string is written `\\\"`")
    } else {
        finding
    }
}

pub(in crate::spec) fn without_colon(at: Location, word: &str) -> Diagnostic {
    Diagnostic::new(&STRAY_VALUE, at, format!("`{word}` is a key without its colon")).fixed_by(
        format!("write `:{word}`"),
        at.span,
        format!(":{word}"),
    )
}
