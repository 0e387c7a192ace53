use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// :optional inside a schema, where it has no effect
    ///
    /// gptel supports `:optional` only for arguments. On a property it is sent as an unknown schema keyword. A
    /// property is optional unless it is listed in `:required` of its object.
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
        .note("a property is optional unless it is listed in `:required [\"…\"]` of its object")
}
