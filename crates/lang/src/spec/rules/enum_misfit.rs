use crate::diagnostic::{Diagnostic, Edit, Fix, rule};
use crate::spec::schema::{Schema, is_of_type};
use crate::spec::{Json, JsonKind, Member};

rule! {
    /// an :enum value that does not fit the :type
    ///
    /// A value must satisfy every keyword. An `:enum` value that does not have the `:type` can never be sent, and an
    /// empty `:enum` allows no value at all. OpenAI rejects such a schema in strict mode.
    ///
    /// For an array, the values belong in `:items`.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :enum [1 "2"])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :enum [1 2])))
    /// ```
    pub(crate) ENUM_MISFIT, "DT208", "enum-misfit", Error
}

/// Maximum number of labels in addition to the first one.
const MAX_LABELS: usize = 3;

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let Some(Member { value: Json { kind: JsonKind::Array(values), span }, .. }) = schema.get("enum") else {
        return;
    };
    if values.is_empty() {
        findings.push(Diagnostic::new(&ENUM_MISFIT, schema.at(*span), "an empty `:enum` allows no value"));
    }
    let types = schema.types();
    if types.is_empty() {
        return;
    }
    let fits = |value: &Json| types.iter().any(|name| is_of_type(&value.kind, name));
    if types == ["array"] && !values.is_empty() && !values.iter().any(fits) {
        let message = "these `:enum` values are not arrays, but the `:type` is array";
        findings.push(
            Diagnostic::new(&ENUM_MISFIT, schema.at(*span), message)
                .note("restrict the elements with `:items (:type string :enum […])`"),
        );
        return;
    }
    // Reported once, for any number of values.
    let mut misfits = values.iter().filter(|value| !fits(value));
    let Some(first) = misfits.next() else { return };
    let message = format!("this `:enum` value is not of type {}", types.join(" or "));
    let mut finding = Diagnostic::new(&ENUM_MISFIT, schema.at(first.span), message);
    finding.fix = repair(types.as_slice(), values.iter().filter(|value| !fits(value)));
    for other in misfits.by_ref().take(MAX_LABELS) {
        finding = finding.with_label_at(other.span, "also not of this type");
    }
    findings.push(match misfits.count() {
        0 => finding,
        more => finding.note(format!("and {more} more")),
    });
}

/// Returns a fix that writes numbers as strings if strings are expected, or nil as `:json-false`.
fn repair<'v>(types: &[&str], misfits: impl Iterator<Item = &'v Json>) -> Option<Fix> {
    let edits: Option<Vec<Edit>> = misfits
        .map(|value| {
            let replacement = match (&value.kind, types) {
                (JsonKind::Number(number), ["string"]) => super::quoted(&number.to_string()),
                (JsonKind::Object(members), ["boolean"]) if members.is_empty() => String::from(":json-false"),
                _ => return None,
            };
            Some(Edit { span: value.span, replacement })
        })
        .collect();
    let title = if types == ["boolean"] { "write `:json-false`" } else { "write strings" };
    edits.map(|edits| Fix { title: String::from(title), edits, is_safe: types == ["boolean"] })
}
