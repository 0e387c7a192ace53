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

/// Most names for which a near one is looked up.
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
        let message = format!("`:required` names `{word}`, which `:properties` does not have");
        let mut finding = Diagnostic::new(&REQUIRED_UNKNOWN, schema.at(name.span), message);
        let candidates = || known.iter().map(|property| property.key.as_str());
        // Nobody reads the hundredth suggestion, and each has its cost.
        if let Some(near) = (index < MAX_SUGGESTIONS).then(|| nearest(word, candidates())).flatten() {
            finding = finding.meant(name.span, super::quoted(near));
        }
        findings.push(finding);
    }
}
