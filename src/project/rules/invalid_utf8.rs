use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// bytes that are not UTF-8
    ///
    /// JSON is UTF-8. A file in another encoding is read with a replacement character for each byte that does not fit; forms that
    /// hold one are not compiled, for the text would reach the model in pieces. Emacs says with `C-h v
    /// buffer-file-coding-system` how a file is encoded, and changes it with `C-x RET f utf-8`.
    pub(crate) INVALID_UTF8, "DT008", "invalid-utf8", Error
}

/// `is_text`: the file was read.
pub(in crate::project) fn finding(at: Location, is_text: bool, is_utf16: bool) -> Diagnostic {
    if is_utf16 {
        return Diagnostic::new(&INVALID_UTF8, at, "this is UTF-16, not UTF-8").note("save the file as UTF-8; it was not read");
    }
    let finding = Diagnostic::new(&INVALID_UTF8, at, "this is not UTF-8");
    if is_text {
        finding.note("save the file as UTF-8; reading went on with a replacement character")
    } else {
        finding.note("the file holds no text and was not read")
    }
}
