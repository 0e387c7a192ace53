//! The keywords of a schema, with their value kinds and the types they apply to.
//!
//! These are the keywords of JSON Schema 2020-12, and `definitions` and `nullable`, which APIs still accept.
//! Source: json-schema.org, draft 2020-12, core and validation (2026-11).

/// A schema keyword.
pub(crate) struct Keyword {
    pub(crate) name: &'static str,
    pub(crate) value_kind: ValueKind,
    /// The types it applies to; empty for all.
    pub(crate) on: &'static [&'static str],
    /// The documentation in Markdown, one sentence.
    pub(crate) doc: &'static str,
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

const fn keyword(
    name: &'static str,
    value_kind: ValueKind,
    on: &'static [&'static str],
    doc: &'static str,
) -> Keyword {
    Keyword { name, value_kind, on, doc }
}

const STRING: &[&str] = &["string"];
const NUMBERS: &[&str] = &["number", "integer"];
const ARRAY: &[&str] = &["array"];
const OBJECT: &[&str] = &["object"];

/// All keywords.
#[rustfmt::skip]
pub(crate) const TABLE: [Keyword; 52] = [
    keyword("type", ValueKind::Own, &[], "The type, or a vector of types."),
    keyword("description", ValueKind::Text, &[], "What the value is, for the model."),
    keyword("enum", ValueKind::Own, &[], "A vector of the allowed values."),
    keyword("const", ValueKind::Any, &[], "The only allowed value."),
    keyword("items", ValueKind::Schema, ARRAY, "The schema of the elements of an array."),
    keyword("properties", ValueKind::Named, OBJECT, "The schemas of the members of an object, by name."),
    keyword("required", ValueKind::Own, OBJECT, "A vector of the names of the members that an object must have."),
    keyword("additionalProperties", ValueKind::Schema, OBJECT, "The schema of the members that `:properties` does not name, or `:json-false` for none."),
    keyword("default", ValueKind::Any, &[], "The value that the tool assumes if the argument is missing."),
    keyword("examples", ValueKind::Vector, &[], "A vector of examples."),
    keyword("title", ValueKind::Text, &[], "A short title."),
    keyword("format", ValueKind::Text, &[], "The format of a string."),
    keyword("pattern", ValueKind::Text, STRING, "A regular expression (ECMA-262) that a string must match."),
    keyword("minLength", ValueKind::Count, STRING, "The minimum number of characters."),
    keyword("maxLength", ValueKind::Count, STRING, "The maximum number of characters."),
    keyword("minimum", ValueKind::Number, NUMBERS, "The minimum, inclusive."),
    keyword("maximum", ValueKind::Number, NUMBERS, "The maximum, inclusive."),
    keyword("exclusiveMinimum", ValueKind::Number, NUMBERS, "The minimum, exclusive."),
    keyword("exclusiveMaximum", ValueKind::Number, NUMBERS, "The maximum, exclusive."),
    keyword("multipleOf", ValueKind::Positive, NUMBERS, "A number of which the value must be a multiple."),
    keyword("minItems", ValueKind::Count, ARRAY, "The minimum number of elements."),
    keyword("maxItems", ValueKind::Count, ARRAY, "The maximum number of elements."),
    keyword("uniqueItems", ValueKind::Flag, ARRAY, "Whether all elements must be different."),
    keyword("prefixItems", ValueKind::Schemas, ARRAY, "The schemas of the first elements, in order."),
    keyword("contains", ValueKind::Schema, ARRAY, "A schema that at least one element must match."),
    keyword("minContains", ValueKind::Count, ARRAY, "The minimum number of elements that match `:contains`."),
    keyword("maxContains", ValueKind::Count, ARRAY, "The maximum number of elements that match `:contains`."),
    keyword("minProperties", ValueKind::Count, OBJECT, "The minimum number of members."),
    keyword("maxProperties", ValueKind::Count, OBJECT, "The maximum number of members."),
    keyword("patternProperties", ValueKind::Named, OBJECT, "The schemas of the members whose names match a regular expression."),
    keyword("propertyNames", ValueKind::Schema, OBJECT, "The schema of the names of the members."),
    keyword("dependentRequired", ValueKind::Any, OBJECT, "The members that are required if another member is present."),
    keyword("dependentSchemas", ValueKind::Named, OBJECT, "The schemas that apply if a member is present."),
    keyword("unevaluatedItems", ValueKind::Schema, ARRAY, "The schema of the elements that no other keyword covers."),
    keyword("unevaluatedProperties", ValueKind::Schema, OBJECT, "The schema of the members that no other keyword covers."),
    keyword("anyOf", ValueKind::Schemas, &[], "A vector of schemas, of which at least one must match."),
    keyword("oneOf", ValueKind::Schemas, &[], "A vector of schemas, of which exactly one must match."),
    keyword("allOf", ValueKind::Schemas, &[], "A vector of schemas, all of which must match."),
    keyword("not", ValueKind::Schema, &[], "A schema that must not match."),
    keyword("if", ValueKind::Schema, &[], "A condition for `:then` and `:else`."),
    keyword("then", ValueKind::Schema, &[], "The schema that applies if `:if` matches."),
    keyword("else", ValueKind::Schema, &[], "The schema that applies if `:if` does not match."),
    keyword("$ref", ValueKind::Text, &[], "A reference to another schema."),
    keyword("$defs", ValueKind::Named, &[], "Schemas that `:$ref` refers to, by name."),
    keyword("definitions", ValueKind::Named, &[], "Schemas that `:$ref` refers to, by name (older form of `:$defs`)."),
    keyword("$comment", ValueKind::Text, &[], "A comment for people."),
    keyword("deprecated", ValueKind::Flag, &[], "Whether the value should no longer be used."),
    keyword("readOnly", ValueKind::Flag, &[], "Whether the value is only returned."),
    keyword("writeOnly", ValueKind::Flag, &[], "Whether the value is only sent."),
    keyword("contentEncoding", ValueKind::Text, STRING, "The encoding of binary content in a string, such as `base64`."),
    keyword("contentMediaType", ValueKind::Text, STRING, "The media type of the content of a string."),
    keyword("nullable", ValueKind::Flag, &[], "Whether null is allowed, as in OpenAPI 3.0."),
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
