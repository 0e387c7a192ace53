use crate::diagnostic::{Diagnostic, rule};
use crate::schema::value_checker::Misfit;
use crate::text::Location;

rule! {
    /// a value in :examples that its own schema rejects
    ///
    /// The model treats an example as a valid value. A call that uses it is rejected.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :maxLength 3 :examples ["abc" "abcd"])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :maxLength 3 :examples ["abc" "bcd"])))
    /// ```
    pub(crate) EXAMPLE_MISFIT, "DT230", "example-misfit", Warning
}

pub(in crate::schema) fn finding(at: Location, misfit: &Misfit) -> Diagnostic {
    let finding = Diagnostic::new(&EXAMPLE_MISFIT, at, format!("invalid example: {}", misfit.message));
    misfit.suggest(finding)
}
