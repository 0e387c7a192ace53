use crate::diagnostic::{Diagnostic, rule};
use crate::schema::judge::Misfit;
use crate::text::Location;

rule! {
    /// one of the :examples that their own schema refuses
    ///
    /// The model takes an example for what it may send. What follows it is refused.
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
    let finding = Diagnostic::new(&EXAMPLE_MISFIT, at, format!("this example breaks its own schema: {}", misfit.message));
    misfit.suggest(finding)
}
