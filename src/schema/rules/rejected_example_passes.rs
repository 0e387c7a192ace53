use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an example of :rejects that the schema takes
    ///
    /// `:rejects` holds calls that must not be valid. The schema takes this one: either it or the example is wrong.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer))
    ///     :rejects [(:x 1)])
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer))
    ///     :rejects [(:x "1")])
    /// ```
    pub(crate) REJECTED_EXAMPLE_PASSES, "DT246", "rejected-example-passes", Error
}

pub(in crate::schema) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&REJECTED_EXAMPLE_PASSES, at, "the schema takes what `:rejects` gives")
}
