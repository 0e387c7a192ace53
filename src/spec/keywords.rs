//! The keywords of a schema: what each takes, and on which types it has an effect.
//!
//! They are those of JSON Schema 2020-12 with `definitions` and `nullable`, which APIs still take.
//! Source: json-schema.org, draft 2020-12, core and validation (2026-11).

use std::sync::LazyLock;

/// One keyword.
pub(crate) struct Keyword {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    /// The types it says something about; empty: all.
    pub(crate) on: &'static [&'static str],
}

/// What a keyword takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One schema.
    Schema,
    /// A vector of schemas, one at least.
    Schemas,
    /// A plist of names to schemas.
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
    /// `:type`, `:enum`, `:required` have rules of their own.
    Own,
    /// Any value.
    Any,
}

impl Takes {
    /// Whether further schemas stand in it.
    pub(crate) fn holds_schemas(self) -> bool {
        matches!(self, Self::Schema | Self::Schemas | Self::Named)
    }

    /// For a message: what is expected.
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

const fn keyword(name: &'static str, takes: Takes, on: &'static [&'static str]) -> Keyword {
    Keyword { name, takes, on }
}

const STRING: &[&str] = &["string"];
const NUMBERS: &[&str] = &["number", "integer"];
const ARRAY: &[&str] = &["array"];
const OBJECT: &[&str] = &["object"];

/// Every keyword.
pub(crate) const TABLE: [Keyword; 52] = [
    keyword("type", Takes::Own, &[]),
    keyword("description", Takes::Text, &[]),
    keyword("enum", Takes::Own, &[]),
    keyword("const", Takes::Any, &[]),
    keyword("items", Takes::Schema, ARRAY),
    keyword("properties", Takes::Named, OBJECT),
    keyword("required", Takes::Own, OBJECT),
    keyword("additionalProperties", Takes::Schema, OBJECT),
    keyword("default", Takes::Any, &[]),
    keyword("examples", Takes::Vector, &[]),
    keyword("title", Takes::Text, &[]),
    keyword("format", Takes::Text, &[]),
    keyword("pattern", Takes::Text, STRING),
    keyword("minLength", Takes::Count, STRING),
    keyword("maxLength", Takes::Count, STRING),
    keyword("minimum", Takes::Number, NUMBERS),
    keyword("maximum", Takes::Number, NUMBERS),
    keyword("exclusiveMinimum", Takes::Number, NUMBERS),
    keyword("exclusiveMaximum", Takes::Number, NUMBERS),
    keyword("multipleOf", Takes::Positive, NUMBERS),
    keyword("minItems", Takes::Count, ARRAY),
    keyword("maxItems", Takes::Count, ARRAY),
    keyword("uniqueItems", Takes::Flag, ARRAY),
    keyword("prefixItems", Takes::Schemas, ARRAY),
    keyword("contains", Takes::Schema, ARRAY),
    keyword("minContains", Takes::Count, ARRAY),
    keyword("maxContains", Takes::Count, ARRAY),
    keyword("minProperties", Takes::Count, OBJECT),
    keyword("maxProperties", Takes::Count, OBJECT),
    keyword("patternProperties", Takes::Named, OBJECT),
    keyword("propertyNames", Takes::Schema, OBJECT),
    keyword("dependentRequired", Takes::Any, OBJECT),
    keyword("dependentSchemas", Takes::Named, OBJECT),
    keyword("unevaluatedItems", Takes::Schema, ARRAY),
    keyword("unevaluatedProperties", Takes::Schema, OBJECT),
    keyword("anyOf", Takes::Schemas, &[]),
    keyword("oneOf", Takes::Schemas, &[]),
    keyword("allOf", Takes::Schemas, &[]),
    keyword("not", Takes::Schema, &[]),
    keyword("if", Takes::Schema, &[]),
    keyword("then", Takes::Schema, &[]),
    keyword("else", Takes::Schema, &[]),
    keyword("$ref", Takes::Text, &[]),
    keyword("$defs", Takes::Named, &[]),
    keyword("definitions", Takes::Named, &[]),
    keyword("$comment", Takes::Text, &[]),
    keyword("deprecated", Takes::Flag, &[]),
    keyword("readOnly", Takes::Flag, &[]),
    keyword("writeOnly", Takes::Flag, &[]),
    keyword("contentEncoding", Takes::Text, STRING),
    keyword("contentMediaType", Takes::Text, STRING),
    keyword("nullable", Takes::Flag, &[]),
];

/// The types that a schema may name.
pub(crate) const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// The keywords that say something of a value and allow or forbid none.
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

/// Whether a keyword says something of a value and allows or forbids none.
pub(crate) fn is_annotation(name: &str) -> bool {
    ANNOTATIONS.contains(&name)
}

/// The names of all keywords.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|keyword| keyword.name)
}

/// The keys of an argument: all keywords, and those that are gptel's.
pub(crate) fn of_arguments() -> &'static [&'static str] {
    static KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| names().chain(["name", "optional"]).collect());
    &KEYS
}

/// The keyword of this name.
pub(crate) fn find(name: &str) -> Option<&'static Keyword> {
    TABLE.iter().find(|keyword| keyword.name == name)
}

/// What the value of a keyword is; of an unknown one anything.
pub(crate) fn takes(name: &str) -> Takes {
    find(name).map_or(Takes::Any, |keyword| keyword.takes)
}

/// `:min_length`, `:any-of`: the keyword that is spelt in another case, as other languages spell it.
pub(crate) fn in_other_case(name: &str) -> Option<&'static str> {
    if !name.contains(['_', '-']) && !name.contains(char::is_uppercase) {
        // `:maxlength` is told as a misspelling where it is near; here only what is beyond doubt.
        return names().find(|known| known.eq_ignore_ascii_case(name) && *known != name);
    }
    let plain = |word: &str| word.replace(['_', '-'], "").to_ascii_lowercase();
    let word = plain(name);
    names().find(|known| *known != name && known.to_ascii_lowercase() == word)
}
