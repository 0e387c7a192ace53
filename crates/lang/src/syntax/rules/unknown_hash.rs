use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// syntax after # that Emacs does not have
    ///
    /// `#t`, `#f` and `#|…|#` are syntax of other Lisps. `#<buffer x>` is the printed form of an object that cannot be
    /// read. Emacs stops reading there.
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

/// Reports a comment of another language, or a line with Org mode syntax.
pub(in crate::syntax) fn foreign(at: Location, text: &str) -> Diagnostic {
    if text.starts_with("#+") {
        let word = text.split_whitespace().next().unwrap_or("#+");
        return Diagnostic::new(&UNKNOWN_HASH, at, format!("`{word}` is Org mode syntax, not Emacs Lisp"))
            .note("remove the line, or tangle the Org file to Emacs Lisp");
    }
    let opener = if text.starts_with("#|") { "#|" } else { "#" };
    let finding = Diagnostic::new(&UNKNOWN_HASH, at, format!("comments start with `;`, not with `{opener}`"));
    if opener == "#" { finding.fixed_by("write `;`", at.span, ";") } else { finding }
}

pub(in crate::syntax) fn finding(at: Location, text: &str) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_HASH, at, format!("`{text}` is not Emacs Lisp syntax"));
    match text {
        "#t" => finding.labelled("did you mean `t`?").maybe_fixed_by("write `t`", at.span, "t"),
        "#f" => finding.labelled("did you mean `nil`?").maybe_fixed_by("write `nil`", at.span, "nil"),
        "#<" => finding.note("Emacs prints objects without a readable form this way"),
        _ => finding,
    }
}
