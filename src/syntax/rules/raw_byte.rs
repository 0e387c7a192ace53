use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an escape for a raw byte, which JSON cannot carry
    ///
    /// In a string of Emacs, `\xe9` and `\351` are a byte, not the character é; gptel fails to encode it. A character is
    /// written with four digits or as it is.
    ///
    /// ```eld fails
    /// (deftool :name "cafe" :description "Find a caf\xe9.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "cafe" :description "Find a caf\u00e9.")
    /// ```
    pub(crate) RAW_BYTE, "DT009", "raw-byte", Error
}

pub(in crate::syntax) fn message(byte: u32) -> String {
    format!("the escape is the raw byte {byte:#x} in Emacs, which JSON cannot carry")
}

/// `message`: of [`message`].
pub(in crate::syntax) fn finding(at: Location, message: String) -> Diagnostic {
    let finding = Diagnostic::new(&RAW_BYTE, at, message);
    finding.note("write the character itself, or `\\u` and its four digits")
}
