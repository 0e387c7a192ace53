//! OpenAI with `strict: true`: what is sampled is held to the schema, and a schema outside of a subset is refused.
//!
//! A refused keyword spoils the whole request, so what may go without a change of meaning goes, deftool's own validation
//! keeping to it, and a tool with what may not go is left out. An open object cannot be said at all: where a spec opens
//! one, or leaves an object without properties open by saying nothing, the tool is left out; one with properties that
//! says nothing is closed.

use serde_json::Value;

use super::openai::SHORT_DESCRIPTION;
use super::{Claim, Enforcer, Fate, Source, Subject, Subjected};
use crate::schema::target::place::Place;
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

/// How many objects may stand in each other.
const MAX_OBJECTS: usize = 10;
const MAX_PROPERTIES: usize = 5000;
const MAX_CHARACTERS: usize = 120_000;
const MAX_ENUM_VALUES: usize = 1000;
/// An enum of strings longer than this may hold so many characters.
const LONG_ENUM: usize = 250;
const MAX_LONG_ENUM_CHARACTERS: usize = 15_000;

const fn refused(keywords: &'static [&'static str], says: &'static str, source: Source) -> Claim {
    Claim::new(Subject::Keywords(keywords), Fate::Refused, Enforcer::Deftool, says, source)
}

const fn unsayable(what: &'static str, says: &'static str, source: Source) -> Claim {
    Claim::new(Subject::Schema(what), Fate::Refused, Enforcer::Deftool, says, source)
}

const fn dropped(
    keywords: &'static [&'static str],
    by: Enforcer,
    says: &'static str,
    source: Source,
) -> Claim {
    Claim::new(Subject::Keywords(keywords), Fate::Dropped, by, says, source)
}

/// The table.
pub(super) static CLAIMS: &[Claim] = &[
    unsayable("a boolean schema", "every schema has a type", SUBSET)
        .when("`t` or `:json-false` stands for a schema", |subjected| subjected.place.schema.is_boolean()),
    unsayable("a schema without type", "every schema has a type, and this one takes values of any", SUBSET)
        .when("none of `:type`, `:anyOf`, `:oneOf`, `$ref`, `:enum` and `:const` says what it takes", is_untyped),
    unsayable("an object that may hold anything", "every object is closed, and a closed one without properties is empty", OPEN_OBJECTS)
        .when("an object inside a schema has no `:properties` and is not closed", is_anything),
    unsayable("an array without `:items`", "the items have a type, too", SUBSET)
        .when("`:type` is array", |subjected| subjected.place.has_type("array") && !subjected.place.has("items")),
    unsayable("an object too deep", "10 objects may stand in each other", SUBSET)
        .when("more than 10 objects stand in each other, the parameters among them", |subjected| {
            subjected.place.objects >= MAX_OBJECTS && (subjected.place.has_type("object"))
        }),
    Claim::new(
        Subject::Schema("an optional property that takes null"),
        Fate::Weakened,
        Enforcer::Nobody,
        "every property is required, and null stands for an absent one; of this one the model cannot say which it means, and null stays null",
        SUBSET,
    )
    .when("null is valid for it anyway", |subjected| subjected.place.is_optional && subjected.place.accepts_null()),
    refused(&["allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"], "unsupported composition", SUBSET),
    refused(&["patternProperties", "unevaluatedItems"], "unsupported", SUBSET),
    refused(&["prefixItems"], "not in the documented subset", SUBSET),
    refused(&["additionalProperties"], "every object is closed", SUBSET)
        .when("it is not false", |subjected| subjected.value() != Some(&Value::Bool(false))),
    refused(&["unevaluatedProperties"], "every object is closed", SUBSET)
        .when("it is not false", |subjected| subjected.value() != Some(&Value::Bool(false))),
    dropped(&["unevaluatedProperties"], Enforcer::Provider, "the object is closed anyway", SUBSET),
    refused(&["items"], "tuples are not in the documented subset", SUBSET)
        .when("it is a list", |subjected| subjected.value().is_some_and(Value::is_array)),
    refused(&["anyOf", "oneOf"], "a type beside it is not in the documented subset; write it into each branch", SUBSET)
        .when("a keyword that allows or forbids values stands beside it", has_constraint_beside),
    refused(&["enum", "const"], "values are strings, numbers, booleans or null", SUBSET)
        .when("a value is an array or an object", has_compound_value),
    refused(&["enum"], "an enum of more than 250 strings may hold 15,000 characters", SUBSET)
        .when("it has more than 250 strings, together over 15,000 characters", is_long_enum),
    refused(&["$ref"], "a reference leads to another place in the same schema", SUBSET)
        .when("it leads out of the schema, nowhere, or in a circle", is_lost),
    refused(&["$ref"], "the API answers 400: $ref cannot have keywords beside it", REFERENCES)
        .when("a keyword that allows or forbids values stands beside it", has_constraint_beside),
    dropped(&["description"], Enforcer::Nobody, "the API answers 400: $ref cannot have keywords beside it", REFERENCES)
        .when("it stands beside `$ref`", |subjected| subjected.place.has("$ref")),
    Claim::new(
        Subject::Keywords(&["oneOf"]),
        Fate::Weakened,
        Enforcer::Deftool,
        "the API refuses it; it is written as `anyOf`, and deftool refuses a value that two branches take",
        ONE_OF,
    ),
    dropped(&["pattern"], Enforcer::Deftool, "the API answers 400: regex lookaround is not supported", LOOKAROUND)
        .when("it looks ahead or behind", looks_around),
    dropped(&["format"], Enforcer::Deftool, "the API answers 400: not a valid format", FORMATS)
        .when("it is none of date-time, time, date, duration, email, hostname, ipv4, ipv6, uuid", is_odd_format),
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
    dropped(&["default"], Enforcer::Nobody, "some endpoints answer 400: not permitted", DEFAULT),
    dropped(
        &["title", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "nullable"],
        Enforcer::Nobody,
        "not in the documented subset",
        SUBSET,
    ),
    Claim::new(Subject::Keywords(&["description"]), Fate::Shown, Enforcer::Nobody, "the model reads it", SUBSET),
    Claim::new(
        Subject::Keywords(&["properties"]),
        Fate::Enforced,
        Enforcer::Provider,
        "an object that says nothing of other properties is closed",
        SUBSET,
    ),
    Claim::new(
        Subject::Keywords(&["required"]),
        Fate::Enforced,
        Enforcer::Provider,
        "every property is named in it; an optional one becomes nullable, and a null that comes back for it is taken as absent",
        SUBSET,
    ),
    Claim::new(
        Subject::Keywords(&["$defs", "definitions"]),
        Fate::Enforced,
        Enforcer::Provider,
        "what a reference leads to stands in `$defs` of the parameters; the rest is left out",
        SUBSET,
    ),
    Claim::new(
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
        Fate::Enforced,
        Enforcer::Provider,
        "",
        SUBSET,
    ),
    Claim::new(Subject::OtherKeywords, Fate::Dropped, Enforcer::Nobody, "no keyword of JSON Schema", SUBSET),
    Claim::new(Subject::Tool("too many properties"), Fate::Refused, Enforcer::Deftool, "5,000 in all", SUBSET)
        .when("over 5,000", |subjected| Sizes::of(subjected).properties > MAX_PROPERTIES),
    Claim::new(Subject::Tool("too many enum values"), Fate::Refused, Enforcer::Deftool, "1,000 in all", SUBSET)
        .when("over 1,000", |subjected| Sizes::of(subjected).enum_values > MAX_ENUM_VALUES),
    Claim::new(
        Subject::Tool("names and values too long"),
        Fate::Refused,
        Enforcer::Deftool,
        "names of properties and definitions, enum values and constants may hold 120,000 characters",
        SUBSET,
    )
    .when("over 120,000 characters", |subjected| Sizes::of(subjected).characters > MAX_CHARACTERS),
    SHORT_DESCRIPTION,
];

/// Whether a pattern looks ahead or behind.
pub(super) fn looks_around(subjected: &Subjected<'_>) -> bool {
    let pattern = subjected.value().and_then(Value::as_str).unwrap_or_default();
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|opening| pattern.contains(opening))
}

fn is_untyped(subjected: &Subjected<'_>) -> bool {
    let says = ["type", "anyOf", "oneOf", "$ref", "enum", "const"];
    // What is refused as composition is not refused again for its want of a type.
    let composed = ["allOf", "not", "if"];
    subjected
        .place
        .members()
        .is_some_and(|members| !says.iter().chain(&composed).any(|keyword| members.contains_key(*keyword)))
}

fn is_anything(subjected: &Subjected<'_>) -> bool {
    let place = subjected.place;
    let is_empty = place.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
    let composed =
        ["patternProperties", "anyOf", "oneOf", "allOf", "additionalProperties", "unevaluatedProperties"];
    place.has_type("object") && is_empty && !composed.iter().any(|keyword| place.has(keyword))
}

/// Beside `anyOf`, `oneOf` or `$ref`, whose place it is.
fn has_constraint_beside(subjected: &Subjected<'_>) -> bool {
    let is_plain = |keyword: &str| {
        keyword == subjected.word
            || is_annotation(keyword)
            || matches!(keyword, "$defs" | "definitions" | "nullable")
    };
    subjected.place.members().is_some_and(|members| !members.keys().all(|keyword| is_plain(keyword)))
}

fn has_compound_value(subjected: &Subjected<'_>) -> bool {
    let is_compound = |value: &Value| value.is_array() || value.is_object();
    match subjected.value() {
        Some(Value::Array(values)) if subjected.word == "enum" => values.iter().any(is_compound),
        Some(value) => is_compound(value),
        None => false,
    }
}

fn is_long_enum(subjected: &Subjected<'_>) -> bool {
    let strings = subjected.value().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let (count, characters) =
        strings.fold((0, 0), |(count, sum), value| (count + 1, sum + value.chars().count()));
    count > LONG_ENUM && characters > MAX_LONG_ENUM_CHARACTERS
}

fn is_lost(subjected: &Subjected<'_>) -> bool {
    let place = subjected.place;
    // A keyword's value is no schema.
    place.target().is_none_or(|target| !target.is_object()) || place.is_circle()
}

fn is_odd_format(subjected: &Subjected<'_>) -> bool {
    let known = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
    !subjected.value().and_then(Value::as_str).is_some_and(|format| known.contains(&format))
}

/// What the API counts over the whole of the parameters.
#[derive(Default)]
struct Sizes {
    properties: usize,
    enum_values: usize,
    characters: usize,
}

impl Sizes {
    fn of(subjected: &Subjected<'_>) -> Self {
        let mut sizes = Self::default();
        sizes.add(subjected.place);
        sizes
    }

    fn add(&mut self, place: &Place<'_>) {
        let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        for (keyword, value) in place.members().into_iter().flatten() {
            match (keyword.as_str(), value) {
                ("enum", Value::Array(values)) => {
                    self.enum_values += values.len();
                    self.characters += values.iter().map(length).sum::<usize>();
                }
                ("const", value) => self.characters += length(value),
                _ => {}
            }
            for child in place.children(keyword) {
                self.properties += usize::from(keyword == "properties");
                self.characters += child.name.map_or(0, |name| name.chars().count());
                self.add(&child.place);
            }
        }
    }
}
