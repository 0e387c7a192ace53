//! llama.cpp's server: the schemas of a request's tools become one grammar, and what is sampled keeps to it.
//!
//! Every row was tried on a real server: `tests/llama_cpp` holds what it answered and the grammar it made, and a test
//! holds this table to that. A schema that it cannot convert is a 400 to the whole request; some make it hang.

use serde_json::Value;

use super::llama_conditions::{
    TWO_TO_63, count, has_odd_names, has_other_bound, is_all_of_ignored, is_anything, is_bound_too_far,
    is_counted, is_known_format, is_no_list, is_over_maximum, is_relevant, is_shadowed, is_text_elsewhere,
    is_type, parts_have, reading, repetitions, strongest, target_of,
};
use super::llama_pattern::Reading;
use super::{Claim, Enforcer, Fate, Source, Subject};

const TRIED: Source = Source { at: "tests/llama_cpp (xllamacpp 2026.10.11549)", date: "2026-11-20" };

/// Repetitions that are counted, and too many together with what is around them.
const MAX_ITEMS: std::ops::RangeInclusive<u64> = 2000..=2001;
/// The longest repetition that its grammars count.
const MAX_REPETITION: u64 = 2000;

const fn refused(keywords: &'static [&'static str], says: &'static str) -> Claim {
    Claim::new(Subject::Keywords(keywords), Fate::Refused, Enforcer::Deftool, says, TRIED)
}

const fn ignored(keywords: &'static [&'static str], says: &'static str) -> Claim {
    Claim::new(Subject::Keywords(keywords), Fate::Ignored, Enforcer::Deftool, says, TRIED)
}

const fn weakened(keywords: &'static [&'static str], says: &'static str) -> Claim {
    Claim::new(Subject::Keywords(keywords), Fate::Weakened, Enforcer::Deftool, says, TRIED)
}

const fn misread(keywords: &'static [&'static str], says: &'static str) -> Claim {
    Claim::new(Subject::Keywords(keywords), Fate::Misread, Enforcer::Nobody, says, TRIED)
}

/// The table.
pub(super) static CLAIMS: &[Claim] = &[
    Claim::new(Subject::Schema("a boolean schema"), Fate::Refused, Enforcer::Deftool, "schema must be an object", TRIED)
        .when("`t` or `:json-false` stands for a schema", |subjected| subjected.place.schema.is_boolean()),
    Claim::new(
        Subject::Schema("an object that may hold anything"),
        Fate::Misread,
        Enforcer::Nobody,
        "an object that says nothing of other properties is closed, so that the model can write only {}; `:additionalProperties t` opens it",
        TRIED,
    )
    .when("an object inside a schema has no `:properties`", is_anything),
    // What makes the request fail counts first, whatever stands beside it.
    refused(&["type"], "unrecognized type").when("it names no type, or none at all", |subjected| {
        !is_type(subjected) && strongest(subjected).is_none()
    }),
    refused(&["enum"], "enum must be a non-empty array")
        .when("it is empty", |subjected| is_no_list(subjected.value()) && strongest(subjected).is_none()),
    refused(&["anyOf", "oneOf", "allOf"], "must not be empty")
        .when("it is empty", |subjected| is_no_list(subjected.value()) && strongest(subjected).is_none()),
    refused(&["allOf"], "schema must be an object").when("a part is a boolean", |subjected| {
        let parts = subjected.value().and_then(Value::as_array);
        parts.is_some_and(|parts| parts.iter().any(Value::is_boolean)) && strongest(subjected).is_none()
    }),
    refused(&["properties"], "properties must be an object").when("it is no plist", |subjected| {
        subjected.value().is_some_and(|value| !value.is_object()) && strongest(subjected).is_none()
    }),
    refused(&["additionalProperties"], "additionalProperties must be a boolean or a schema").when(
        "it is neither a boolean nor a schema",
        |subjected| {
            let value = subjected.value();
            value.is_some_and(|value| !value.is_boolean() && !value.is_object()) && strongest(subjected).is_none()
        },
    ),
    refused(&["$ref"], "only references into the same schema are followed, key by key, and `#` itself is none")
        .when("it leads out of the schema or nowhere", |subjected| target_of(subjected.place).is_none()),
    refused(&["$ref"], "failed to parse grammar: it is left-recursive")
        .when("it leads in a circle", |subjected| subjected.place.is_circle()),
    refused(&["minLength", "maxLength", "minItems", "maxItems"], "must be a non-negative integer")
        .when("it is no whole number of 31 bits", |subjected| is_relevant(subjected) && count(subjected).is_none()),
    refused(&["minLength", "minItems"], "the server never answers")
        .when("it is over the maximum beside it", |subjected| is_counted(subjected) && is_over_maximum(subjected)),
    refused(&["minLength", "minItems"], "failed to parse grammar: over 2,000 repetitions").when(
        "it is over 2,000",
        |subjected| is_counted(subjected) && repetitions(subjected) > MAX_REPETITION,
    ),
    refused(&["pattern"], "the server answers 400: invalid pattern")
        .when("it is no pattern", |subjected| is_relevant(subjected) && reading(subjected) == Reading::Refused),
    refused(&["format"], "format must be a string")
        .when("it is not a string", |subjected| subjected.value().is_some_and(|value| !value.is_string())),
    refused(&["additionalProperties"], "failed to parse grammar: the names are written into it as they are").when(
        "it opens an object of which a property's name holds `]` or a backslash",
        |subjected| subjected.value() != Some(&Value::Bool(false)) && has_odd_names(subjected.place),
    ),
    refused(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], "must be a number")
        .when("it is no number", |subjected| {
            subjected.value().is_some_and(|value| !value.is_number()) && is_relevant(subjected)
        }),
    refused(
        &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
        "no digits are left for its grammar: the server refuses it, or eats memory and never answers",
    )
    .when(
        "it leaves only integers of 17 digits or more, or is a float beyond them, without a bound on the other side",
        |subjected| is_relevant(subjected) && is_bound_too_far(subjected),
    ),
    misread(&["maximum", "exclusiveMaximum"], "it wraps around: the model can write only negative numbers")
        .when("it is over 63 bits", |subjected| {
            is_relevant(subjected) && subjected.value().is_some_and(|value| value.is_u64() && !value.is_i64())
        }),
    ignored(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], "it does not fit its integers").when(
        "it is beyond 63 bits",
        |subjected| {
            let bound = subjected.value().and_then(Value::as_f64);
            is_relevant(subjected) && !has_other_bound(subjected) && bound.is_some_and(|bound| bound.abs() >= TWO_TO_63)
        },
    ),
    refused(&["maxItems"], "failed to parse grammar: over 2,000 rules").when(
        "it is 2,000 or 2,001, and no `:minItems` is beside it",
        |subjected| {
            is_relevant(subjected)
                && count(subjected).is_some_and(|count| MAX_ITEMS.contains(&count))
                && subjected.place.get("minItems").and_then(Value::as_u64).unwrap_or_default() == 0
        },
    ),
    ignored(&["properties", "items"], "it says nothing of values of this type").when("the type is another", |subjected| {
        let kind = if subjected.word == "items" { "array" } else { "object" };
        subjected.place.get("type").is_some_and(|value| !value.is_null()) && !subjected.place.has_type(kind)
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
        "only one of these is looked at, in this order: $ref, oneOf, anyOf, const, enum, then the others",
    )
    .when("a stronger keyword stands beside it", is_shadowed),
    weakened(&["oneOf"], "one branch or more, not exactly one; deftool refuses a value that two branches take"),
    ignored(&["allOf"], "its parts are not looked at")
        .when("the type is integer, number, boolean or array, or `:properties` stand beside it", is_all_of_ignored),
    weakened(&["allOf"], "the properties of its parts are put together, every one required")
        .when("every part is an object with `:properties` or a reference", |subjected| {
            parts_have(subjected, &["properties", "$ref", "anyOf"])
        }),
    weakened(&["allOf"], "a value of every enum in it").when("every part is an enum", |subjected| parts_have(subjected, &["enum"])),
    misread(&["allOf"], "only properties and enums of its parts are looked at: the model can write only {}"),
    ignored(&["prefixItems"], "`:items` counts").when("`:items` stands beside it", |subjected| subjected.place.has("items")),
    weakened(&["prefixItems"], "exactly these items, no fewer and no more"),
    weakened(&["items"], "exactly these items, no fewer and no more")
        .when("it is a list", |subjected| subjected.value().is_some_and(Value::is_array)),
    weakened(&["maxLength", "maxItems"], "it is taken, but was not seen to be kept to")
        .when("it is over 2,000", |subjected| is_relevant(subjected) && repetitions(subjected) > MAX_REPETITION),
    ignored(&["pattern"], "the sampler takes any string").when(
        "it does not start with `^` and end with `$`, or holds an escape or a group that is not understood, as `\\d`",
        |subjected| is_relevant(subjected) && reading(subjected) == Reading::Ignored,
    ),
    misread(&["pattern"], "`.` and `[^…]` take a bare quote or backslash, too, `+?` and its like an empty match, and a quote stands for itself: what is written may be no JSON")
        .when("it holds `.`, `[^…]`, `\\n`, a quote or a lazy repetition", |subjected| {
            is_relevant(subjected) && reading(subjected) == Reading::Misread
        }),
    ignored(&["maxLength", "minLength"], "the pattern or format counts alone").when(
        "`:pattern`, or a `:format` that is understood, stands beside it",
        |subjected| is_relevant(subjected) && is_text_elsewhere(subjected.place),
    ),
    ignored(&["format"], "only date, time, date-time and uuid are understood")
        .when("it is none of date, time, date-time, uuid", |subjected| {
            is_relevant(subjected) && !is_known_format(subjected.place) && !subjected.place.has("pattern")
        }),
    ignored(&["format"], "`:pattern` counts").when("`:pattern` stands beside it", |subjected| subjected.place.has("pattern")),
    ignored(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], "only integers have bounds")
        .when("the type is not integer", |subjected| {
            subjected.place.has_type("number") || !subjected.place.has("type")
        }),
    ignored(&["exclusiveMinimum", "exclusiveMaximum"], "the inclusive bound beside it counts").when(
        "`:minimum` or `:maximum` stands beside it",
        |subjected| {
            let inclusive = if subjected.word == "exclusiveMinimum" { "minimum" } else { "maximum" };
            subjected.place.has(inclusive)
        },
    ),
    misread(&["minimum"], "no digit is left for the sampler, and the server fails while it writes")
        .when("it is over `:maximum`", |subjected| {
            let bound = |keyword: &str| subjected.place.get(keyword).and_then(Value::as_f64);
            bound("minimum").zip(bound("maximum")).is_some_and(|(least, most)| least > most)
        }),
    misread(&["patternProperties"], "the object is closed without regard to it: the model cannot write what it allows")
        .when("`:additionalProperties` does not open the object", |subjected| {
            subjected.place.get("additionalProperties").is_none_or(|value| value == &Value::Bool(false))
        }),
    ignored(&["patternProperties"], "`:additionalProperties` counts for every other name"),
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
        "the sampler does not know it",
    ),
    Claim::new(
        Subject::Keywords(&["description", "title", "default", "examples", "$comment"]),
        Fate::Shown,
        Enforcer::Nobody,
        "the model reads what its chat template shows",
        TRIED,
    ),
    Claim::new(
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
        Fate::Enforced,
        Enforcer::Sampler,
        "",
        TRIED,
    ),
    Claim::new(Subject::OtherKeywords, Fate::Shown, Enforcer::Nobody, "no keyword to the sampler", TRIED),
];
