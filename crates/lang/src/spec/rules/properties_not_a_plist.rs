use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// :properties that is not a plist of plists
    ///
    /// `:properties` is a JSON object with the names as keys: `(:first (:type string) :second (:type number))`. Only
    /// `:args` is a list of plists with `:name`. Emacs cannot write such a list of properties as JSON.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties ((:name "id" :type integer)))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)))))
    /// ```
    pub(crate) PROPERTIES_NOT_A_PLIST, "DT211", "properties-not-a-plist", Error
}

pub(in crate::spec) fn finding(at: Location, key: &str, found: &str) -> Diagnostic {
    let message = format!("`:{key}` takes a plist of schemas, found {found}");
    Diagnostic::new(&PROPERTIES_NOT_A_PLIST, at, message)
        .note("write `(:first (:type string) :second (:type number))`")
}
