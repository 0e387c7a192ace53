use crate::diagnostic::{Diagnostic, rule};
use std::collections::HashSet;

use crate::spec::schema::Schema;
use crate::spec::{JsonKind, nearest};

rule! {
    /// :required with an unknown property
    ///
    /// A required property that is missing in the `:properties` of a closed object makes every value invalid. Gemini
    /// rejects the schema, and so does OpenAI in strict mode.
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

/// Maximum number of suggestions for one schema, to limit their cost.
const MAX_SUGGESTIONS: usize = 20;

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let (Some(required), Some(properties)) = (schema.get("required"), schema.get("properties")) else {
        return;
    };
    let (JsonKind::Array(names), JsonKind::Object(known)) = (&required.value.kind, &properties.value.kind)
    else {
        return;
    };
    let keys: HashSet<&str> = known.iter().map(|property| property.key.as_str()).collect();
    let unknown = names.iter().filter_map(|name| Some((name, name.as_str()?)));
    for (index, (name, word)) in unknown.filter(|(_, word)| !keys.contains(word)).enumerate() {
        let message = format!("unknown property `{word}` in `:required`");
        let mut finding = Diagnostic::new(&REQUIRED_UNKNOWN, schema.at(name.span), message);
        let candidates = || known.iter().map(|property| property.key.as_str());
        if let Some(near) = (index < MAX_SUGGESTIONS).then(|| nearest(word, candidates())).flatten() {
            finding = finding.did_you_mean(name.span, super::quoted(near));
        }
        findings.push(finding);
    }
}
