use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::schema::{Schema, is_of_type};
use crate::text::Span;

rule! {
    /// an :enum without a :type
    ///
    /// gptel requires the type, and Gemini rejects an `enum` without one.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :enum ["a" "b"])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ["a" "b"])))
    /// ```
    pub(crate) ENUM_WITHOUT_TYPE, "DT232", "enum-without-type", Warning
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let Some(member) = schema.get("enum") else { return };
    if ["type", "anyOf", "oneOf", "allOf", "$ref"].into_iter().any(|key| schema.is_written(key)) {
        return;
    }
    let JsonKind::Array(values) = &member.value.kind else { return };
    // An empty `:enum` has been reported.
    if values.is_empty() {
        return;
    }
    let finding = Diagnostic::new(&ENUM_WITHOUT_TYPE, schema.at(member.key_span), "missing `:type` for `:enum`");
    let all_are = |name: &str| values.iter().all(|value| is_of_type(&value.kind, name));
    findings.push(match ["string", "integer", "number", "boolean"].into_iter().find(|name| all_are(name)) {
        Some(name) => {
            let start = Span { start: member.key_span.start, end: member.key_span.start };
            finding.fixed_by(format!("add `:type {name}`"), start, format!(":type {name} "))
        }
        None => finding.note("its values have several types; list them, as in `:type [\"string\" \"null\"]`"),
    });
}
