use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::{Place, Schema};

rule! {
    /// an argument or property without a :type
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
    let (sort, name) = match schema.place {
        Place::Argument { name, .. } => ("argument", name),
        // `:properties (:x nil)` takes anything, and says so.
        Place::Property(name) if !schema.is_empty() => ("property", name),
        Place::Property(_) | Place::Nested => return,
    };
    if !TYPED.into_iter().any(|key| schema.is_written(key)) {
        let message = format!("the {sort} `{}` has no `:type`", name.value);
        findings.push(Diagnostic::new(&MISSING_TYPE, schema.at(name.span), message));
    }
}
