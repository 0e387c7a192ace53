//! Gemini's `parameters`: a message with a fixed set of fields, in which an unknown key is an error.
//!
//! The output is the same as that of gptel: without `additionalProperties` at every depth, and without `format` of
//! string arguments.

use serde_json::Value;

use super::model::{Enforcer, Occurrence, Source, Subject, SupportEntry, SupportLevel};
use crate::schema::target::node::required_names;

const FIELDS: Source = Source {
    at: "https://hexdocs.pm/geminix/Geminix.V1beta.Schema.html (generated from Google's API description)",
    date: "2026-11",
};
const UNKNOWN_FIELD: Source =
    Source { at: "https://github.com/pizza-bot-app/pizza-bot/issues/62", date: "2026-09-07" };
const ITEMS: Source = Source { at: "https://github.com/cline/cline/issues/7339", date: "2026-11" };
const EMPTY_VALUES: Source =
    Source { at: "https://github.com/sbroenne/mcp-server-excel/issues/607", date: "2026-04-24" };
const REQUIRED: Source =
    Source { at: "https://github.com/iBUHub/AIStudioToAPI/issues/154", date: "2026-05-05" };
const NAMES: Source = Source { at: "https://github.com/kaitranntt/ccs/issues/25", date: "2025-11-30" };
const REFERENCES: Source =
    Source { at: "https://github.com/googleapis/python-genai/issues/1122", date: "2025-07-11" };

const UNDEFINED: &str = "the API answers 400 to the whole request: property is not defined";

/// The support table.
pub(super) static SUPPORT: &[SupportEntry] = &[
    SupportEntry::new(
        Subject::Schema("a boolean schema"),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "a schema is a message in this API, not a boolean",
        FIELDS,
    )
    .when("a property or item is `t` or `:json-false`", |occurrence| occurrence.node.schema.is_boolean()),
    SupportEntry::new(
        Subject::Schema("an array without `items`"),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "the API answers 400: items: missing field",
        ITEMS,
    )
    .when("`:type` is array", |occurrence| {
        occurrence.node.has_type("array") && !occurrence.node.has("items")
    }),
    SupportEntry::new(
        Subject::Keywords(&["type"]),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "the field takes a single type; use `:anyOf`, or add `:nullable t`",
        FIELDS,
    )
    .when("it is a list", |occurrence| occurrence.value().is_some_and(Value::is_array)),
    SupportEntry::new(
        Subject::Keywords(&["enum"]),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "the field takes strings only",
        FIELDS,
    )
    .when("a value is not a string", |occurrence| {
        let values = occurrence.value().and_then(Value::as_array);
        values.is_some_and(|values| values.iter().any(|value| !value.is_string()))
    }),
    SupportEntry::new(
        Subject::Keywords(&["enum"]),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "the API answers 400 to the whole request: cannot be empty",
        EMPTY_VALUES,
    )
    .when("a value is the empty string", |occurrence| {
        let values = occurrence.value().and_then(Value::as_array);
        values.is_some_and(|values| values.iter().any(|value| value == ""))
    }),
    SupportEntry::new(
        Subject::Keywords(&["required"]),
        SupportLevel::Refused,
        Enforcer::Deftool,
        UNDEFINED,
        REQUIRED,
    )
    .when("it names a property that is not in `:properties` beside it", requires_undefined),
    // The compiler writes the `required` of a spec, but an MCP server its own.
    SupportEntry::new(
        Subject::Tool("a required argument that the tool does not have"),
        SupportLevel::Refused,
        Enforcer::Deftool,
        UNDEFINED,
        REQUIRED,
    )
    .when("`required` names it", requires_undefined),
    SupportEntry::new(
        Subject::Keywords(&["additionalProperties"]),
        SupportLevel::Dropped,
        Enforcer::Deftool,
        "it is omitted at every depth, as in gptel",
        UNKNOWN_FIELD,
    ),
    SupportEntry::new(
        Subject::Keywords(&["format"]),
        SupportLevel::Dropped,
        Enforcer::Deftool,
        "it is omitted from string arguments, as in gptel",
        UNKNOWN_FIELD,
    )
    .when("the argument is a string", is_string_argument),
    SupportEntry::new(
        Subject::Keywords(&["format"]),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "some models reject all but a few formats",
        UNKNOWN_FIELD,
    )
    .when("a nested string has a format other than `date-time` or `enum`", |occurrence| {
        let format = occurrence.value().and_then(Value::as_str);
        occurrence.node.has_type("string") && !matches!(format, Some("date-time" | "enum"))
    }),
    SupportEntry::new(
        Subject::Keywords(&["$ref", "$defs", "definitions"]),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "`parameters` has no references",
        REFERENCES,
    ),
    SupportEntry::new(
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
        SupportLevel::Shown,
        Enforcer::Deftool,
        "a field of the API's schema; enforcement is not documented",
        FIELDS,
    ),
    SupportEntry::new(
        Subject::OtherKeywords,
        SupportLevel::Refused,
        Enforcer::Deftool,
        "not a field of the API's schema; the API answers 400 to the whole request: unknown name, cannot find field",
        UNKNOWN_FIELD,
    ),
    SupportEntry::new(
        Subject::ToolName,
        SupportLevel::Refused,
        Enforcer::Unenforced,
        "the API answers 400: must start with a letter or an underscore",
        NAMES,
    )
    .when("it starts with a digit or a dash", |occurrence| {
        !occurrence.word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }),
];

fn requires_undefined(occurrence: &Occurrence<'_>) -> bool {
    let node = occurrence.node;
    let is_defined =
        |name: &str| node.get("properties").is_some_and(|properties| properties.get(name).is_some());
    required_names(node.schema).into_iter().any(|name| !is_defined(name))
}

fn is_string_argument(occurrence: &Occurrence<'_>) -> bool {
    occurrence.node.is_argument() && occurrence.node.get("type").is_some_and(|word| word == "string")
}
