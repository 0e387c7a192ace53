//! OpenAI with `strict: true`: sampling enforces the schema, and a schema outside a subset is rejected.
//!
//! A rejected keyword makes the whole request fail. A keyword is therefore dropped if the meaning of the rest stays the
//! same and deftool can enforce it; otherwise the tool is omitted. Open objects cannot be expressed: a tool is omitted
//! if its spec opens an object, or has an object with neither properties nor `:additionalProperties`. An object with
//! properties and without `:additionalProperties` is closed.

use serde_json::Value;

use super::model::{Enforcer, Occurrence, Source, Subject, SupportEntry, SupportLevel};
use super::openai::{SHORT_DESCRIPTION, looks_around};
use crate::schema::target::node::SchemaNode;
use crate::spec::keywords::is_annotation;

const SUBSET: Source = Source {
    at: "https://jsonschemaprofiles.unitvectorylabs.com/schemas/openai (of developers.openai.com/api/docs/guides/structured-outputs)",
    date: "2026-02",
};
const ONE_OF: Source = Source { at: "https://github.com/ai-dynamo/dynamo/pull/15153", date: "2026-11" };
const FORMATS: Source =
    Source { at: "https://github.com/BuilderIO/agent-native/pull/3085", date: "2026-08-18" };
const LOOKAROUND: Source = Source { at: "https://github.com/vercel/ai/pull/21037", date: "2026-09-17" };
const REFERENCES: Source =
    Source { at: "https://github.com/vectorize-io/hindsight/pull/3944", date: "2026-08-31" };
const OPEN_OBJECTS: Source = Source { at: "https://github.com/TanStack/ai/issues/976", date: "2026-07-21" };
const DEFAULT: Source =
    Source { at: "https://github.com/openai/openai-agents-python/issues/4390", date: "2026-08-13" };

/// Maximum object nesting.
const MAX_OBJECTS: usize = 10;
const MAX_PROPERTIES: usize = 5000;
const MAX_CHARACTERS: usize = 120_000;
const MAX_ENUM_VALUES: usize = 1000;
/// The character limit applies to string enums with more values than this.
const LONG_ENUM: usize = 250;
const MAX_LONG_ENUM_CHARACTERS: usize = 15_000;

const fn refused(keywords: &'static [&'static str], detail: &'static str, source: Source) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Refused, Enforcer::Deftool, detail, source)
}

const fn inexpressible(what: &'static str, detail: &'static str, source: Source) -> SupportEntry {
    SupportEntry::new(Subject::Schema(what), SupportLevel::Refused, Enforcer::Deftool, detail, source)
}

const fn dropped(
    keywords: &'static [&'static str],
    by: Enforcer,
    detail: &'static str,
    source: Source,
) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Dropped, by, detail, source)
}

/// The support table.
pub(super) static SUPPORT: &[SupportEntry] = &[
    inexpressible("a boolean schema", "every schema must have a type", SUBSET)
        .when("a schema is `t` or `:json-false`", |occurrence| occurrence.node.schema.is_boolean()),
    inexpressible("a schema without type", "every schema must have a type, and this one accepts any", SUBSET)
        .when("it has none of `:type`, `:anyOf`, `:oneOf`, `$ref`, `:enum` and `:const`", is_untyped),
    inexpressible("an object with arbitrary members", "every object must be closed, and a closed object without properties is empty", OPEN_OBJECTS)
        .when("a nested object has no `:properties` and is not closed", is_anything),
    inexpressible("an array without `:items`", "the items must have a type", SUBSET)
        .when("`:type` is array", |occurrence| occurrence.node.has_type("array") && !occurrence.node.has("items")),
    inexpressible("an object nested too deeply", "objects may be nested 10 levels deep", SUBSET)
        .when("objects are nested more than 10 levels deep, including the parameters", |occurrence| {
            occurrence.node.objects >= MAX_OBJECTS && (occurrence.node.has_type("object"))
        }),
    SupportEntry::new(
        Subject::Schema("an optional property that accepts null"),
        SupportLevel::Weakened,
        Enforcer::Unenforced,
        "every property is required, and null means absent; null is a valid value here, so it is kept, and the property cannot be omitted",
        SUBSET,
    )
    .when("null is already valid for it", |occurrence| occurrence.node.is_optional && occurrence.node.accepts_null()),
    refused(&["allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"], "unsupported composition", SUBSET),
    refused(&["patternProperties", "unevaluatedItems"], "unsupported", SUBSET),
    refused(&["prefixItems"], "not in the documented subset", SUBSET),
    refused(&["additionalProperties"], "every object must be closed", SUBSET)
        .when("it is not false", |occurrence| occurrence.value() != Some(&Value::Bool(false))),
    refused(&["unevaluatedProperties"], "every object must be closed", SUBSET)
        .when("it is not false", |occurrence| occurrence.value() != Some(&Value::Bool(false))),
    dropped(&["unevaluatedProperties"], Enforcer::Provider, "the object is closed anyway", SUBSET),
    refused(&["items"], "tuples are not in the documented subset", SUBSET)
        .when("it is a list", |occurrence| occurrence.value().is_some_and(Value::is_array)),
    refused(&["anyOf", "oneOf"], "a type next to it is not in the documented subset; move it into each branch", SUBSET)
        .when("it is combined with another constraint", has_other_constraint),
    refused(&["enum", "const"], "values must be strings, numbers, booleans or null", SUBSET)
        .when("a value is an array or an object", has_compound_value),
    refused(&["enum"], "an enum with more than 250 strings is limited to 15,000 characters", SUBSET)
        .when("it has more than 250 strings with over 15,000 characters in total", is_long_enum),
    refused(&["$ref"], "a reference must point to another location in the same schema", SUBSET)
        .when("it points outside the schema, to nothing, or into a cycle", is_broken_reference),
    refused(&["$ref"], "the API answers 400: $ref cannot have keywords beside it", REFERENCES)
        .when("it is combined with another constraint", has_other_constraint),
    dropped(&["description"], Enforcer::Unenforced, "the API answers 400: $ref cannot have keywords beside it", REFERENCES)
        .when("it is next to `$ref`", |occurrence| occurrence.node.has("$ref")),
    SupportEntry::new(
        Subject::Keywords(&["oneOf"]),
        SupportLevel::Weakened,
        Enforcer::Deftool,
        "the API rejects it; it is sent as `anyOf`, and deftool rejects a value that matches two branches",
        ONE_OF,
    ),
    dropped(&["pattern"], Enforcer::Deftool, "the API answers 400: regex lookaround is not supported", LOOKAROUND)
        .when("it contains a lookahead or lookbehind", looks_around),
    dropped(&["format"], Enforcer::Deftool, "the API answers 400: not a valid format", FORMATS)
        .when("it is not one of date-time, time, date, duration, email, hostname, ipv4, ipv6, uuid", is_odd_format),
    dropped(
        &[
            "minLength",
            "maxLength",
            "uniqueItems",
            "contains",
            "minContains",
            "maxContains",
            "minProperties",
            "maxProperties",
            "propertyNames",
        ],
        Enforcer::Deftool,
        "not in the documented subset",
        SUBSET,
    ),
    dropped(&["default"], Enforcer::Unenforced, "some endpoints answer 400: not permitted", DEFAULT),
    dropped(
        &["title", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "nullable"],
        Enforcer::Unenforced,
        "not in the documented subset",
        SUBSET,
    ),
    SupportEntry::new(Subject::Keywords(&["description"]), SupportLevel::Shown, Enforcer::Unenforced, "the model reads it", SUBSET),
    SupportEntry::new(
        Subject::Keywords(&["properties"]),
        SupportLevel::Enforced,
        Enforcer::Provider,
        "an object without `:additionalProperties` is closed",
        SUBSET,
    ),
    SupportEntry::new(
        Subject::Keywords(&["required"]),
        SupportLevel::Enforced,
        Enforcer::Provider,
        "it lists every property; an optional property becomes nullable, and null in a call means absent",
        SUBSET,
    ),
    SupportEntry::new(
        Subject::Keywords(&["$defs", "definitions"]),
        SupportLevel::Enforced,
        Enforcer::Provider,
        "targets of references move to `$defs` of the parameters; unused definitions are omitted",
        SUBSET,
    ),
    SupportEntry::new(
        Subject::Keywords(&[
            "type",
            "enum",
            "const",
            "additionalProperties",
            "items",
            "anyOf",
            "$ref",
            "pattern",
            "format",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minItems",
            "maxItems",
        ]),
        SupportLevel::Enforced,
        Enforcer::Provider,
        "",
        SUBSET,
    ),
    SupportEntry::new(Subject::OtherKeywords, SupportLevel::Dropped, Enforcer::Unenforced, "not a JSON Schema keyword", SUBSET),
    SupportEntry::new(Subject::Tool("too many properties"), SupportLevel::Refused, Enforcer::Deftool, "at most 5,000 in total", SUBSET)
        .when("over 5,000", |occurrence| Sizes::of(occurrence).properties > MAX_PROPERTIES),
    SupportEntry::new(Subject::Tool("too many enum values"), SupportLevel::Refused, Enforcer::Deftool, "at most 1,000 in total", SUBSET)
        .when("over 1,000", |occurrence| Sizes::of(occurrence).enum_values > MAX_ENUM_VALUES),
    SupportEntry::new(
        Subject::Tool("names and values too long"),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "names of properties and definitions, enum values and constants are limited to 120,000 characters in total",
        SUBSET,
    )
    .when("over 120,000 characters", |occurrence| Sizes::of(occurrence).characters > MAX_CHARACTERS),
    SHORT_DESCRIPTION,
];

fn is_untyped(occurrence: &Occurrence<'_>) -> bool {
    let typing = ["type", "anyOf", "oneOf", "$ref", "enum", "const"];
    // A schema that is rejected for its composition is not rejected again for the missing type.
    let composition = ["allOf", "not", "if"];
    occurrence.node.members().is_some_and(|members| {
        !typing.iter().chain(&composition).any(|keyword| members.contains_key(*keyword))
    })
}

fn is_anything(occurrence: &Occurrence<'_>) -> bool {
    let node = occurrence.node;
    let is_empty = node.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
    let composed =
        ["patternProperties", "anyOf", "oneOf", "allOf", "additionalProperties", "unevaluatedProperties"];
    node.has_type("object") && is_empty && !composed.iter().any(|keyword| node.has(keyword))
}

/// Returns whether `anyOf`, `oneOf` or `$ref` is combined with another constraint.
fn has_other_constraint(occurrence: &Occurrence<'_>) -> bool {
    let is_plain = |keyword: &str| {
        keyword == occurrence.word
            || is_annotation(keyword)
            || matches!(keyword, "$defs" | "definitions" | "nullable")
    };
    occurrence.node.members().is_some_and(|members| !members.keys().all(|keyword| is_plain(keyword)))
}

fn has_compound_value(occurrence: &Occurrence<'_>) -> bool {
    let is_compound = |value: &Value| value.is_array() || value.is_object();
    match occurrence.value() {
        Some(Value::Array(values)) if occurrence.word == "enum" => values.iter().any(is_compound),
        Some(value) => is_compound(value),
        None => false,
    }
}

fn is_long_enum(occurrence: &Occurrence<'_>) -> bool {
    let strings =
        occurrence.value().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let (count, characters) =
        strings.fold((0, 0), |(count, sum), value| (count + 1, sum + value.chars().count()));
    count > LONG_ENUM && characters > MAX_LONG_ENUM_CHARACTERS
}

fn is_broken_reference(occurrence: &Occurrence<'_>) -> bool {
    let node = occurrence.node;
    // The value of a keyword is not a schema.
    node.target().is_none_or(|target| !target.is_object()) || node.is_cyclic()
}

fn is_odd_format(occurrence: &Occurrence<'_>) -> bool {
    let known = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
    !occurrence.value().and_then(Value::as_str).is_some_and(|format| known.contains(&format))
}

/// The totals that the API limits over all parameters.
#[derive(Default)]
struct Sizes {
    properties: usize,
    enum_values: usize,
    characters: usize,
}

impl Sizes {
    fn of(occurrence: &Occurrence<'_>) -> Self {
        let mut sizes = Self::default();
        sizes.add(occurrence.node);
        sizes
    }

    fn add(&mut self, node: &SchemaNode<'_>) {
        let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        for (keyword, value) in node.members().into_iter().flatten() {
            match (keyword.as_str(), value) {
                ("enum", Value::Array(values)) => {
                    self.enum_values += values.len();
                    self.characters += values.iter().map(length).sum::<usize>();
                }
                ("const", value) => self.characters += length(value),
                _ => {}
            }
            for child in node.children(keyword) {
                self.properties += usize::from(keyword == "properties");
                self.characters += child.name.map_or(0, |name| name.chars().count());
                self.add(&child.node);
            }
        }
    }
}
