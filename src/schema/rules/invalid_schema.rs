use crate::diagnostic::{Diagnostic, rule};
use crate::schema::SchemaError;
use crate::text::Location;

rule! {
    /// arguments whose JSON Schema does not compile
    ///
    /// The rest of the schema is enforced, and what is no JSON Schema is sent as it is: most APIs check the tools of a request and refuse all of them
    /// for one.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)) :dependentRequired (:id "no vector"))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)) :dependentRequired (:id ["id"]))))
    /// ```
    pub(crate) INVALID_SCHEMA, "DT216", "invalid-schema", Warning
}

pub(in crate::schema) fn finding(at: Location, problem: &SchemaError) -> Diagnostic {
    let message = format!("this is no JSON Schema: {}", problem.message);
    Diagnostic::new(&INVALID_SCHEMA, at, message)
        .note("it is sent as it is, which some APIs refuse, and deftool does not enforce it")
}
