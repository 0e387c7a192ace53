//! Whether a schema is one at a glance.
//!
//! Compiling a validator for every tool is most of what checking a large project would cost. Nearly all schemas need
//! none: each keyword holds what the metaschema of 2020-12 wants, and there is no pattern and no reference to look into.
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
        "description" | "title" | "format" | "contentEncoding" | "contentMediaType" => value.as_str().is_some(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => matches!(value.kind, JsonKind::Number(_)),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => matches!(&value.kind, JsonKind::Number(number) if number.is_u64()),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => matches!(value.kind, JsonKind::Bool(_)),
        "enum" | "examples" => matches!(value.kind, JsonKind::Array(_)),
        "required" => is_list_of_names(value),
        "properties" => {
            matches!(&value.kind, JsonKind::Object(named) if named.iter().all(|member| is_schema(&member.value)))
        }
        "items" | "additionalProperties" | "contains" | "propertyNames" | "not" | "if" | "then" | "else"
        | "unevaluatedItems" | "unevaluatedProperties" => is_schema(value),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
            matches!(&value.kind, JsonKind::Array(schemas) if !schemas.is_empty() && schemas.iter().all(is_schema))
        }
        "const" | "default" | "nullable" => true,
        // Patterns, references, `multipleOf`, keywords of other drafts and unknown ones.
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
    let is_known =
        |word: &str| matches!(word, "string" | "number" | "integer" | "boolean" | "array" | "object" | "null");
    value.as_str().is_some_and(is_known)
}

fn is_list_of_names(value: &Json) -> bool {
    let JsonKind::Array(names) = &value.kind else { return false };
    let mut seen = std::collections::HashSet::new();
    names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
}
