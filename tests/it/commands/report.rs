//! The output of `check` in each format, for the project in `tests/report` and the expected files next to it.
//!
//! `UPDATE_EXPECT=1` updates the expected output. `tests/sarif/install` downloads the published SARIF schema.
//! Without the schema the validation is skipped with a message; with `DEFTOOL_SARIF=required`, as in `.ci/run`, it fails.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::support::project::{Ended, Project, command_in};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn check(arguments: &[&str]) -> Ended {
    let folder = root().join("tests/report/project");
    let arguments = [&["check"], arguments].concat();
    Ended::of(command_in(&folder, &arguments).env_remove("CLICOLOR_FORCE").output().unwrap())
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

fn expected(file: &str) -> String {
    fs::read_to_string(root().join("tests/report").join(file)).unwrap_or_default()
}

#[test]
fn each_format_matches_the_expected_file() {
    let mut wrong = Vec::new();
    let mut compare = |file: &str, written: &str| {
        if std::env::var("UPDATE_EXPECT").is_ok() {
            fs::write(root().join("tests/report").join(file), written).unwrap();
        } else if expected(file) != written {
            wrong.push(format!("{file} differs; written was\n{written}"));
        }
    };
    for (format, file, has_summary) in [
        ("human", "human.txt", true),
        ("concise", "concise.txt", false),
        ("json", "json.json", false),
        ("sarif", "sarif.json", true),
        ("github", "github.txt", true),
        ("junit", "junit.xml", true),
    ] {
        let ended = check(&["--format", format]);
        assert_eq!(ended.code, Some(1), "{format}");
        compare(file, &if format == "sarif" { shortened(&ended.stdout) } else { ended.stdout });
        if has_summary {
            compare("summary.txt", &ended.stderr);
        } else {
            assert_eq!(ended.stderr, "", "{format}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn sarif_output_is_valid_under_the_schema() {
    let path = root().join("target/sarif/sarif-schema-2.1.0.json");
    let Ok(schema) = fs::read_to_string(&path) else {
        assert!(
            std::env::var("DEFTOOL_SARIF").as_deref() != Ok("required"),
            "the schema is required and not there: run tests/sarif/install"
        );
        // Write to stderr directly, because the test harness captures the output of the macros.
        let _ = writeln!(std::io::stderr(), "skipped: no SARIF schema; tests/sarif/install fetches it");
        return;
    };
    // Fixes an error in the published schema: a strict parser rejects a pattern with an unmatched bracket.
    let schema: Value = serde_json::from_str(&schema.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}?$")).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let clean = Project::new();
    for written in [check(&["--format", "sarif"]).stdout, clean.run(&["check", "--format", "sarif"]).stdout] {
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
    let log: Value = serde_json::from_str(&check(&["--format", "sarif"]).stdout).unwrap();
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            let length = rule[text]["text"].as_str().unwrap().chars().count();
            assert!(length > 0 && (length <= 1024 || text == "help"), "{rule}");
        }
    }
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), expected("concise.txt").lines().count());
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

#[test]
fn junit_fails_for_warnings_when_strict() {
    let project = Project::new();
    project.write("specs/odd.eld", "(defexit :name \"odd\" :description \"d\" :categry \"x\")\n");
    for (arguments, code, failures) in
        [(&["check", "--format", "junit"][..], 0, 0), (&["check", "--format", "junit", "--strict"], 1, 1)]
    {
        let ended = project.run(arguments);
        assert_eq!(ended.code, Some(code));
        assert_eq!(ended.stdout.matches("<failure ").count(), failures, "{}", ended.stdout);
        assert!(ended.stdout.contains("name=\"scripts/count.lua\"/>"));
    }
}

#[test]
fn colours_are_used_on_terminals_and_on_request() {
    let folder = root().join("tests/report/project");
    for (arguments, name, value, has_colours) in [
        (&["check"][..], "NO_COLOR", "", false),
        (&["check"], "CLICOLOR_FORCE", "1", true),
        (&["check", "--color", "always"], "NO_COLOR", "1", true),
        (&["--color", "never", "check"], "CLICOLOR_FORCE", "1", false),
        (&["check", "--diff", "--color", "always"], "TERM", "dumb", true),
    ] {
        let mut command = command_in(&folder, arguments);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env(name, value);
        let ended = Ended::of(command.output().unwrap());
        assert_eq!(ended.stdout.contains('\u{1b}'), has_colours, "{arguments:?} {name}={value}");
    }
}

/// If a path is a script, the check covers the script and the tools that use it.
#[test]
fn a_script_is_checked_with_its_tools() {
    let ended = check(&["scripts/length.lua", "--format", "concise"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stdout.starts_with("scripts/length.lua:1:1: error[DT403]") && ended.stdout.lines().count() == 1
    );
    let ended = check(&["scripts/spell.lua"]);
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stdout.starts_with("warning[DT212]") && ended.stdout.contains("specs/more.eld:5:30"),
        "{ended:?}"
    );
    assert_eq!(ended.stderr, "1 tool in 1 file: 1 warning; `--fix` repairs 1\n");
    let ended = check(&["scripts/unused.lua"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("no tool of the project uses"), "{ended:?}");
    // Together with another file of the same project, which is checked completely.
    let ended = check(&["scripts/length.lua", "specs/clean.eld", "--format", "concise"]);
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    let ended = check(&[".", "scripts/length.lua", "--format", "concise"]);
    assert_eq!(ended.stdout, expected("concise.txt"));
    // Outside a project, no tool uses a script.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.lua"), "return function() end\n").unwrap();
    let ended = Ended::of(command_in(folder.path(), &["check", "x.lua"]).output().unwrap());
    assert!(ended.code == Some(2) && ended.stderr.contains("no project found"), "{ended:?}");
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let folder = root().join("tests/report/project");
    for format in ["human", "sarif", "junit"] {
        let mut command = command_in(&folder, &["check", "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = Ended::of(child.wait_with_output().unwrap());
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(1), expected("summary.txt").as_str()),
            "{format}"
        );
    }
}

/// The project contains every kind of finding, so that the snapshots cover them.
#[test]
fn the_project_has_every_kind_of_finding() {
    let report: Value = serde_json::from_str(&check(&["--format", "json"]).stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    for severity in ["error", "warning", "note"] {
        assert!(findings.iter().any(|finding| finding["severity"] == severity));
    }
    let is_script = |finding: &&Value| Path::new(finding["file"].as_str().unwrap()).starts_with("scripts");
    assert!(findings.iter().any(|finding| is_script(&finding)));
    assert!(findings.iter().any(|finding| finding["file"] == "specs/größe 100%.eld"));
}

/// The human format is limited; machine-readable formats are complete.
#[test]
fn the_human_format_shows_at_most_a_thousand_findings() {
    let folder = tempfile::tempdir().unwrap();
    let tool = |number: usize| {
        format!(
            "(deftool :name \"a{number}\" :description \"Do a.\" :args ((:name \"x\" :type strng :description \"It.\")))\n"
        )
    };
    fs::write(folder.path().join("many.eld"), (0..1_200).map(tool).collect::<String>()).unwrap();
    let written = |format: &str| {
        Ended::of(command_in(folder.path(), &["check", "many.eld", "--format", format]).output().unwrap())
            .stdout
    };
    let human = written("human");
    assert_eq!(human.matches("error[DT204]").count(), 1_000);
    assert!(human.ends_with("\nand 200 more findings; `deftool check --format concise` prints all\n"));
    let github = written("github");
    assert_eq!(github.lines().count(), 1_001);
    assert!(github.ends_with("\nand 200 more findings; `deftool check --format concise` prints all\n"));
    assert_eq!(written("concise").lines().count(), 1_200);
    let json: Value = serde_json::from_str(&written("json")).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 1_200);
}
