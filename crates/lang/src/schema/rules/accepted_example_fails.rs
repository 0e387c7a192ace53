use crate::diagnostic::{Diagnostic, rule};
use crate::schema::Violation;
use crate::text::Location;

rule! {
    /// a call in :accepts that the schema rejects
    ///
    /// `:accepts` lists calls that must be valid, and results that must match `:returns`. The schema rejects this one, so
    /// either the schema or the example is wrong.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer))
    ///     :accepts [(:x "1")])
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer))
    ///     :accepts [(:x 1)])
    /// ```
    pub ACCEPTED_EXAMPLE_FAILS, "DT245", "accepted-example-fails", Error
}

/// The finding for the arguments of an example. `is_nil_for_false`: the value is nil where a boolean is expected.
pub(in crate::schema) fn finding(at: Location, violation: &Violation, is_nil_for_false: bool) -> Diagnostic {
    let message = format!("the schema rejects this example of `:accepts`: {}", violation.in_value());
    let finding = Diagnostic::new(&ACCEPTED_EXAMPLE_FAILS, at, message);
    if is_nil_for_false {
        return finding.fixed_by("write `:json-false`", at.span, ":json-false");
    }
    finding
}

/// The finding for the result of an example.
pub(in crate::schema) fn result(at: Location, violation: &Violation) -> Diagnostic {
    Diagnostic::new(&ACCEPTED_EXAMPLE_FAILS, at, format!("the schema in `:returns` rejects this result: {}", violation.in_value()))
}
