use crate::diagnostic::{Diagnostic, rule};
use crate::schema::SchemaError;
use crate::text::Location;

rule! {
    /// arguments with an invalid JSON Schema
    ///
    /// The valid part of the schema is enforced. The invalid part is sent unchanged: most APIs check the tools of a
    /// request and reject the whole request because of one invalid schema.
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
    let message = format!("invalid JSON Schema: {}", problem.message);
    Diagnostic::new(&INVALID_SCHEMA, at, message)
        .note("it is sent unchanged, but deftool does not enforce it, and some APIs reject it")
}
