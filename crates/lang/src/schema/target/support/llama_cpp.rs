//! The llama.cpp server: it converts the schemas of a request's tools to one grammar that constrains sampling.
//!
//! The rows were tried on a real server: `tests/llama_cpp.json` contains its responses, and a test compares this table with
//! them. The table names what the grammar leaves out or reads differently. What only a faulty schema contains, such as an
//! empty `enum`, is found by the rules of the language.

use serde_json::Value;

use super::model::{Enforcer, Occurrence, Source, Subject, SupportEntry, SupportLevel};

const TRIED: Source = Source { at: "tests/llama_cpp.json (xllamacpp 2026.10.11549)", date: "2026-11-20" };

/// The maximum repetition count in the server's grammars.
const MAX_REPETITION: u64 = 2000;

/// The formats that the grammar contains.
const FORMATS: [&str; 9] = ["date", "time", "date-time", "uuid", "uuid1", "uuid2", "uuid3", "uuid4", "uuid5"];

const fn refused(keywords: &'static [&'static str], detail: &'static str) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Refused, Enforcer::Deftool, detail, TRIED)
}

const fn ignored(keywords: &'static [&'static str], detail: &'static str) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Ignored, Enforcer::Deftool, detail, TRIED)
}

const fn weakened(keywords: &'static [&'static str], detail: &'static str) -> SupportEntry {
    SupportEntry::new(Subject::Keywords(keywords), SupportLevel::Weakened, Enforcer::Deftool, detail, TRIED)
}

/// The support table.
pub(super) static SUPPORT: &[SupportEntry] = &[
    SupportEntry::new(
        Subject::Schema("a boolean schema"),
        SupportLevel::Refused,
        Enforcer::Deftool,
        "schema must be an object",
        TRIED,
    )
    .when("a schema is `t` or `:json-false`", |occurrence| occurrence.node.schema.is_boolean()),
    SupportEntry::new(
        Subject::Schema("an object with arbitrary members"),
        SupportLevel::Misread,
        Enforcer::Unenforced,
        "an object without `:additionalProperties` is closed, so the model can only generate {}; \
         `:additionalProperties t` opens it",
        TRIED,
    )
    .when("a nested object has no `:properties`", is_anything),
    refused(&["$ref"], "only references into the same schema are followed, and no cycles")
        .when("it points outside the schema, to nothing or into a cycle", |occurrence| {
            occurrence.node.is_cyclic() || !has_target(occurrence)
        }),
    refused(&["minLength", "minItems"], "failed to parse grammar: over 2,000 repetitions").when(
        "it is over 2,001",
        |occurrence| {
            let kind = if occurrence.word == "minItems" { "array" } else { "string" };
            let count = occurrence.value().and_then(Value::as_u64);
            occurrence.node.has_type(kind)
                && !["pattern", "format", "enum", "const", "anyOf", "oneOf", "$ref"].iter().any(|other| occurrence.node.has(other))
                && count.is_some_and(|count| count > MAX_REPETITION + 1)
        },
    ),
    ignored(&["pattern"], "the sampler allows any string").when(
        "it does not start with `^` and end with `$`, or contains an escape such as `\\d` or a group such as `(?i)`",
        |occurrence| occurrence.value().and_then(Value::as_str).is_some_and(|pattern| !is_converted(pattern)),
    ),
    SupportEntry::new(
        Subject::Keywords(&["pattern"]),
        SupportLevel::Misread,
        Enforcer::Unenforced,
        "`.` and `[^…]` also match quotes and backslashes, so the model may generate invalid JSON",
        TRIED,
    )
    .when("it contains `.` or `[^`", |occurrence| {
        let pattern = occurrence.value().and_then(Value::as_str);
        pattern.is_some_and(|pattern| pattern.contains('.') || pattern.contains("[^"))
    }),
    ignored(&["format"], "only date, time, date-time and uuid are supported").when(
        "it is not one of date, time, date-time, uuid",
        |occurrence| {
            let format = occurrence.value().and_then(Value::as_str);
            occurrence.node.has_type("string") && format.is_some_and(|format| !FORMATS.contains(&format))
        },
    ),
    ignored(
        &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
        "bounds are supported for integers only",
    )
    .when("the type is not integer", |occurrence| !occurrence.node.has_type("integer")),
    weakened(&["oneOf"], "one or more branches may match instead of exactly one"),
    weakened(&["allOf"], "properties and enums of its parts are merged, and the rest is not read"),
    weakened(&["prefixItems"], "exactly this number of items is required"),
    ignored(
        &[
            "multipleOf",
            "uniqueItems",
            "contains",
            "minContains",
            "maxContains",
            "unevaluatedItems",
            "patternProperties",
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
        "of $ref, oneOf, anyOf, const and enum beside each other, only the first",
        TRIED,
    ),
    SupportEntry::new(
        Subject::OtherKeywords,
        SupportLevel::Shown,
        Enforcer::Unenforced,
        "not a keyword of the sampler",
        TRIED,
    ),
];

fn is_anything(occurrence: &Occurrence<'_>) -> bool {
    let node = occurrence.node;
    let describing =
        ["properties", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"];
    node.has_type("object") && !describing.iter().any(|keyword| node.has(keyword))
}

/// Follows a reference as the server does: key by key, without unescaping.
fn has_target(occurrence: &Occurrence<'_>) -> bool {
    let steps = occurrence.value().and_then(Value::as_str).and_then(|target| target.strip_prefix("#/"));
    let root = occurrence.node.root.schema;
    steps.is_some_and(|steps| {
        let target = steps.split('/').try_fold(root, |at, step| match step.parse::<usize>() {
            Ok(index) if at.is_array() => at.get(index),
            _ => at.get(step),
        });
        target.is_some_and(Value::is_object)
    })
}

/// Returns whether the grammar contains the pattern.
fn is_converted(pattern: &str) -> bool {
    let is_anchored = pattern.starts_with('^') && pattern.ends_with('$');
    let mut chars = pattern.chars();
    let mut escaped = std::iter::from_fn(|| {
        chars.by_ref().find(|c| *c == '\\')?;
        chars.next()
    });
    let is_known = |c: char| !c.is_ascii_alphanumeric() || "nrtxu".contains(c);
    is_anchored && pattern.matches("(?").count() == pattern.matches("(?:").count() && escaped.all(is_known)
}
