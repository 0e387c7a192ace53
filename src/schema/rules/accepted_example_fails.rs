use crate::diagnostic::{Diagnostic, rule};
use crate::schema::Violation;
use crate::text::Location;

rule! {
    /// an example of :accepts that the schema refuses
    ///
    /// `:accepts` holds calls that must be valid. The schema refuses this one: either it or the example is wrong.
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
    pub(crate) ACCEPTED_EXAMPLE_FAILS, "DT245", "accepted-example-fails", Error
}

pub(in crate::schema) fn finding(at: Location, violation: &Violation) -> Diagnostic {
    Diagnostic::new(&ACCEPTED_EXAMPLE_FAILS, at, format!("the schema refuses what `:accepts` gives: {}", violation.in_value()))
}
