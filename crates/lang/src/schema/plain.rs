//! Fast check for schemas that certainly compile.
//!
//! Compiling a validator for every tool would dominate the cost of checking a large project. Nearly all schemas do not
//! need it: each keyword has a value that the 2020-12 metaschema allows, and there are no references and no complex
//! patterns. [`is_plain`] recognises these; for any other schema it returns false, and the compiler decides.

use crate::spec::keywords::{self, ValueKind};
use crate::spec::{Json, JsonKind, Member};

/// Returns whether the schema with these members certainly compiles.
pub(super) fn is_plain(members: &[Member]) -> bool {
    members.iter().all(is_plain_keyword)
}

fn is_plain_keyword(member: &Member) -> bool {
    let value = &member.value;
    let Some(keyword) = keywords::find(&member.key) else { return false };
    match (keyword.name, keyword.value_kind) {
        ("pattern", _) => value.as_str().is_some_and(is_plain_pattern),
        ("type", _) => value.as_str().is_some_and(|word| keywords::TYPES.contains(&word)),
        ("enum", _) => matches!(value.kind, JsonKind::Array(_)),
        ("required", _) => is_list_of_names(value),
        ("const" | "default" | "nullable", _) => true,
        // Patterns as names, references, and keywords that need a check of the value.
        ("patternProperties" | "$ref" | "dependentRequired", _)
        | (_, ValueKind::Positive | ValueKind::Own | ValueKind::Any) => false,
        (_, ValueKind::Text) => value.as_str().is_some(),
        (_, ValueKind::Number) => matches!(value.kind, JsonKind::Number(_)),
        (_, ValueKind::Count) => matches!(&value.kind, JsonKind::Number(number) if number.is_u64()),
        (_, ValueKind::Flag) => matches!(value.kind, JsonKind::Bool(_)),
        (_, ValueKind::Vector) => matches!(value.kind, JsonKind::Array(_)),
        (_, ValueKind::Schema) => is_schema(value),
        (_, ValueKind::Schemas) => {
            matches!(&value.kind, JsonKind::Array(schemas) if !schemas.is_empty() && schemas.iter().all(is_schema))
        }
        (_, ValueKind::Named) => {
            matches!(&value.kind, JsonKind::Object(named) if named.iter().all(|member| is_schema(&member.value)))
        }
    }
}

fn is_schema(value: &Json) -> bool {
    match &value.kind {
        JsonKind::Bool(_) => true,
        JsonKind::Object(members) => is_plain(members),
        JsonKind::Null | JsonKind::Number(_) | JsonKind::String(_) | JsonKind::Array(_) => false,
    }
}

fn is_list_of_names(value: &Json) -> bool {
    let JsonKind::Array(names) = &value.kind else { return false };
    let mut seen = std::collections::HashSet::new();
    names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
}

/// Returns whether a pattern has only literals and simple classes, with optional quantifiers and anchors. Such a
/// pattern compiles.
fn is_plain_pattern(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let mut rest = inner.strip_suffix('$').unwrap_or(inner);
    let is_literal =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | ' ' | ':' | '@' | '.' | ',');
    while let Some(first) = rest.chars().next() {
        if let Some(class) = rest.strip_prefix('[') {
            let Some((inside, after)) = class.split_once(']') else { return false };
            if !is_plain_class(inside) {
                return false;
            }
            rest = after;
        } else if is_literal(first) {
            rest = rest.get(1..).unwrap_or("");
        } else {
            return false;
        }
        rest = rest.strip_prefix(['*', '+', '?']).unwrap_or(rest);
    }
    true
}

/// Returns whether a class has only ascending ranges and literals, as in `a-z0-9_`.
fn is_plain_class(inside: &str) -> bool {
    let bytes = inside.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let is_range = bytes.get(at + 1) == Some(&b'-') && at + 2 < bytes.len();
        let end = if is_range { bytes.get(at + 2).copied().unwrap_or(byte) } else { byte };
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || (!is_range && b"_./ :@,*?-".contains(&byte));
        // A hyphen is certainly a literal only at the end.
        if !is_plain(byte) || !is_plain(end) || end < byte || (byte == b'-' && at + 1 < bytes.len()) {
            return false;
        }
        at += if is_range { 3 } else { 1 };
    }
    !bytes.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ArgumentValidator;
    use crate::text::Span;
    use serde_json::{Value, json};

    fn json_of(value: &Value) -> Json {
        let span = Span::default();
        let kind = match value {
            Value::Null => JsonKind::Null,
            Value::Bool(value) => JsonKind::Bool(*value),
            Value::Number(number) => JsonKind::Number(number.clone()),
            Value::String(text) => JsonKind::String(text.clone()),
            Value::Array(items) => JsonKind::Array(items.iter().map(json_of).collect()),
            Value::Object(members) => JsonKind::Object(
                members
                    .iter()
                    .map(|(key, value)| Member { key: key.clone(), key_span: span, value: json_of(value) })
                    .collect(),
            ),
        };
        Json { span, kind }
    }

    /// Tries every keyword, and one unknown keyword, with every kind of value.
    #[test]
    fn plain_schemas_compile() {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(1.5),
            json!("string"),
            json!("#/nowhere"),
            json!("("),
            json!([]),
            json!(["a", "a"]),
            json!([{"type": "string"}, {"pattern": "a"}]),
            json!([3]),
            json!({}),
            json!({"(": {"type": "string"}}),
            json!({"a": {"$ref": "#/nowhere"}}),
            json!({"type": "strin"}),
            json!({"a": ["b", "b"]}),
        ];
        let mut plain = 0;
        for keyword in keywords::names().chain(["name"]) {
            for value in &values {
                let schema = json!({keyword: value});
                let JsonKind::Object(members) = json_of(&schema).kind else { unreachable!() };
                if is_plain(&members) {
                    plain += 1;
                    assert!(ArgumentValidator::compile("t", &schema).is_ok(), "{schema}");
                }
            }
        }
        assert!(plain > 100, "{plain}");
    }

    #[test]
    fn plain_patterns_compile() {
        let plain =
            ["^[a-z0-9_*?/.-]+$", "^[A-Z]+$", "", "^$", "a*b", "[a]?", "10:30", "^#".trim_end_matches('#')];
        for pattern in plain {
            assert!(is_plain_pattern(pattern), "{pattern}");
        }
        for pattern in [
            "[z-a]", "[", "(", "a{2}", "\\d", "[^a]", "[]", "*", "a**", "+", "[a-]]", "[--a]", "é", "a$b",
            "a^",
        ] {
            assert!(!is_plain_pattern(pattern), "{pattern}");
        }
        let mut random = fastrand::Rng::with_seed(7);
        let mut count = 0;
        for _ in 0..20_000 {
            let pieces =
                ["[", "]", "a", "z", "-", "^", "$", "*", "+", "?", "9", "_", ".", "\\", "(", "[a-z]", " "];
            let pattern: String =
                (0..random.usize(..8)).map(|_| pieces[random.usize(..pieces.len())]).collect();
            if is_plain_pattern(&pattern) {
                count += 1;
                let schema = json!({"type": "string", "pattern": pattern});
                assert!(ArgumentValidator::compile("t", &schema).is_ok(), "{pattern}");
            }
        }
        assert!(count > 500, "{count}");
    }
}
