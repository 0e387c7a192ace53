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

/// Rows whose boolean schema the server does not read, because the type is another one.
const NOT_READ: [&str; 3] = ["items-beside-string", "properties-beside-string", "properties-in-enum"];

/// The table says `refused` only of schemas that the server rejects, and `ignored` only of keywords that do not change the
/// grammar.
#[test]
fn the_support_table_matches_the_server_responses() {
    let mut wrong = Vec::new();
    let responses = responses();
    for Recorded { name, parameters, error, keyword } in &responses {
        let found = limitations(Target::LlamaCpp, parameters);
        let is_refused = found.iter().any(|it| it.support.level == SupportLevel::Refused);
        if is_refused && error.is_none() && !NOT_READ.contains(&name.as_str()) {
            wrong.push(format!("{name}: the server accepted it, predicted {:?}", levels(&found)));
        }
        let Some((keyword, is_ignored)) = keyword else { continue };
        let level = found.iter().find(|it| it.word == *keyword).map(|it| it.support.level);
        if !is_ignored && level == Some(SupportLevel::Ignored) {
            wrong.push(format!("{name}: the grammar keeps {keyword}, predicted {:?}", levels(&found)));
        }
    }
    for (pattern, response) in recorded("patterns") {
        let schema = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
        let found = limitations(Target::LlamaCpp, &schema);
        let is_ignored =
            found.iter().any(|it| it.word == "pattern" && it.support.level == SupportLevel::Ignored);
        if is_ignored && response.get("ignored").is_none() && response.get("error").is_none() {
            wrong.push(format!("{pattern:?}: the grammar has it"));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(responses.len() > 300);
}
