use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::{Place, Schema};

rule! {
    /// an argument, property or element without a :type
    ///
    /// Without a type the model may send anything. Gemini refuses a schema without one, and OpenAI does in strict mode.
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

/// What tells the type, or stands in its place.
const TYPED: [&str; 8] = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const", "not"];

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let (message, span) = match schema.place {
        Place::Argument { name, .. } => (format!("the argument `{}` has no `:type`", name.value), name.span),
        // `:properties (:x nil)` takes anything, and says so.
        Place::Property(_) | Place::Items if schema.is_empty() => return,
        Place::Property(name) => (format!("the property `{}` has no `:type`", name.value), name.span),
        Place::Items => (String::from("the `:items` have no `:type`"), schema.span),
        Place::Nested => return,
    };
    if !TYPED.into_iter().any(|key| schema.is_written(key)) {
        findings.push(Diagnostic::new(&MISSING_TYPE, schema.at(span), message));
    }
}
