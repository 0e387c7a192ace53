use crate::diagnostic::{Diagnostic, rule};
use crate::syntax::{Datum, DatumKind, write};
use crate::text::Location;

rule! {
    /// a key that ends in a colon
    ///
    /// `:description:` is a key of its own for Emacs. It is sent as the JSON key "description:", which no API knows, so the
    /// model never sees the text.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time in a city."
    ///  :args ((:name "city" :type string :description: "Which city.")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time in a city."
    ///  :args ((:name "city" :type string :description "Which city.")))
    /// ```
    pub(crate) STRAY_COLON, "DT107", "stray-colon", Warning
}

/// `key`: without its first colon.
pub(in crate::spec) fn finding(at: Location, key: &str) -> Diagnostic {
    let stem = key.trim_end_matches(':');
    // A name of any characters: some are escaped.
    let meant = write(&Datum { span: at.span, kind: DatumKind::Keyword(format!(":{stem}")) });
    Diagnostic::new(&STRAY_COLON, at, format!("likely a typo: the key `:{key}` ends in a colon"))
        .labelled(format!("did you mean `{meant}`?"))
        .note(format!("it is sent as the JSON key \"{key}\", which no API knows"))
        .fixed_by(format!("write `{meant}`"), at.span, meant)
}
