use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::{Edit, Fix, Severity};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, Span};

rule! {
    /// a key without a colon
    ///
    /// Keys are keywords, not strings as in JSON. If a plist has a symbol or a string in the position of a key, Emacs
    /// signals an error or swaps keys and values from there on.
    ///
    /// ```eld fails
    /// (deftool :name "now" "description" "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// In a schema, Emacs writes a symbol as a JSON key, but code that looks up keywords in the plist does not find the
    /// key. For example, gptel does not convert the `:type` symbols below it.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type object :properties (id (:type integer)))))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type object :properties (:id (:type integer)))))
    /// ```
    pub(crate) BARE_KEY, "DT115", "bare-key", Warning
}

/// `at` is the whole plist with the elements `items`. A string key is an error, because Emacs cannot write it.
pub(in crate::spec) fn finding(at: Location, items: &[Datum]) -> Diagnostic {
    let bare = || {
        items.iter().step_by(2).filter_map(|key| match &key.kind {
            DatumKind::Symbol(word) => Some((key.span, word, false)),
            DatumKind::String(word) => Some((key.span, word, true)),
            _ => None,
        })
    };
    let shown = bare().find(|(_, _, is_string)| *is_string).or_else(|| bare().next());
    let mut finding = match shown {
        Some((span, word, true)) => {
            let key = if is_plain(word) { word.strip_prefix(':').unwrap_or(word) } else { "name" };
            let message = format!("expected a key `:{key}`, found the string \"{word}\"");
            let mut finding = Diagnostic::new(&BARE_KEY, Location { span, ..at }, message);
            finding.severity = Severity::Error;
            finding
        }
        Some((span, word, false)) => {
            Diagnostic::new(&BARE_KEY, Location { span, ..at }, format!("missing colon before the key `{word}`"))
        }
        None => Diagnostic::new(&BARE_KEY, at, "missing colon before a key"),
    };
    let edit = |(span, word, is_string): (Span, &String, bool)| {
        let colon = Edit { span: Span { end: span.start, ..span }, replacement: String::from(":") };
        let name = word.strip_prefix(':').unwrap_or(word);
        if !is_string {
            return Some(colon);
        }
        // A keyword with any other name needs escapes.
        is_plain(word).then(|| Edit { span, replacement: format!(":{name}") })
    };
    let title = if bare().any(|(_, _, is_string)| is_string) { "write keywords" } else { "add the colon" };
    let edits: Option<Vec<Edit>> = bare().map(edit).collect();
    finding.fix = edits.map(|edits| Fix { title: String::from(title), edits, is_safe: true });
    finding
}

fn is_plain(word: &str) -> bool {
    let name = word.strip_prefix(':').unwrap_or(word);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Reports a known key without its colon, an error unless `is_sent`: Emacs writes it as a JSON key.
pub(in crate::spec) fn symbol(at: Location, word: &str, is_sent: bool) -> Diagnostic {
    let mut finding = Diagnostic::new(&BARE_KEY, at, format!("missing colon before the key `{word}`"));
    if !is_sent {
        finding.severity = Severity::Error;
    }
    finding.fixed_by(format!("write `:{word}`"), at.span, format!(":{word}"))
}

/// Reports a known key that is written as a string: an error.
pub(in crate::spec) fn string(at: Location, key: &str) -> Diagnostic {
    let mut finding = Diagnostic::new(&BARE_KEY, at, format!("the key `:{key}` is written as a string"));
    finding.severity = Severity::Error;
    finding.maybe_fixed_by(format!("write `:{key}`"), at.span, format!(":{key}"))
}
