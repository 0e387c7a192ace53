use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// :optional inside a schema, where it has no effect
    ///
    /// gptel reads `:optional` of arguments only. Of a property it is sent as a key that no API knows: what is optional is every property that
    /// `:required` of its object does not name.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer :optional t)))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)))))
    /// ```
    pub(crate) OPTIONAL_MISPLACED, "DT218", "optional-misplaced", Warning
}

pub(in crate::spec) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&OPTIONAL_MISPLACED, at, "`:optional` has no effect inside a schema")
        .note("a property is optional unless `:required [\"…\"]` of its object names it")
}
