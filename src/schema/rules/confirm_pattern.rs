use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a pattern of :confirm that cannot be read
    ///
    /// A string in a condition of `:confirm (:when …)` is a regular expression of ECMA-262, as in `:pattern`, and is looked for anywhere
    /// in the argument. It is matched in linear time, whatever a model writes, so it can neither look around nor refer back.
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

/// `problem`: what is wrong with it, in a clause.
pub(in crate::schema) fn finding(at: Location, problem: &str) -> Diagnostic {
    Diagnostic::new(&CONFIRM_PATTERN, at, format!("in the pattern {problem}"))
}

/// Legal, and more than is matched in linear time.
pub(in crate::schema) fn unread(at: Location) -> Diagnostic {
    Diagnostic::new(&CONFIRM_PATTERN, at, "a condition's pattern cannot look around or refer back")
        .note("write what is asked about as several conditions: any of them will do")
}
