use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a closing parenthesis or bracket that closes nothing
    ///
    /// Mostly a form before it was closed one parenthesis too early, and its last keys stand outside of it, where nothing
    /// reads them.
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
    pub(crate) STRAY_CLOSER, "DT002", "stray-closer", Error
}

/// `before`: where the form before it ends.
pub(in crate::syntax) fn finding(at: Location, closer: char, before: Option<Span>) -> Diagnostic {
    let finding = Diagnostic::new(&STRAY_CLOSER, at, format!("`{closer}` closes nothing"));
    match before {
        Some(end) => finding.and_at(end, "the form before it ends here"),
        None => finding,
    }
}

/// A form that lacks its opening parenthesis: `word` starts it.
pub(in crate::syntax) fn headless(at: Location, closer: char, word: Span) -> Diagnostic {
    Diagnostic::new(&STRAY_CLOSER, at, format!("`{closer}` closes nothing"))
        .and_at(word, "a parenthesis seems to be missing before this")
}

/// `]` for `)` or the other way round; `opener` is what it closes.
pub(in crate::syntax) fn wrong(at: Location, closer: char, opener: Span, text: &str) -> Diagnostic {
    let before = text.get(..opener.start as usize).unwrap_or("");
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let right = if closer == ')' { "]" } else { ")" };
    let opened = opener.of(text);
    let message = format!("`{closer}` closes `{opened}` opened at {line}:{column}");
    Diagnostic::new(&STRAY_CLOSER, at, message)
        .and_at(opener, "opened here")
        .maybe_fixed_by(format!("write `{right}`"), at.span, right)
}
