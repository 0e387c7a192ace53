use crate::diagnostic::{Diagnostic, rule};
use crate::spec::keywords::{self, ValueKind};
use crate::spec::schema::Schema;
use crate::spec::{Json, JsonKind, Member};

rule! {
    /// a schema keyword with the wrong kind of value
    ///
    /// The value is sent unchanged and makes the schema invalid. OpenAI, Anthropic and Gemini validate tools and
    /// reject the request.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :minLength "3")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :minLength 3)))
    /// ```
    pub(crate) KEYWORD_VALUE, "DT220", "keyword-value", Error
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    for member in schema.members {
        let Some(keyword) = keywords::find(&member.key) else { continue };
        let value = &member.value;
        if is_right(keyword.value_kind, &value.kind) || has_own_rule(member) {
            continue;
        }
        let message = format!("`:{}` takes {}, found {}", member.key, keyword.value_kind.describe(), describe(value));
        let finding = Diagnostic::new(&KEYWORD_VALUE, schema.at(value.span), message);
        let number = value.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty());
        findings.push(match (keyword.value_kind, number) {
            (ValueKind::Count | ValueKind::Number, Some(number)) => {
                finding.fixed_by(format!("write {number}"), value.span, number)
            }
            _ => finding,
        });
    }
}

fn is_right(value_kind: ValueKind, value: &JsonKind) -> bool {
    match value_kind {
        ValueKind::Text => matches!(value, JsonKind::String(_)),
        ValueKind::Flag => matches!(value, JsonKind::Bool(_)),
        ValueKind::Number => matches!(value, JsonKind::Number(_)),
        ValueKind::Positive => matches!(value, JsonKind::Number(number) if number.as_f64().is_some_and(|n| n > 0.0)),
        ValueKind::Count => matches!(value, JsonKind::Number(number)
            if number.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)),
        ValueKind::Vector => matches!(value, JsonKind::Array(_)),
        ValueKind::Schemas => !matches!(value, JsonKind::Array(items) if items.is_empty()),
        // Values that are not schemas have been reported during lowering.
        ValueKind::Schema | ValueKind::Named | ValueKind::Own | ValueKind::Any => true,
    }
}

/// Whether another rule handles the value: `nil-value` for nil, `boolean-bound` for the flags of an old draft.
fn has_own_rule(member: &Member) -> bool {
    match &member.value.kind {
        JsonKind::Object(members) => members.is_empty(),
        JsonKind::Bool(_) => matches!(member.key.as_str(), "exclusiveMinimum" | "exclusiveMaximum"),
        JsonKind::Null | JsonKind::Number(_) | JsonKind::String(_) | JsonKind::Array(_) => false,
    }
}

fn describe(value: &Json) -> String {
    match &value.kind {
        JsonKind::Null => String::from("null"),
        JsonKind::Bool(true) => String::from("t"),
        JsonKind::Bool(false) => String::from(":json-false"),
        JsonKind::Number(number) => number.to_string(),
        JsonKind::String(_) => String::from("a string"),
        JsonKind::Array(items) if items.is_empty() => String::from("an empty vector"),
        JsonKind::Array(_) => String::from("a vector"),
        JsonKind::Object(_) => String::from("a plist"),
    }
}
