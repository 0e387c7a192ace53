use crate::diagnostic::{Diagnostic, rule};
use std::collections::HashSet;

use crate::spec::schema::Schema;
use crate::spec::{JsonKind, nearest};

rule! {
    /// :required that names no property
    ///
    /// What is required and not among the `:properties` of a closed object can never be given. Gemini refuses the schema, and so does OpenAI in
    /// strict mode.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)) :required ["ids"])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :properties (:id (:type integer)) :required ["id"])))
    /// ```
    pub(crate) REQUIRED_UNKNOWN, "DT213", "required-unknown", Error
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let (Some(required), Some(properties)) = (schema.get("required"), schema.get("properties")) else {
        return;
    };
    let (JsonKind::Array(names), JsonKind::Object(known)) = (&required.value.kind, &properties.value.kind)
    else {
        return;
    };
    let keys: HashSet<&str> = known.iter().map(|property| property.key.as_str()).collect();
    for name in names {
        let Some(word) = name.as_str().filter(|word| !keys.contains(word)) else { continue };
        let message = format!("`:required` names `{word}`, which `:properties` does not have");
        let mut finding = Diagnostic::new(&REQUIRED_UNKNOWN, schema.at(name.span), message);
        if let Some(near) = nearest(word, known.iter().map(|property| property.key.as_str())) {
            finding = finding.labelled(format!("did you mean \"{near}\"?")).maybe_fixed_by(
                format!("write \"{near}\""),
                name.span,
                super::quoted(near),
            );
        }
        findings.push(finding);
    }
}
