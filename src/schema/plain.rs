//! Whether a schema is one at a glance.
//!
//! Compiling a validator for every tool is most of what checking a large project would cost. Nearly all schemas need
//! none: each keyword holds what the metaschema of 2020-12 wants, and there is no reference and no odd pattern in them.
//! [`is_plain`] knows these; for any other schema it says no, and the compiler decides.

use crate::spec::{Json, JsonKind, Member};

/// Whether the schema of these members certainly compiles.
pub(super) fn is_plain(members: &[Member]) -> bool {
    members.iter().all(is_plain_keyword)
}

fn is_plain_keyword(member: &Member) -> bool {
    let value = &member.value;
    match member.key.as_str() {
        "type" => is_type(value),
        "description" | "title" | "format" | "contentEncoding" | "contentMediaType" => {
            value.as_str().is_some()
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            matches!(value.kind, JsonKind::Number(_))
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => matches!(&value.kind, JsonKind::Number(number) if number.is_u64()),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => matches!(value.kind, JsonKind::Bool(_)),
        "enum" | "examples" => matches!(value.kind, JsonKind::Array(_)),
        "required" => is_list_of_names(value),
        "properties" => {
            matches!(&value.kind, JsonKind::Object(named) if named.iter().all(|member| is_schema(&member.value)))
        }
        "items"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties" => is_schema(value),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
            matches!(&value.kind, JsonKind::Array(schemas) if !schemas.is_empty() && schemas.iter().all(is_schema))
        }
        "const" | "default" | "nullable" => true,
        "pattern" => value.as_str().is_some_and(is_plain_pattern),
        // References, `multipleOf`, keywords of other drafts and unknown ones.
        _ => false,
    }
}

fn is_schema(value: &Json) -> bool {
    match &value.kind {
        JsonKind::Bool(_) => true,
        JsonKind::Object(members) => is_plain(members),
        JsonKind::Null | JsonKind::Number(_) | JsonKind::String(_) | JsonKind::Array(_) => false,
    }
}

fn is_type(value: &Json) -> bool {
    let is_known = |word: &str| {
        matches!(word, "string" | "number" | "integer" | "boolean" | "array" | "object" | "null")
    };
    value.as_str().is_some_and(is_known)
}

fn is_list_of_names(value: &Json) -> bool {
    let JsonKind::Array(names) = &value.kind else { return false };
    let mut seen = std::collections::HashSet::new();
    names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
}

/// Letters, digits and the like, classes of them, each repeated or not, between anchors: such a pattern compiles.
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

/// `a-z0-9_`: ranges upward, and what stands for itself.
fn is_plain_class(inside: &str) -> bool {
    let bytes = inside.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let is_range = bytes.get(at + 1) == Some(&b'-') && at + 2 < bytes.len();
        let end = if is_range { bytes.get(at + 2).copied().unwrap_or(byte) } else { byte };
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || (!is_range && b"_./ :@,*?-".contains(&byte));
        // Only at the end a hyphen stands for itself beyond doubt.
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
    use serde_json::json;

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
