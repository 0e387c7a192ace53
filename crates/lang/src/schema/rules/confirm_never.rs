use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a condition of :confirm that is never met
    ///
    /// Conditions are evaluated on arguments that the schema accepts. A condition on a value that the schema rejects is
    /// never met, so calls run without approval.
    ///
    /// ```eld fails
    /// (deftool :name "drop" :description "Drop a file." :confirm (:when (:force "yes"))
    ///     :args ((:name "force" :description "Whether to." :type boolean)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "drop" :description "Drop a file." :confirm (:when (:force t))
    ///     :args ((:name "force" :description "Whether to." :type boolean)))
    /// ```
    pub(crate) CONFIRM_NEVER, "DT258", "confirm-never", Error
}

/// `why` is a clause that explains why the schema rejects the value.
pub(in crate::schema) fn finding(at: Location, why: &str) -> Diagnostic {
    Diagnostic::new(&CONFIRM_NEVER, at, format!("the argument never has this value: {why}"))
}

/// The argument is not a string, or no value of its `:enum` matches the pattern.
pub(in crate::schema) fn of_pattern(at: Location) -> Diagnostic {
    Diagnostic::new(&CONFIRM_NEVER, at, "the argument never matches this pattern")
        .note("a string is a pattern; write other values literally: `t`, `:json-false`, `:null`, 5")
}
