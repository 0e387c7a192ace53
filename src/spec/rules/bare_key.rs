use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::{Edit, Fix, Severity};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, Span};

rule! {
    /// keys without their colon
    ///
    /// Emacs writes a symbol as a key all the same, but what walks plists by their keywords passes it by, gptel's handling of `:type` symbols
    /// among them. A string it does not write as a key at all.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type object :properties (id (:type integer)))))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type object :properties (:id (:type integer)))))
    /// ```
    pub(crate) BARE_KEY, "DT249", "bare-key", Warning
}

/// `at` is the whole plist, `items` what is in it. Emacs does not write a string as a key.
pub(in crate::spec) fn finding(at: Location, items: &[Datum]) -> Diagnostic {
    let bare = || {
        items.iter().step_by(2).filter_map(|key| match &key.kind {
            DatumKind::Symbol(word) => Some((key.span, word, false)),
            DatumKind::String(word) => Some((key.span, word, true)),
            _ => None,
        })
    };
    let told = bare().find(|(_, _, is_string)| *is_string).or_else(|| bare().next());
    let mut finding = match told {
        Some((span, word, true)) => {
            let key = if is_plain(word) { word.strip_prefix(':').unwrap_or(word) } else { "name" };
            let message = format!("\"{word}\" is a string, and keys are written `:{key}`");
            let mut finding = Diagnostic::new(&BARE_KEY, Location { span, ..at }, message);
            finding.severity = Severity::Error;
            finding
        }
        Some((span, word, false)) => {
            Diagnostic::new(&BARE_KEY, Location { span, ..at }, format!("`{word}` is a key without its colon"))
        }
        None => Diagnostic::new(&BARE_KEY, at, "a key without its colon"),
    };
    let edit = |(span, word, is_string): (Span, &String, bool)| {
        let colon = Edit { span: Span { end: span.start, ..span }, replacement: String::from(":") };
        let name = word.strip_prefix(':').unwrap_or(word);
        if !is_string {
            return Some(colon);
        }
        // Of another name nobody knows how it is written as a symbol.
        is_plain(word).then(|| Edit { span, replacement: format!(":{name}") })
    };
    let title = if bare().any(|(_, _, is_string)| is_string) { "write keywords" } else { "write the colon" };
    let edits: Option<Vec<Edit>> = bare().map(edit).collect();
    finding.fix = edits.map(|edits| Fix { title: String::from(title), edits, is_safe: true });
    finding
}

fn is_plain(word: &str) -> bool {
    let name = word.strip_prefix(':').unwrap_or(word);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// A keyword of a schema.
pub(in crate::spec) fn keyword(at: Location, word: &str) -> Diagnostic {
    Diagnostic::new(&BARE_KEY, at, format!("`{word}` is a key without its colon")).fixed_by(
        format!("write `:{word}`"),
        at.span,
        format!(":{word}"),
    )
}
