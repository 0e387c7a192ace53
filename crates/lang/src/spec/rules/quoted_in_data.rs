use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a quote inside data that is already quoted
    ///
    /// Inside `'(…)` nothing is evaluated, so a second quote remains in the data. Emacs reads `'x` as the list `(quote
    /// x)`, which it cannot write as JSON, or writes as an object with the key "quote".
    ///
    /// ```el fails
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type 'string)))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) QUOTED_IN_DATA, "DT205", "quoted-in-data", Error
}

/// `inside` is the span of the quoted form.
pub(in crate::spec) fn finding(at: Location, inside: Span) -> Diagnostic {
    // The quote is the text before the quoted form.
    let quote = Span { start: at.span.start, end: inside.start };
    Diagnostic::new(&QUOTED_IN_DATA, at, "a quote inside data that is already quoted")
        .note("Emacs reads it as the list `(quote …)`, which no API accepts")
        .fixed_by("remove the quote", quote, "")
}
