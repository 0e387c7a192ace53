use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// invalid UTF-8
    ///
    /// JSON is UTF-8. In a file with another encoding, every invalid byte is replaced by a replacement character. Forms
    /// that contain one are not compiled, because the model would receive damaged text. In Emacs, `C-h v
    /// buffer-file-coding-system` shows the encoding of a file, and `C-x RET f utf-8` changes it.
    pub(crate) INVALID_UTF8, "DT008", "invalid-utf8", Error
}

/// `is_text`: whether the file could be read as text.
pub(crate) fn finding(at: Location, is_text: bool, is_utf16: bool) -> Diagnostic {
    if is_utf16 {
        return Diagnostic::new(&INVALID_UTF8, at, "expected UTF-8, found UTF-16").note("save the file as UTF-8; it was skipped");
    }
    let finding = Diagnostic::new(&INVALID_UTF8, at, "invalid UTF-8");
    if is_text {
        finding.note("save the file as UTF-8; the invalid bytes were replaced")
    } else {
        finding.note("the file is binary and was skipped")
    }
}
