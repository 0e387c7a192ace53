use crate::diagnostic::{Diagnostic, rule};
use crate::syntax::{Datum, DatumKind, write};
use crate::text::Location;

rule! {
    /// a key that ends in a colon
    ///
    /// For Emacs, `:description:` is a different key. It is sent as the JSON key "description:", which APIs do not
    /// support, so the model never receives the text.
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

/// `key` is the key without its first colon. `is_sent`: whether the key is a keyword of a schema.
pub(in crate::spec) fn finding(at: Location, key: &str, is_sent: bool) -> Diagnostic {
    let stem = key.trim_end_matches(':');
    // A name can contain any characters, some of which are escaped.
    let meant = write(&Datum { span: at.span, kind: DatumKind::Keyword(format!(":{stem}")) });
    let mut finding = Diagnostic::new(&STRAY_COLON, at, format!("the key `:{key}` ends in a colon"))
        .labelled(format!("did you mean `{meant}`?"));
    if is_sent {
        finding = finding.note(format!("it is sent as the JSON key \"{key}\", which APIs do not support"));
    }
    finding.fixed_by(format!("write `{meant}`"), at.span, meant)
}

/// Merges another finding of the same plist: usually all keys have the stray colon.
pub(in crate::spec) fn merge(first: &mut Diagnostic, other: Diagnostic) {
    first.severity = first.severity.max(other.severity);
    if let (Some(fix), Some(more)) = (&mut first.fix, other.fix) {
        fix.title = String::from("remove the colons");
        fix.is_safe &= more.is_safe;
        fix.edits.extend(more.edits);
    }
    let keys = "other keys of this plist end in a colon too";
    if !first.notes.iter().any(|note| note == keys) {
        first.notes.push(String::from(keys));
    }
}
