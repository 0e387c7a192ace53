use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// an unused allow
    ///
    /// The problem is fixed, or the comment is in the wrong place. A comment on its own line applies to the next form.
    /// A comment at the end of a line applies to everything that starts on that line. An unused allow would hide later
    /// mistakes.
    ///
    /// ```eld fails
    /// ;; deftool: allow(missing-description)
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// ;; deftool: allow(missing-description)
    /// (deftool :name "now")
    /// ```
    pub(crate) UNUSED_ALLOW, "DT126", "unused-allow", Note
}

pub(crate) fn finding(at: Location, word: &str) -> Diagnostic {
    Diagnostic::new(&UNUSED_ALLOW, at, format!("unused allow of `{word}`"))
}
