use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// :name inside a schema, where it has no effect
    ///
    /// Only arguments have a `:name`. A property is named by its key, and array elements have no name. The key is sent
    /// as an unknown schema keyword.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items (:name "y" :type string))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items (:type string))))
    /// ```
    pub(crate) NAME_MISPLACED, "DT244", "name-misplaced", Warning
}

pub(in crate::spec) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&NAME_MISPLACED, at, "`:name` has no effect inside a schema")
        .note("a property is named by its key: `:properties (:city (:type string))`")
}
