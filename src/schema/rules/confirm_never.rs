use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a condition of :confirm that no call can meet
    ///
    /// Conditions are held against arguments that the schema accepted. One that asks for a value that the schema refuses never
    /// holds, and nobody is asked.
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

/// `why`: what the schema says of the value, in a clause.
pub(in crate::schema) fn finding(at: Location, why: &str) -> Diagnostic {
    Diagnostic::new(&CONFIRM_NEVER, at, format!("the argument is never this: {why}"))
}

/// The argument is no text, or its `:enum` holds none that it is found in.
pub(in crate::schema) fn of_pattern(at: Location) -> Diagnostic {
    Diagnostic::new(&CONFIRM_NEVER, at, "the argument never holds a text with this pattern in it")
        .note("a string is a pattern; other values are written as they are: `t`, `:json-false`, `:null`, 5")
}
