use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// unquoted data in an Emacs Lisp call
    ///
    /// `gptel-make-tool`, `llm-make-tool`, `make-llm-tool` and `llm-tool` are functions, so Emacs evaluates their
    /// arguments. Without a quote, `(:name "x")` calls a function `:name`, and `string` is a variable. Neither exists,
    /// so loading the file fails. deftool reads the data as intended and compiles it.
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

/// Reports a list with the head `head`.
pub(in crate::spec) fn call(at: Location, head: &str) -> Diagnostic {
    let message = if head.starts_with(':') {
        format!("missing quote: Emacs evaluates this list as a call to the function `{head}`")
    } else {
        String::from("missing quote: Emacs evaluates this list as a function call")
    };
    quoted(Diagnostic::new(&UNQUOTED_IN_CODE, at, message))
}

pub(in crate::spec) fn variable(at: Location, word: &str) -> Diagnostic {
    let message = format!("missing quote: Emacs evaluates `{word}` as a variable");
    quoted(Diagnostic::new(&UNQUOTED_IN_CODE, at, message))
}

/// Reports a category name, which should be a string.
pub(in crate::spec) fn category(at: Location, word: &str) -> Diagnostic {
    let message = format!("Emacs evaluates `{word}` as a variable, which this file does not define");
    Diagnostic::new(&UNQUOTED_IN_CODE, at, message).maybe_fixed_by(
        "write a string",
        at.span,
        super::quoted(word),
    )
}

fn quoted(finding: Diagnostic) -> Diagnostic {
    let start = finding.primary.span.start as usize;
    finding.fixed_by("add the quote", crate::text::Span::new(start, start), "'")
}
