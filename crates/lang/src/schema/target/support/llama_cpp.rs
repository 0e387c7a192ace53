//! The llama.cpp server: it converts the schemas of a request's tools to one grammar that constrains sampling.
//!
//! Every row was verified on a real server: `tests/llama_cpp.json` contains its responses, and a test compares
//! this table with them. A schema that the server cannot convert causes a 400 for the whole request; some make it hang.

use serde_json::Value;

use super::llama_conditions::{
    TWO_TO_63, count, has_odd_names, has_other_bound, has_pattern_or_known_format, is_all_of_ignored,
    is_anything, is_bound_too_large, is_counted, is_known_format, is_not_a_list, is_over_maximum,
    is_relevant, is_shadowed, is_type, parts_have, pattern_support, repetitions, strongest, target_of,
};
use super::llama_pattern::PatternSupport;
use super::model::{Enforcer, Source, Subject, SupportEntry, SupportLevel};

const TRIED: Source = Source { at: "tests/llama_cpp.json (xllamacpp 2026.10.11549)", date: "2026-11-20" };

/// Counts within the repetition limit that exceed the server's rule limit together with the surrounding rules.
const MAX_ITEMS: std::ops::RangeInclusive<u64> = 2000..=2001;
/// The maximum repetition count in the server's grammars.
const MAX_REPETITION: u64 = 2000;

const fn refused(keywords: &'static [&'static str], detail: &'static str) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Refused, Enforcer::Deftool, detail, TRIED)
}

const fn ignored(keywords: &'static [&'static str], detail: &'static str) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Ignored, Enforcer::Deftool, detail, TRIED)
}

const fn weakened(keywords: &'static [&'static str], detail: &'static str) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Weakened, Enforcer::Deftool, detail, TRIED)
}

const fn misread(keywords: &'static [&'static str], detail: &'static str) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Misread, Enforcer::Unenforced, detail, TRIED)
}

/// The support table.
pub(super) static SUPPORT: &[SupportEntry] = &[
    SupportEntry::new(Subject::Schema("a boolean schema"), SupportLevel::Refused, Enforcer::Deftool, "schema must be an object", TRIED)
        .when("a schema is `t` or `:json-false`", |occurrence| occurrence.node.schema.is_boolean()),
    SupportEntry::new(
        Subject::Schema("an object with arbitrary members"),
        SupportLevel::Misread,
        Enforcer::Unenforced,
        "an object without `:additionalProperties` is closed, so the model can only generate {}; `:additionalProperties t` opens it",
        TRIED,
    )
    .when("a nested object has no `:properties`", is_anything),
    // Causes of a failed request come first, independent of the other keywords.
    refused(&["type"], "unrecognized type").when("it is an unknown type or an empty list", |occurrence| {
        !is_type(occurrence) && strongest(occurrence).is_none()
    }),
    refused(&["enum"], "enum must be a non-empty array")
        .when("it is empty", |occurrence| is_not_a_list(occurrence.value()) && strongest(occurrence).is_none()),
    refused(&["anyOf", "oneOf", "allOf"], "must not be empty")
        .when("it is empty", |occurrence| is_not_a_list(occurrence.value()) && strongest(occurrence).is_none()),
    refused(&["allOf"], "schema must be an object").when("a part is a boolean", |occurrence| {
        let parts = occurrence.value().and_then(Value::as_array);
        parts.is_some_and(|parts| parts.iter().any(Value::is_boolean)) && strongest(occurrence).is_none()
    }),
    refused(&["properties"], "properties must be an object").when("it is not a plist", |occurrence| {
        occurrence.value().is_some_and(|value| !value.is_object()) && strongest(occurrence).is_none()
    }),
    refused(&["additionalProperties"], "additionalProperties must be a boolean or a schema").when(
        "it is neither a boolean nor a schema",
        |occurrence| {
            let value = occurrence.value();
            value.is_some_and(|value| !value.is_boolean() && !value.is_object()) && strongest(occurrence).is_none()
        },
    ),
    refused(&["$ref"], "only references into the same schema are followed, key by key; `#` alone is not supported")
        .when("it points outside the schema or to nothing", |occurrence| target_of(occurrence.node).is_none()),
    refused(&["$ref"], "failed to parse grammar: it is left-recursive")
        .when("it points into a cycle", |occurrence| occurrence.node.is_cyclic()),
    refused(&["minLength", "maxLength", "minItems", "maxItems"], "must be a non-negative integer")
        .when("it is not a 31-bit unsigned integer", |occurrence| is_relevant(occurrence) && count(occurrence).is_none()),
    refused(&["minLength", "minItems"], "the server does not respond")
        .when("it is greater than the corresponding maximum", |occurrence| is_counted(occurrence) && is_over_maximum(occurrence)),
    refused(&["minLength", "minItems"], "failed to parse grammar: over 2,000 repetitions").when(
        "it is over 2,000",
        |occurrence| is_counted(occurrence) && repetitions(occurrence) > MAX_REPETITION,
    ),
    refused(&["pattern"], "the server answers 400: invalid pattern")
        .when("it is not a valid pattern", |occurrence| is_relevant(occurrence) && pattern_support(occurrence) == PatternSupport::Refused),
    refused(&["format"], "format must be a string")
        .when("it is not a string", |occurrence| occurrence.value().is_some_and(|value| !value.is_string())),
    refused(&["additionalProperties"], "failed to parse grammar: property names are inserted without escaping").when(
        "it opens an object with a property name that contains `]` or a backslash",
        |occurrence| occurrence.value() != Some(&Value::Bool(false)) && has_odd_names(occurrence.node),
    ),
    refused(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], "must be a number")
        .when("it is not a number", |occurrence| {
            occurrence.value().is_some_and(|value| !value.is_number()) && is_relevant(occurrence)
        }),
    refused(
        &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
        "the grammar supports too few digits: the server rejects it, or exhausts memory and never answers",
    )
    .when(
        "there is no opposite bound, and either every allowed integer has 17 or more digits or the bound is a float over 63 bits",
        |occurrence| is_relevant(occurrence) && is_bound_too_large(occurrence),
    ),
    misread(&["maximum", "exclusiveMaximum"], "it overflows: the model can only generate negative numbers")
        .when("it exceeds 63 bits", |occurrence| {
            is_relevant(occurrence) && occurrence.value().is_some_and(|value| value.is_u64() && !value.is_i64())
        }),
    ignored(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], "it exceeds the server's integer range").when(
        "it exceeds 63 bits",
        |occurrence| {
            let bound = occurrence.value().and_then(Value::as_f64);
            is_relevant(occurrence) && !has_other_bound(occurrence) && bound.is_some_and(|bound| bound.abs() >= TWO_TO_63)
        },
    ),
    refused(&["maxItems"], "failed to parse grammar: over 2,000 rules").when(
        "it is 2,000 or 2,001, and there is no `:minItems`",
        |occurrence| {
            is_relevant(occurrence)
                && count(occurrence).is_some_and(|count| MAX_ITEMS.contains(&count))
                && occurrence.node.get("minItems").and_then(Value::as_u64).unwrap_or_default() == 0
        },
    ),
    ignored(&["properties", "items"], "it does not apply to values of this type").when("the type is different", |occurrence| {
        let kind = if occurrence.word == "items" { "array" } else { "object" };
        occurrence.node.get("type").is_some_and(|value| !value.is_null()) && !occurrence.node.has_type(kind)
    }),
    ignored(
        &[
            "enum",
            "const",
            "anyOf",
            "type",
            "properties",
            "required",
            "items",
            "prefixItems",
            "allOf",
            "pattern",
            "format",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "additionalProperties",
        ],
        "only the first of these is used: $ref, oneOf, anyOf, const, enum, then the others",
    )
    .when("a keyword with higher precedence is next to it", is_shadowed),
    weakened(&["oneOf"], "one or more branches may match instead of exactly one; deftool rejects a value that matches two branches"),
    ignored(&["allOf"], "its parts are not read")
        .when("the type is integer, number, boolean or array, or the schema has `:properties`", is_all_of_ignored),
    weakened(&["allOf"], "the properties of its parts are merged, and all are required")
        .when("every part is an object with `:properties` or a reference", |occurrence| {
            parts_have(occurrence, &["properties", "$ref", "anyOf"])
        }),
    weakened(&["allOf"], "a value must be in every enum").when("every part is an enum", |occurrence| parts_have(occurrence, &["enum"])),
    misread(&["allOf"], "only properties and enums of its parts are read: the model can only generate {}"),
    ignored(&["prefixItems"], "`:items` takes precedence").when("the schema has `:items`", |occurrence| occurrence.node.has("items")),
    weakened(&["prefixItems"], "exactly this number of items is required"),
    weakened(&["items"], "exactly this number of items is required")
        .when("it is a list", |occurrence| occurrence.value().is_some_and(Value::is_array)),
    weakened(&["maxLength", "maxItems"], "it is accepted, but enforcement was not observed")
        .when("it is over 2,000", |occurrence| is_relevant(occurrence) && repetitions(occurrence) > MAX_REPETITION),
    ignored(&["pattern"], "the sampler allows any string").when(
        "it does not start with `^` and end with `$`, or contains an unsupported escape or group, such as `\\d`",
        |occurrence| is_relevant(occurrence) && pattern_support(occurrence) == PatternSupport::Ignored,
    ),
    misread(&["pattern"], "`.` and `[^…]` also match an unescaped quote or backslash, lazy repetitions such as `+?` also match nothing, and quotes are not escaped: the model may generate invalid JSON")
        .when("it contains `.`, `[^…]`, `\\n`, a quote or a lazy repetition", |occurrence| {
            is_relevant(occurrence) && pattern_support(occurrence) == PatternSupport::Misread
        }),
    ignored(&["maxLength", "minLength"], "only the pattern or format is used").when(
        "the schema has `:pattern` or a supported `:format`",
        |occurrence| is_relevant(occurrence) && has_pattern_or_known_format(occurrence.node),
    ),
    ignored(&["format"], "only date, time, date-time and uuid are supported")
        .when("it is not one of date, time, date-time, uuid", |occurrence| {
            is_relevant(occurrence) && !is_known_format(occurrence.node) && !occurrence.node.has("pattern")
        }),
    ignored(&["format"], "`:pattern` takes precedence").when("the schema has `:pattern`", |occurrence| occurrence.node.has("pattern")),
    ignored(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], "bounds are supported for integers only")
        .when("the type is not integer", |occurrence| {
            occurrence.node.has_type("number") || !occurrence.node.has("type")
        }),
    ignored(&["exclusiveMinimum", "exclusiveMaximum"], "the inclusive bound takes precedence").when(
        "the schema has `:minimum` or `:maximum`, respectively",
        |occurrence| {
            let inclusive = if occurrence.word == "exclusiveMinimum" { "minimum" } else { "maximum" };
            occurrence.node.has(inclusive)
        },
    ),
    misread(&["minimum"], "no digit is allowed, and the server fails during generation")
        .when("it is greater than `:maximum`", |occurrence| {
            let bound = |keyword: &str| occurrence.node.get(keyword).and_then(Value::as_f64);
            bound("minimum").zip(bound("maximum")).is_some_and(|(least, most)| least > most)
        }),
    misread(&["patternProperties"], "the object is closed anyway: the model cannot generate the names that it allows")
        .when("`:additionalProperties` does not open the object", |occurrence| {
            occurrence.node.get("additionalProperties").is_none_or(|value| value == &Value::Bool(false))
        }),
    ignored(&["patternProperties"], "`:additionalProperties` applies to every other name"),
    ignored(
        &[
            "multipleOf",
            "uniqueItems",
            "contains",
            "minContains",
            "maxContains",
            "unevaluatedItems",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
            "not",
            "if",
            "then",
            "else",
        ],
        "the sampler does not support it",
    ),
    SupportEntry::new(
        Subject::Keywords(&["description", "title", "default", "examples", "$comment"]),
        SupportLevel::Shown,
        Enforcer::Unenforced,
        "the model reads what its chat template includes",
        TRIED,
    ),
    SupportEntry::new(
        Subject::Keywords(&[
            "type",
            "enum",
            "const",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "anyOf",
            "$ref",
            "$defs",
            "definitions",
            "pattern",
            "format",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ]),
        SupportLevel::Enforced,
        Enforcer::Sampler,
        "",
        TRIED,
    ),
    SupportEntry::new(Subject::OtherKeywords, SupportLevel::Shown, Enforcer::Unenforced, "not a keyword of the sampler", TRIED),
];
