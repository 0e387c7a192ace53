//! Gemini's `parameters`, a message of named fields in which any other key is an error.
//!
//! What is emitted stays what gptel emits: `additionalProperties` is left out at every depth and `format` of the
//! arguments that are strings.

use serde_json::Value;

use super::{Claim, Enforcer, Fate, Source, Subject, Subjected};

const FIELDS: Source = Source {
    at: "https://hexdocs.pm/geminix/Geminix.V1beta.Schema.html (generated from Google's API description)",
    date: "2026-11",
};
const UNKNOWN_FIELD: Source =
    Source { at: "https://github.com/pizza-bot-app/pizza-bot/issues/62", date: "2026-09-07" };
const ITEMS: Source = Source { at: "https://github.com/cline/cline/issues/7339", date: "2026-11" };
const NAMES: Source = Source { at: "https://github.com/kaitranntt/ccs/issues/25", date: "2025-11-30" };
const REFERENCES: Source =
    Source { at: "https://github.com/googleapis/python-genai/issues/1122", date: "2025-07-11" };

/// The table.
pub(super) static CLAIMS: &[Claim] = &[
    Claim::new(
        Subject::Schema("a boolean schema"),
        Fate::Refused,
        Enforcer::Deftool,
        "a schema is a message there, and a boolean is none",
        FIELDS,
    )
    .when("a property or item is `t` or `:json-false`", |subjected| subjected.place.schema.is_boolean()),
    Claim::new(
        Subject::Schema("an array without `items`"),
        Fate::Refused,
        Enforcer::Deftool,
        "the API answers 400: items: missing field",
        ITEMS,
    )
    .when("`:type` is array", |subjected| subjected.place.has_type("array") && !subjected.place.has("items")),
    Claim::new(
        Subject::Keywords(&["type"]),
        Fate::Refused,
        Enforcer::Deftool,
        "the field holds one type; write `:anyOf`, or `:nullable t` beside the type",
        FIELDS,
    )
    .when("it is a list", |subjected| subjected.value().is_some_and(Value::is_array)),
    Claim::new(
        Subject::Keywords(&["enum"]),
        Fate::Refused,
        Enforcer::Deftool,
        "the field holds strings",
        FIELDS,
    )
    .when("a value is no string", |subjected| {
        let values = subjected.value().and_then(Value::as_array);
        values.is_some_and(|values| values.iter().any(|value| !value.is_string()))
    }),
    Claim::new(
        Subject::Keywords(&["additionalProperties"]),
        Fate::Dropped,
        Enforcer::Deftool,
        "it is left out at every depth, as gptel leaves it out",
        UNKNOWN_FIELD,
    ),
    Claim::new(
        Subject::Keywords(&["format"]),
        Fate::Dropped,
        Enforcer::Deftool,
        "it is left out of arguments that are strings, as gptel leaves it out",
        UNKNOWN_FIELD,
    )
    .when("the argument is a string", is_string_argument),
    Claim::new(
        Subject::Keywords(&["format"]),
        Fate::Refused,
        Enforcer::Deftool,
        "formats outside of a small set are errors for some models",
        UNKNOWN_FIELD,
    )
    .when("a string inside a schema has another than `date-time` or `enum`", |subjected| {
        let format = subjected.value().and_then(Value::as_str);
        subjected.place.has_type("string") && !matches!(format, Some("date-time" | "enum"))
    }),
    Claim::new(
        Subject::Keywords(&["$ref", "$defs", "definitions"]),
        Fate::Refused,
        Enforcer::Deftool,
        "`parameters` has no references",
        REFERENCES,
    ),
    Claim::new(
        Subject::Keywords(&[
            "type",
            "description",
            "title",
            "enum",
            "items",
            "properties",
            "required",
            "anyOf",
            "nullable",
            "default",
            "example",
            "format",
            "pattern",
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "propertyOrdering",
        ]),
        Fate::Shown,
        Enforcer::Deftool,
        "a field of the API's schema; how far a call is held to it is not said",
        FIELDS,
    ),
    Claim::new(
        Subject::OtherKeywords,
        Fate::Refused,
        Enforcer::Deftool,
        "no field of the API's schema; it answers 400 to the whole request: unknown name, cannot find field",
        UNKNOWN_FIELD,
    ),
    Claim::new(
        Subject::ToolName,
        Fate::Refused,
        Enforcer::Nobody,
        "the API answers 400: must start with a letter or an underscore",
        NAMES,
    )
    .when("it starts with a digit or a dash", |subjected| {
        !subjected.word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }),
];

fn is_string_argument(subjected: &Subjected<'_>) -> bool {
    subjected.place.is_argument() && subjected.place.get("type").is_some_and(|word| word == "string")
}
