use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::schema::{SchemaPosition, Schema};

rule! {
    /// an object without a definition of its properties
    ///
    /// For OpenAI, an object argument is closed by default: without `:properties` the model can send only `{}`. Gemini
    /// rejects such a schema. Use `:additionalProperties t` to allow any keys.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)))))
    /// ```
    pub(crate) OBJECT_WITHOUT_PROPERTIES, "DT210", "object-without-properties", Warning
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    // A schema with `:items` is reported by `keyword-without-effect`.
    let exempt = ["properties", "anyOf", "oneOf", "allOf", "$ref", "patternProperties", "enum", "const", "items"];
    if !schema.has_type("object") || exempt.into_iter().any(|key| schema.is_written(key)) {
        return;
    }
    match schema.get("additionalProperties") {
        Some(member) if member.value.kind == JsonKind::Bool(false) => {
            let message = "an object with neither `:properties` nor additional properties must be empty";
            findings.push(Diagnostic::new(&OBJECT_WITHOUT_PROPERTIES, schema.at(member.span()), message));
        }
        None if !schema.is_written("additionalProperties") => {
            let message = "missing `:properties` for the object";
            let finding = Diagnostic::new(&OBJECT_WITHOUT_PROPERTIES, schema.at(schema.type_span()), message);
            findings.push(if matches!(schema.position, SchemaPosition::Argument { .. }) {
                finding.note("such an argument accepts only `{}`; write `:additionalProperties t` to allow any keys")
            } else {
                finding
            });
        }
        Some(_) | None => {}
    }
}
