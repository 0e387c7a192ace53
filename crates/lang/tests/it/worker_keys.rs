//! Each key of a `defworker` form sets its own field and no other.

use std::collections::HashSet;

use deftool_lang::spec::reference::{KeyValue, Plist, keys};
use deftool_lang::spec::{FileKind, WorkerSpec, lower};
use deftool_lang::text::{SourceFile, Sources, Span};

/// Returns the worker of a form with these keys, and the number of findings.
fn worker(keys: &str) -> (WorkerSpec, usize) {
    let source = Sources::new().add(SourceFile::new("w.eld", ""));
    let text = format!("(defworker :name \"w\" {keys})");
    let (tree, _) = deftool_lang::syntax::parse(source, &text);
    let (definitions, findings) = lower(source, &text, &tree, FileKind::Specs);
    let worker = definitions.workers.into_iter().next().unwrap();
    (WorkerSpec { span: Span::default(), ..worker }, findings.len())
}

/// Returns the lines of the debug output, one or more per field.
fn members(worker: &WorkerSpec) -> Vec<String> {
    format!("{worker:#?}").lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn each_key_sets_its_own_member() {
    let plain = members(&worker("").0);
    for (keys, expected) in [
        (":endpoint \"http://h:1/v1\"", &["endpoint: Some(", "\"http://h:1/v1\","][..]),
        (":model \"m\"", &["model: Some(", "\"m\","]),
        (":system \"Be brief.\"", &["system: Some(", "\"Be brief.\","]),
        (":api-key-env \"MY_KEY\"", &["api_key_env: \"MY_KEY\","]),
        (":api responses", &["api: Some(", "Responses,"]),
        (
            ":dialect vllm",
            &[
                "dialect: Some(",
                "Spanned {",
                "value: \"vllm\",",
                "span: Span {",
                "start: 30,",
                "end: 34,",
                "},",
                "},",
            ],
        ),
        (":slots 3", &["slots: 3,"]),
        (":keep-results 3", &["keep_results: 3,"]),
        (":tool-budget 3", &["tool_budget: 3,"]),
        (":tool-budget 0", &["tool_budget: 0,"]),
        (":budget-unit call", &["budget_unit: Call,"]),
        (":fallback on", &["fallback: On,"]),
        (":system-messages separate", &["system_messages: Separate,"]),
        (":bios-budget head", &["bios_budget: Head,"]),
        (":bios-budget tail", &["bios_budget: Tail,"]),
        (":string-results raw", &["string_results: Raw,"]),
        (":max-result \"1KiB\"", &["max_result: 1024,"]),
        (":on-invalid-arguments report", &["on_invalid_arguments: Some(", "Report,"]),
        (":on-tool-error report", &["on_tool_error: Some(", "Report,"]),
        (":final-turn t", &["final_turn: true,"]),
        (":parallel t", &["parallel: true,"]),
        (":parallel nil", &[]),
        (":parallel :json-false", &[]),
        (":parallel :false", &[]),
        (":connect \"7s\"", &["connect: 7s,"]),
        (":headers \"7s\"", &["headers: Some(", "7s,"]),
        (":stall \"7s\"", &["stall: 7s,"]),
        (":first-token \"7s\"", &["first_token: Some(", "7s,"]),
        (":tool \"7s\"", &["tool: 7s,"]),
        (":total \"1h\"", &["total: Some(", "3600s,"]),
        // A timer equal to `:total` has no finding.
        (
            ":total \"120s\" :stall \"120s\" :first-token \"120s\"",
            &["first_token: Some(", "120s,", "stall: 120s,", "total: Some(", "120s,"],
        ),
    ] {
        let (worker, findings) = worker(keys);
        let mut left = plain.clone();
        let mut set = members(&worker);
        set.retain(|line| match left.iter().position(|known| known == line) {
            Some(at) => {
                left.remove(at);
                false
            }
            None => line != "),",
        });
        assert_eq!((set, findings), (expected.iter().map(ToString::to_string).collect(), 0), "{keys}");
    }
}

#[test]
fn each_word_has_its_own_meaning_and_the_documented_default_is_that_of_a_missing_key() {
    let (plain, _) = worker("");
    for key in keys(Plist::Worker) {
        let KeyValue::Words(words) = key.value else { continue };
        let members_with = |word: &str| members(&worker(&format!(":{} {word}", key.name)).0);
        let meanings: HashSet<Vec<String>> = words.iter().map(|word| members_with(word)).collect();
        assert_eq!(meanings.len(), words.len(), "{}", key.name);
        let (_, default) = key.doc.split_once("Default: `").unwrap();
        let (default, rest) = default.split_once('`').unwrap();
        // Other defaults depend on the command.
        if !rest.starts_with(';') {
            assert_eq!(members_with(default), members(&plain), "{}", key.name);
        }
    }
}

/// A key without a value, followed by the same key with a value, has one finding.
#[test]
fn a_key_without_a_value_followed_by_the_same_key_has_one_finding() {
    let (worker, findings) = worker(":model :model \"m\"");
    assert_eq!((worker.model.as_deref(), findings), (Some("m"), 1));
}
