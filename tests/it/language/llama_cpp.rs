//! The llama.cpp support table matches recorded server responses: `tests/llama_cpp.json`, written by
//! `tests/real/grammar.py`.

use std::fs;
use std::path::Path;

use deftool_lang::schema::support::SupportLevel;
use deftool_lang::schema::{Limitation, Target, limitations};
use serde_json::{Map, Value, json};

/// Returns one section of the recorded responses.
fn recorded(section: &str) -> Map<String, Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama_cpp.json");
    let mut responses: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    serde_json::from_value(responses[section].take()).unwrap()
}

/// A recorded response to a tool with one argument.
pub(crate) struct Recorded {
    pub(crate) name: String,
    /// The schema of all arguments, as the compiler writes it.
    pub(crate) parameters: Value,
    pub(crate) error: Option<String>,
    /// The tested keyword, and whether the grammar is the same without it.
    keyword: Option<(String, bool)>,
}

pub(crate) fn responses() -> Vec<Recorded> {
    let responses = recorded("schemas").into_iter().map(|(name, response)| {
        let mut argument = response["argument"].clone();
        if let Some(schema) = argument.as_object_mut().filter(|schema| schema.get("type") == Some(&json!("object"))) {
            schema.entry("required").or_insert(json!([]));
            schema.entry("additionalProperties").or_insert(json!(false));
        }
        let keyword = response["keyword"].as_str().map(String::from).zip(response["ignored"].as_bool());
        let parameters = json!({"type": "object", "properties": {"x": argument}, "required": ["x"], "additionalProperties": false});
        Recorded { name, parameters, error: response["error"].as_str().map(String::from), keyword }
    });
    responses.collect()
}

fn levels(limitations: &[Limitation]) -> Vec<String> {
    limitations
        .iter()
        .map(|it| format!("{} {} {}", it.support.level.as_str(), it.pointer, it.support.about()))
        .collect()
}

/// The table predicts `refused` exactly for the schemas that the server rejects, and `ignored` for keywords that do not
/// change the grammar.
#[test]
fn the_support_table_matches_the_server_responses() {
    let mut wrong = Vec::new();
    let responses = responses();
    for Recorded { name, parameters, error, keyword } in &responses {
        let found = limitations(Target::LlamaCpp, parameters);
        let is_refused = found.iter().any(|it| it.support.level == SupportLevel::Refused);
        if is_refused != error.is_some() {
            wrong.push(format!("{name}: the server returned {error:?}, predicted {:?}", levels(&found)));
        }
        let Some((keyword, ignored)) = keyword else { continue };
        let is_reported = found.iter().any(|it| it.word == *keyword);
        // Removing a keyword may also change how the rest is converted.
        if *ignored && !is_reported && !WITHOUT_EFFECT.contains(&name.as_str()) {
            wrong.push(format!("{name}: the grammar ignores {keyword}, predicted {:?}", levels(&found)));
        }
        let is_ignored =
            found.iter().any(|it| it.word == *keyword && it.support.level == SupportLevel::Ignored);
        if !ignored && is_ignored {
            wrong.push(format!("{name}: the grammar keeps {keyword}, predicted {:?}", levels(&found)));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(responses.len() > 300);
}

/// Rows in which the keyword has no effect on valid values: an annotation, a keyword for another type, or a type that is
/// implied by constants.
const WITHOUT_EFFECT: [&str; 24] = [
    "additional-properties-false",
    "any-of-beside-description",
    "const-beside-type",
    "content-encoding",
    "default",
    "defs-true",
    "defs-unused-broken",
    "enum-misfit",
    "format-on-integer",
    "items-empty",
    "length-on-integer-broken",
    "minimum-broken-on-string",
    "minimum-lowest",
    "nullable",
    "pattern-broken-on-integer",
    "pattern-on-integer",
    "properties-empty",
    "ref-in-unused-defs",
    "required-not-a-list",
    "required-without-properties",
    "title",
    "type-null-value",
    "unknown-keyword",
    "unknown-keyword-with-ref",
];

/// Unusual patterns that the server converts and the parser rejects, or the reverse.
const NOT_PREDICTED: [&str; 4] = ["^a{,3}$", "^[a\\$", "^[a\\p]+$", "^[a\\P]+$"];

#[test]
fn the_pattern_support_matches_the_server_responses() {
    let patterns = recorded("patterns");
    let mut wrong = Vec::new();
    for (pattern, response) in &patterns {
        let schema = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
        let found = limitations(Target::LlamaCpp, &schema);
        let level = found.iter().find(|it| it.word == "pattern").map(|it| it.support.level);
        let is_right = if response.get("error").is_some() {
            level == Some(SupportLevel::Refused)
        } else if response.get("ignored").is_some() {
            level == Some(SupportLevel::Ignored)
        } else {
            // A complete sample that is not valid JSON shows that the grammar allows too much.
            let sample = response["sample"].as_str().unwrap();
            let is_json = serde_json::from_str::<Value>(sample).is_ok();
            let is_cut = !sample.trim_end().ends_with('}');
            level == Some(SupportLevel::Misread) || (level.is_none() && (is_json || is_cut))
        };
        if is_right == NOT_PREDICTED.contains(&pattern.as_str()) {
            wrong.push(format!("{pattern:?}: {response}, predicted {level:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} patterns differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(patterns.len() > 200);
}
