//! The llama.cpp support table matches recorded server responses: `tests/llama_cpp`, written by `tests/real/grammar.py`.

use std::fs;
use std::path::{Path, PathBuf};

use deftool_lang::schema::support::SupportLevel;
use deftool_lang::schema::{Limitation, Target, limitations};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama_cpp")
}

/// Returns the recorded responses, sorted by name.
pub(crate) fn records() -> Vec<(String, Value)> {
    let mut records: Vec<(String, Value)> = fs::read_dir(folder())
        .unwrap()
        .flatten()
        .map(|entry| {
            let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
            (name, serde_json::from_str(&fs::read_to_string(entry.path()).unwrap()).unwrap())
        })
        .collect();
    records.sort_by(|one, other| one.0.cmp(&other.0));
    records
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
    let mut checked = 0;
    for (name, record) in records() {
        let Some(parameters) = record.get("parameters") else { continue };
        checked += 1;
        let found = limitations(Target::LlamaCpp, parameters);
        let is_refused = found.iter().any(|it| it.support.level == SupportLevel::Refused);
        let was_refused = record["required"]["status"] != 200;
        if is_refused != was_refused {
            wrong.push(format!(
                "{name}: the server returned {}, predicted {:?}",
                record["required"],
                levels(&found)
            ));
        }
        assert_eq!(was_refused, record["auto"]["status"] != 200, "{name}");
        let (Some(ignored), Some(keyword)) = (record["ignored"].as_bool(), record["keyword"].as_str()) else {
            continue;
        };
        let is_reported = found.iter().any(|it| it.word == keyword);
        // Removing a keyword may also change how the rest is converted.
        if ignored && !is_reported && !WITHOUT_EFFECT.contains(&name.as_str()) {
            wrong.push(format!("{name}: the grammar ignores {keyword}, predicted {:?}", levels(&found)));
        }
        let is_ignored =
            found.iter().any(|it| it.word == keyword && it.support.level == SupportLevel::Ignored);
        if !ignored && is_ignored {
            wrong.push(format!("{name}: the grammar keeps {keyword}, predicted {:?}", levels(&found)));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 100, "only {checked} rows were checked");
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

#[test]
fn the_pattern_support_matches_the_server_responses() {
    let record: Value =
        serde_json::from_str(&fs::read_to_string(folder().join("patterns.json")).unwrap()).unwrap();
    let patterns = record["patterns"].as_object().unwrap();
    let mut wrong = Vec::new();
    for (pattern, answer) in patterns {
        let schema = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
        let found = limitations(Target::LlamaCpp, &schema);
        let level = found.iter().find(|it| it.word == "pattern").map(|it| it.support.level);
        let is_right = match answer.get("error") {
            Some(_) => level == Some(SupportLevel::Refused),
            None if answer["rule"] == "string" || answer["rule"] == "" => {
                level == Some(SupportLevel::Ignored)
            }
            None => {
                // A complete sample that is not valid JSON shows that the grammar allows too much.
                let sample = answer["sample"].as_str().unwrap();
                let is_json = serde_json::from_str::<Value>(sample).is_ok();
                let is_cut = !sample.trim_end().ends_with('}');
                matches!(level, Some(SupportLevel::Misread)) || (level.is_none() && (is_json || is_cut))
            }
        };
        if !is_right {
            wrong.push(format!("{pattern:?}: {answer}, predicted {level:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} patterns differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(patterns.len() > 200);
}
