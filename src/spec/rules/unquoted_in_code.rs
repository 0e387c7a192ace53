use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// data in a call of Emacs Lisp that lacks its quote
    ///
    /// `gptel-make-tool`, `llm-make-tool` and `llm-tool` are functions: Emacs evaluates what stands in their calls. There `(:name "x")` calls a
    /// function `:name` and `string` is a variable, neither of which exists, so that the file stops loading there. Read as a spec it is what
    /// was meant, and compiles.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "a" :description "Do a." :function #'ignore :args (list (:name "x" :description "An x." :type string)))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "a" :description "Do a." :function #'ignore :args (list '(:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) UNQUOTED_IN_CODE, "DT132", "unquoted-in-code", Warning
}

/// A list that starts with `head`.
pub(in crate::spec) fn call(at: Location, head: &str) -> Diagnostic {
    let message = if head.starts_with(':') {
        format!("Emacs calls this list as the function `{head}`: it lacks its quote")
    } else {
        String::from("Emacs calls this list as a function: it lacks its quote")
    };
    quoted(Diagnostic::new(&UNQUOTED_IN_CODE, at, message))
}

pub(in crate::spec) fn variable(at: Location, word: &str) -> Diagnostic {
    let message = format!("Emacs takes `{word}` for a variable: it lacks its quote");
    quoted(Diagnostic::new(&UNQUOTED_IN_CODE, at, message))
}

/// The name of a category, which is a string.
pub(in crate::spec) fn category(at: Location, word: &str) -> Diagnostic {
    let message = format!("Emacs takes `{word}` for a variable, and nothing here defines it");
    Diagnostic::new(&UNQUOTED_IN_CODE, at, message).maybe_fixed_by(
        "write a string",
        at.span,
        super::quoted(word),
    )
}

fn quoted(finding: Diagnostic) -> Diagnostic {
    let start = finding.primary.span.start as usize;
    finding.fixed_by("write the quote", crate::text::Span::new(start, start), "'")
}
