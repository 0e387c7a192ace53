//! `check --format sarif`, for the project of `tests/commands/check_formats.md`, which has the other formats.
//!
//! `UPDATE_EXPECT=1` updates `tests/report/sarif.json`. `tests/sarif/install` downloads the published SARIF schema.
//! Without the schema the validation is skipped with a message; with `DEFTOOL_SARIF=required`, as in `.ci/run`, it fails.

use std::fs;
use std::path::PathBuf;

use deftool_test_support::can_use;
use serde_json::Value;

use super::pages::write_introduction;
use crate::support::project::{Ended, Project};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn check(format: &str) -> Ended {
    let project = Project::empty();
    write_introduction("check_formats", &project.path(""));
    project.run(&["check", "--format", format])
}

/// Removes the long rule descriptions, which are tested with `deftool rule`.
fn shortened(sarif: &str) -> String {
    let mut log: Value = serde_json::from_str(sarif).unwrap();
    for rule in log["runs"][0]["tool"]["driver"]["rules"].as_array_mut().unwrap() {
        let rule = rule.as_object_mut().unwrap();
        assert!(rule["help"]["markdown"].as_str().is_some_and(|text| !text.is_empty()));
        for long in ["help", "fullDescription"] {
            rule.remove(long);
        }
    }
    serde_json::to_string_pretty(&log).unwrap() + "\n"
}

#[test]
fn sarif_output_matches_the_expected_file() {
    let ended = check("sarif");
    assert_eq!((ended.code, ended.stderr), (Some(1), check("github").stderr));
    let (path, written) = (root().join("tests/report/sarif.json"), shortened(&ended.stdout));
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(path, written).unwrap();
        return;
    }
    assert!(fs::read_to_string(path).unwrap() == written, "written was\n{written}");
}

#[test]
fn sarif_output_is_valid_under_the_schema() {
    let path = root().join("target/sarif/sarif-schema-2.1.0.json");
    if !can_use("SARIF schema", path.exists(), "DEFTOOL_SARIF", "tests/sarif/install") {
        return;
    }
    let schema = fs::read_to_string(&path).unwrap();
    // Fixes an error in the published schema: a strict parser rejects a pattern with an unmatched bracket.
    let schema: Value = serde_json::from_str(&schema.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}?$")).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let clean = Project::new();
    for written in [check("sarif").stdout, clean.run(&["check", "--format", "sarif"]).stdout] {
        let log: Value = serde_json::from_str(&written).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }
    // The schema does not accept everything.
    assert!(!validator.is_valid(&serde_json::json!({"version": "2.1.0", "runs": [{"results": [{}]}]})));
}

/// GitHub's own requirements, without which it rejects the file or the result.
#[test]
fn sarif_output_meets_the_requirements_of_github() {
    let log: Value = serde_json::from_str(&check("sarif").stdout).unwrap();
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            let length = rule[text]["text"].as_str().unwrap().chars().count();
            assert!(length > 0 && (length <= 1024 || text == "help"), "{rule}");
        }
    }
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), check("concise").stdout.lines().count());
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let location = &result["locations"][0]["physicalLocation"];
        let uri = location["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.is_ascii() && !uri.contains([' ', '\\']) && !uri.starts_with('/'), "{uri}");
        let region = &location["region"];
        let place =
            |line: &str, column: &str| (region[line].as_u64().unwrap(), region[column].as_u64().unwrap());
        let (start, end) = (place("startLine", "startColumn"), place("endLine", "endColumn"));
        assert!(start >= (1, 1) && start <= end, "{region}");
    }
    assert!(results.iter().any(|result| result["relatedLocations"][0]["message"]["text"].is_string()));
    assert!(
        results.iter().any(|result| result["fixes"][0]["artifactChanges"][0]["replacements"][0].is_object())
    );
}
