use crate::diagnostic::{Diagnostic, rule};
use crate::schema::value_checker::Misfit;
use crate::text::Location;

rule! {
    /// a :default that its own schema rejects
    ///
    /// The model treats the default as an example of a valid value. A call that uses it is rejected.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :minimum 1 :default 0 :optional t)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :minimum 1 :default 1 :optional t)))
    /// ```
    pub(crate) DEFAULT_MISFIT, "DT229", "default-misfit", Warning
}

pub(in crate::schema) fn finding(at: Location, misfit: &Misfit) -> Diagnostic {
    let finding =
        Diagnostic::new(&DEFAULT_MISFIT, at, format!("invalid `:default`: {}", misfit.message));
    misfit.suggest(finding)
}
