//! The toolbox: the tools of this repository, which `deftool init --toolbox` copies. Their calls are in
//! `tests/commands/toolbox.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn here(arguments: &[&str]) -> Ended {
    Ended::of(command_in(&repository(), arguments).env_remove("CLICOLOR_FORCE").output().unwrap())
}

/// Returns the paths of all toolbox files in the repository.
fn shipped() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["specs", "scripts", "scripts/lib"] {
        for entry in fs::read_dir(repository().join(folder)).unwrap().flatten() {
            if entry.path().is_file() {
                found.insert(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    found
}

#[test]
fn the_toolbox_is_without_findings_and_passes_its_tests() {
    // Only the repository's own project, without those in its subfolders.
    let ended = here(&["check", "--strict", "specs"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    #[cfg(feature = "analyze")]
    {
        let ended = here(&["check", "--strict", "--types", "specs"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let ended = here(&["fmt", "--check", "specs"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The tests require no trust: they use only their own folders.
    let ended = here(&["test", "specs", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let summary = &report["summary"];
    assert_eq!(summary["without_tests"].as_u64().unwrap_or(0), 0, "{summary}");
    assert!(summary["tests"].as_u64().unwrap() >= 40, "{summary}");
}

#[test]
fn init_copies_the_whole_toolbox() {
    let project = Project::empty();
    let ended = project.run(&["init", "--toolbox"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for name in shipped() {
        let copy = fs::read_to_string(project.path(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(copy, fs::read_to_string(repository().join(&name)).unwrap(), "{name}");
    }
    assert_eq!(project.run(&["check", "--strict"]).code, Some(0));
    let ended = project.run(&["call", "calculate", r#"{"expression": "2 ^ 10"}"#, "--json"]);
    assert_eq!(result(&ended), json!({"result": 1024}));
    // A second run changes nothing.
    let again = project.run(&["init", "--toolbox"]);
    assert!(again.code == Some(0) && !again.stderr.contains("created"), "{again:?}");
}

fn result(ended: &Ended) -> Value {
    let report: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!(report["ok"], json!(true), "{report}");
    report["result"].clone()
}
