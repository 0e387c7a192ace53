use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a call in :rejects that the schema accepts
    ///
    /// `:rejects` lists calls that must be invalid. The schema accepts this one, so either the schema or the example is
    /// wrong.
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
    pub REJECTED_EXAMPLE_PASSES, "DT246", "rejected-example-passes", Error
}

pub(in crate::schema) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&REJECTED_EXAMPLE_PASSES, at, "the schema accepts this example of `:rejects`")
}
