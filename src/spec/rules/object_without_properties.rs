use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::schema::{Place, Schema};

rule! {
    /// an object that does not say what it holds
    ///
    /// For OpenAI an argument of type object is closed where the spec is silent: without `:properties` the model can send nothing but `{}`. Gemini
    /// refuses it. What takes any key says so with `:additionalProperties t`.
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
    // What has `:items` is no object: `keyword-without-effect` tells it.
    let told = ["properties", "anyOf", "oneOf", "allOf", "$ref", "patternProperties", "enum", "const", "items"];
    if !schema.types().contains(&"object") || told.into_iter().any(|key| schema.is_written(key)) {
        return;
    }
    match schema.get("additionalProperties") {
        Some(member) if member.value.kind == JsonKind::Bool(false) => {
            let message = "an object without `:properties` that allows no others can only be empty";
            findings.push(Diagnostic::new(&OBJECT_WITHOUT_PROPERTIES, schema.at(member.span()), message));
        }
        None if !schema.is_written("additionalProperties") => {
            let message = "an object without `:properties` does not say what it holds";
            let finding = Diagnostic::new(&OBJECT_WITHOUT_PROPERTIES, schema.at(schema.type_span()), message);
            findings.push(if matches!(schema.place, Place::Argument { .. }) {
                finding.note("such an argument is closed and takes only `{}`; for any keys write `:additionalProperties t`")
            } else {
                finding
            });
        }
        Some(_) | None => {}
    }
}
