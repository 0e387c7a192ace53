use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::{Schema, SchemaPosition};

rule! {
    /// an argument, property or element without a :type
    ///
    /// Without a type, the model can send any value. Gemini rejects a schema without one, and so does OpenAI in strict
    /// mode.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x.")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) MISSING_TYPE, "DT203", "missing-type", Warning
}

/// Keywords that define the type or replace it.
const TYPED: [&str; 8] = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const", "not"];

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    if TYPED.into_iter().any(|key| schema.is_written(key)) {
        return;
    }
    let (message, span) = match schema.position {
        SchemaPosition::Argument { name, .. } => {
            (format!("missing `:type` for the argument `{}`", name.value), name.span)
        }
        // `:properties (:x nil)` explicitly accepts any value.
        SchemaPosition::Property(_) | SchemaPosition::Items if schema.is_empty() => return,
        SchemaPosition::Property(name) => {
            (format!("missing `:type` for the property `{}`", name.value), name.span)
        }
        SchemaPosition::Items => (String::from("missing `:type` for the `:items`"), schema.span),
        SchemaPosition::Nested => return,
    };
    findings.push(Diagnostic::new(&MISSING_TYPE, schema.at(span), message));
}
