use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an escape for a raw byte, which JSON cannot represent
    ///
    /// In an Emacs string, `\xe9` and `\351` are a raw byte, not the character é, and gptel fails to encode it. Write
    /// the character itself or an escape with four digits.
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
    format!("this escape is the raw byte {byte:#x}, which JSON cannot represent")
}

/// `message` is the result of [`message`].
pub(in crate::syntax) fn finding(at: Location, message: String) -> Diagnostic {
    let finding = Diagnostic::new(&RAW_BYTE, at, message);
    finding.note("write the character itself, or `\\u` with its four digits")
}
