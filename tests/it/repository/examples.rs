//! The projects of this repository: its toolbox and the examples.

use std::path::Path;
use std::process::Command;

use crate::support::project::{Ended, command_in};

/// The commands find the projects themselves. `.ignore` names those that are input of tests.
#[test]
fn the_projects_of_the_repository_are_checked_formatted_and_tested() {
    for arguments in [&["check", "--strict"][..], &["fmt", "--check"], &["test"]] {
        let ended = Ended::of(command_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments).output().unwrap());
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn the_programs_of_the_recipe_run_if_they_are_installed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/recipes/programs");
    let mut count = 0;
    for (program, tool, arguments, expected) in [
        ("python3", "statistics", r#"{"numbers": [1, 2, 6]}"#, "{\n  \"mean\": 3,\n  \"median\": 2\n}\n"),
        ("node", "slug", r#"{"title": "Über die Höhe: 3"}"#, "\"uber-die-hohe-3\"\n"),
        ("emacs", "indent_lisp", r#"{"code": "(let ()\n\"é\")"}"#, "\"(let ()\\n  \\\"é\\\")\"\n"),
        ("grep", "find_in_programs", r#"{"pattern": "nowhere"}"#, "\"[exit code 1]\"\n"),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            continue;
        }
        count += 1;
        let output = Command::new(env!("CARGO_BIN_EXE_deftool"))
            .args(["call", "--trust", tool, arguments])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert!(count > 0 || std::env::var_os("CI").is_none());
}

/// The replies of a real model to the asks of the toolbox are recorded: `tests/real/evaluate --record` made both files.
#[test]
fn the_recorded_evaluation_of_the_toolbox_has_the_same_result() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let arguments = [
        ["eval", "--replay", "tests/real/toolbox.recording.jsonl"].as_slice(),
        &["--param", "temperature=0", "--param", "max_tokens=256", "--format", "markdown"],
    ];
    let ended = Ended::of(command_in(root, &arguments.concat()).output().unwrap());
    let expected = std::fs::read_to_string(root.join("tests/real/toolbox.md")).unwrap();
    let is_same = (ended.code, &ended.stdout) == (Some(0), &expected) && !ended.stderr.contains("skipped");
    assert!(is_same, "record it again with tests/real/evaluate --record: {ended:?}");
}
