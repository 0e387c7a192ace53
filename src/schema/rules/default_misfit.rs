use crate::diagnostic::{Diagnostic, rule};
use crate::schema::judge::Misfit;
use crate::text::Location;

rule! {
    /// a :default that its own schema refuses
    ///
    /// The model reads the default as an example of what it may send. What follows it is refused.
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
        Diagnostic::new(&DEFAULT_MISFIT, at, format!("the `:default` breaks its own schema: {}", misfit.message));
    misfit.suggest(finding)
}
