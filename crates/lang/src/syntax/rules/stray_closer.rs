use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a closing parenthesis or bracket without an opening one
    ///
    /// In most cases the form before it was closed one parenthesis too early. Its last keys are then outside of the
    /// form and have no effect.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the current time.")
    ///  :timeout "5s")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the current time."
    ///  :timeout "5s")
    /// ```
    pub STRAY_CLOSER, "DT002", "stray-closer", Error
}

/// `before` is the end of the previous form.
pub(in crate::syntax) fn finding(at: Location, closer: char, before: Option<Span>) -> Diagnostic {
    let finding = Diagnostic::new(&STRAY_CLOSER, at, format!("unmatched closing `{closer}`"));
    match before {
        Some(end) => finding.with_label_at(end, "the form before it ends here"),
        None => finding,
    }
}

/// Reports a form without an opening parenthesis; `word` is its first word.
pub(in crate::syntax) fn missing_opener(at: Location, closer: char, word: Span) -> Diagnostic {
    Diagnostic::new(&STRAY_CLOSER, at, format!("unmatched closing `{closer}`"))
        .with_label_at(word, "an opening parenthesis seems to be missing here")
}

/// Reports `]` for `)` or the reverse; `opener` is the opening bracket.
pub(in crate::syntax) fn wrong(at: Location, closer: char, opener: Span, text: &str) -> Diagnostic {
    let before = text.get(..opener.start as usize).unwrap_or("");
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let right = if closer == ')' { "]" } else { ")" };
    let opened = opener.of(text);
    let message = format!("`{closer}` does not match the `{opened}` opened at {line}:{column}");
    Diagnostic::new(&STRAY_CLOSER, at, message)
        .with_label_at(opener, "opened here")
        .maybe_fixed_by(format!("write `{right}`"), at.span, right)
}
