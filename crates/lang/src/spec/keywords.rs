//! The keywords of a schema, with their value kinds and the types they apply to.
//!
//! These are the keywords of JSON Schema 2020-12, and `definitions` and `nullable`, which APIs still accept.
//! Source: json-schema.org, draft 2020-12, core and validation (2026-11).

use std::sync::LazyLock;

/// A schema keyword.
pub(crate) struct Keyword {
    pub(crate) name: &'static str,
    pub(crate) value_kind: ValueKind,
    /// The types it applies to; empty for all.
    pub(crate) on: &'static [&'static str],
}

/// The kind of value that a keyword takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// One schema.
    Schema,
    /// A vector of at least one schema.
    Schemas,
    /// A plist from names to schemas.
    Named,
    /// A string.
    Text,
    /// `t` or `:json-false`.
    Flag,
    /// An integer, 0 or more.
    Count,
    /// A number.
    Number,
    /// A number above 0.
    Positive,
    /// A vector.
    Vector,
    /// `:type`, `:enum` and `:required` have their own rules.
    Own,
    /// Any value.
    Any,
}

impl ValueKind {
    /// Whether the value contains schemas.
    pub(crate) fn holds_schemas(self) -> bool {
        matches!(self, Self::Schema | Self::Schemas | Self::Named)
    }

    /// Returns a description of the expected value, for messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Schema => "a schema plist such as `(:type string)`",
            Self::Schemas => "a vector of schema plists",
            Self::Named => "a plist of schemas",
            Self::Text => "a string",
            Self::Flag => "t or :json-false",
            Self::Count => "an integer of 0 or more",
            Self::Number => "a number",
            Self::Positive => "a number above 0",
            Self::Vector | Self::Own => "a vector",
            Self::Any => "a value",
        }
    }
}

const fn keyword(name: &'static str, value_kind: ValueKind, on: &'static [&'static str]) -> Keyword {
    Keyword { name, value_kind, on }
}

const STRING: &[&str] = &["string"];
const NUMBERS: &[&str] = &["number", "integer"];
const ARRAY: &[&str] = &["array"];
const OBJECT: &[&str] = &["object"];

/// All keywords.
pub(crate) const TABLE: [Keyword; 52] = [
    keyword("type", ValueKind::Own, &[]),
    keyword("description", ValueKind::Text, &[]),
    keyword("enum", ValueKind::Own, &[]),
    keyword("const", ValueKind::Any, &[]),
    keyword("items", ValueKind::Schema, ARRAY),
    keyword("properties", ValueKind::Named, OBJECT),
    keyword("required", ValueKind::Own, OBJECT),
    keyword("additionalProperties", ValueKind::Schema, OBJECT),
    keyword("default", ValueKind::Any, &[]),
    keyword("examples", ValueKind::Vector, &[]),
    keyword("title", ValueKind::Text, &[]),
    keyword("format", ValueKind::Text, &[]),
    keyword("pattern", ValueKind::Text, STRING),
    keyword("minLength", ValueKind::Count, STRING),
    keyword("maxLength", ValueKind::Count, STRING),
    keyword("minimum", ValueKind::Number, NUMBERS),
    keyword("maximum", ValueKind::Number, NUMBERS),
    keyword("exclusiveMinimum", ValueKind::Number, NUMBERS),
    keyword("exclusiveMaximum", ValueKind::Number, NUMBERS),
    keyword("multipleOf", ValueKind::Positive, NUMBERS),
    keyword("minItems", ValueKind::Count, ARRAY),
    keyword("maxItems", ValueKind::Count, ARRAY),
    keyword("uniqueItems", ValueKind::Flag, ARRAY),
    keyword("prefixItems", ValueKind::Schemas, ARRAY),
    keyword("contains", ValueKind::Schema, ARRAY),
    keyword("minContains", ValueKind::Count, ARRAY),
    keyword("maxContains", ValueKind::Count, ARRAY),
    keyword("minProperties", ValueKind::Count, OBJECT),
    keyword("maxProperties", ValueKind::Count, OBJECT),
    keyword("patternProperties", ValueKind::Named, OBJECT),
    keyword("propertyNames", ValueKind::Schema, OBJECT),
    keyword("dependentRequired", ValueKind::Any, OBJECT),
    keyword("dependentSchemas", ValueKind::Named, OBJECT),
    keyword("unevaluatedItems", ValueKind::Schema, ARRAY),
    keyword("unevaluatedProperties", ValueKind::Schema, OBJECT),
    keyword("anyOf", ValueKind::Schemas, &[]),
    keyword("oneOf", ValueKind::Schemas, &[]),
    keyword("allOf", ValueKind::Schemas, &[]),
    keyword("not", ValueKind::Schema, &[]),
    keyword("if", ValueKind::Schema, &[]),
    keyword("then", ValueKind::Schema, &[]),
    keyword("else", ValueKind::Schema, &[]),
    keyword("$ref", ValueKind::Text, &[]),
    keyword("$defs", ValueKind::Named, &[]),
    keyword("definitions", ValueKind::Named, &[]),
    keyword("$comment", ValueKind::Text, &[]),
    keyword("deprecated", ValueKind::Flag, &[]),
    keyword("readOnly", ValueKind::Flag, &[]),
    keyword("writeOnly", ValueKind::Flag, &[]),
    keyword("contentEncoding", ValueKind::Text, STRING),
    keyword("contentMediaType", ValueKind::Text, STRING),
    keyword("nullable", ValueKind::Flag, &[]),
];

/// The types that a schema may name.
pub(crate) const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// The keywords that describe values without restricting them.
const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
];

/// Whether a keyword describes values without restricting them.
pub(crate) fn is_annotation(name: &str) -> bool {
    ANNOTATIONS.contains(&name)
}

/// Returns the names of all keywords.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|keyword| keyword.name)
}

/// Returns the keys of an argument: all keywords, and the keys of gptel.
pub(crate) fn of_arguments() -> &'static [&'static str] {
    static KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| names().chain(["name", "optional"]).collect());
    &KEYS
}

/// Returns the keyword with this name.
pub(crate) fn find(name: &str) -> Option<&'static Keyword> {
    TABLE.iter().find(|keyword| keyword.name == name)
}

/// Returns the value kind of a keyword; any value for an unknown one.
pub(crate) fn value_kind(name: &str) -> ValueKind {
    find(name).map_or(ValueKind::Any, |keyword| keyword.value_kind)
}

/// Returns the keyword meant by `:min_length` or `:any-of`: the same name in the case style of another language.
pub(crate) fn in_other_case(name: &str) -> Option<&'static str> {
    if !name.contains(['_', '-']) && !name.contains(char::is_uppercase) {
        // `:maxlength` is handled as a misspelling. Only unambiguous names are matched here.
        return names().find(|known| known.eq_ignore_ascii_case(name) && *known != name);
    }
    let plain = |word: &str| word.replace(['_', '-'], "").to_ascii_lowercase();
    let word = plain(name);
    names().find(|known| *known != name && known.to_ascii_lowercase() == word)
}
