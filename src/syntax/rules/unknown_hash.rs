use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// reader syntax after # that Emacs does not have
    ///
    /// `#t`, `#f` and `#|…|#` are of other Lisps, `#<buffer x>` is how Emacs prints what cannot be read. Emacs stops there.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :async #f)
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time." :async nil)
    /// ```
    pub(crate) UNKNOWN_HASH, "DT007", "unknown-hash", Error
}

/// `text` is a comment as other languages write it, or a line that Org mode gives a meaning.
pub(in crate::syntax) fn foreign(at: Location, text: &str) -> Diagnostic {
    if text.starts_with("#+") {
        let word = text.split_whitespace().next().unwrap_or("#+");
        return Diagnostic::new(&UNKNOWN_HASH, at, format!("`{word}` is of Org mode, no Emacs Lisp"))
            .note("leave the line out, or tangle the Org file into one of Emacs Lisp");
    }
    let opener = if text.starts_with("#|") { "#|" } else { "#" };
    let finding = Diagnostic::new(&UNKNOWN_HASH, at, format!("`{opener}` starts no comment; `;` does"));
    if opener == "#" { finding.fixed_by("write `;`", at.span, ";") } else { finding }
}

pub(in crate::syntax) fn finding(at: Location, text: &str) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_HASH, at, format!("`{text}` is no reader syntax of Emacs Lisp"));
    match text {
        "#t" => finding.labelled("did you mean `t`?").maybe_fixed_by("write `t`", at.span, "t"),
        "#f" => finding.labelled("did you mean `nil`?").maybe_fixed_by("write `nil`", at.span, "nil"),
        "#<" => finding.note("it is how Emacs shows an object that has no text to be read from"),
        _ => finding,
    }
}
