//! What is claimed of llama.cpp's server agrees with what it answered: `tests/llama_cpp`, written by
//! `tests/real/grammar.py`.

use std::fs;
use std::path::{Path, PathBuf};

use deftool::schema::claims::Fate;
use deftool::schema::{Held, Target, losses};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama_cpp")
}

/// The recorded answers, by name.
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

fn fates(held: &[Held]) -> Vec<String> {
    held.iter()
        .map(|held| format!("{} {} {}", held.claim.fate.as_str(), held.pointer, held.claim.about()))
        .collect()
}

/// What the server refuses is predicted as refused, what it takes is not, and a keyword that changes nothing in its
/// grammar is predicted as ignored.
#[test]
fn the_claims_agree_with_what_the_server_answered() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (name, record) in records() {
        let Some(parameters) = record.get("parameters") else { continue };
        checked += 1;
        let held = losses(Target::LlamaCpp, parameters);
        let is_refused = held.iter().any(|held| held.claim.fate == Fate::Refused);
        let was_refused = record["required"]["status"] != 200;
        if is_refused != was_refused {
            wrong.push(format!(
                "{name}: the server said {}, predicted {:?}",
                record["required"],
                fates(&held)
            ));
        }
        assert_eq!(was_refused, record["auto"]["status"] != 200, "{name}");
        let (Some(ignored), Some(keyword)) = (record["ignored"].as_bool(), record["keyword"].as_str()) else {
            continue;
        };
        let is_lost = held.iter().any(|held| held.word == keyword);
        // Taking a keyword away may also change what is made of the rest.
        if ignored && !is_lost && !NOTHING_TO_LOSE.contains(&name.as_str()) {
            wrong.push(format!("{name}: the grammar ignores {keyword}, predicted {:?}", fates(&held)));
        }
        let is_ignored = held.iter().any(|held| held.word == keyword && held.claim.fate == Fate::Ignored);
        if !ignored && is_ignored {
            wrong.push(format!("{name}: the grammar keeps {keyword}, predicted {:?}", fates(&held)));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 100, "only {checked} rows were checked");
}

/// Rows in which the keyword says nothing that the schema without it does not say: an annotation, a keyword about values
/// of another type, a type that the constants tell.
const NOTHING_TO_LOSE: [&str; 24] = [
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
fn the_claims_about_patterns_agree_with_what_the_server_answered() {
    let record: Value =
        serde_json::from_str(&fs::read_to_string(folder().join("patterns.json")).unwrap()).unwrap();
    let patterns = record["patterns"].as_object().unwrap();
    let mut wrong = Vec::new();
    for (pattern, answer) in patterns {
        let schema = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
        let held = losses(Target::LlamaCpp, &schema);
        let fate = held.iter().find(|held| held.word == "pattern").map(|held| held.claim.fate);
        let is_right = match answer.get("error") {
            Some(_) => fate == Some(Fate::Refused),
            None if answer["rule"] == "string" || answer["rule"] == "" => fate == Some(Fate::Ignored),
            None => {
                // A sample that is whole and no JSON shows that more is let through than a string may hold.
                let sample = answer["sample"].as_str().unwrap();
                let is_json = serde_json::from_str::<Value>(sample).is_ok();
                let is_cut = !sample.trim_end().ends_with('}');
                matches!(fate, Some(Fate::Misread)) || (fate.is_none() && (is_json || is_cut))
            }
        };
        if !is_right {
            wrong.push(format!("{pattern:?}: {answer}, predicted {fate:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} patterns differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(patterns.len() > 200);
}
