use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an invalid or unsupported pattern in :confirm
    ///
    /// A string in a condition of `:confirm (:when …)` is an ECMA-262 regular expression, as in `:pattern`. It may
    /// match anywhere in the argument. It is matched in linear time for any input, so lookaround and backreferences are
    /// not supported.
    ///
    /// ```eld fails
    /// (deftool :name "drop" :description "Drop a file." :confirm (:when (:path "^(/etc/"))
    ///     :args ((:name "path" :description "Which." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "drop" :description "Drop a file." :confirm (:when (:path "^/etc/"))
    ///     :args ((:name "path" :description "Which." :type string)))
    /// ```
    pub(crate) CONFIRM_PATTERN, "DT257", "confirm-pattern", Error
}

/// `problem` is a clause that describes the error.
pub(in crate::schema) fn finding(at: Location, problem: &str) -> Diagnostic {
    Diagnostic::new(&CONFIRM_PATTERN, at, format!("invalid pattern: {problem}"))
}

/// The pattern is valid but cannot be matched in linear time.
pub(in crate::schema) fn unsupported(at: Location) -> Diagnostic {
    Diagnostic::new(&CONFIRM_PATTERN, at, "lookaround and backreferences are not supported in conditions")
        .note("split the pattern into several conditions, of which one must be met")
}
