//! `deftool check` reports no findings for the projects under `examples/`.

use std::path::Path;
use std::process::Command;

#[test]
fn every_example_checks_strictly() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut count = 0;
    for entry in
        std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().join("specs").is_dir())
    {
        count += 1;
        let output = Command::new(env!("CARGO_BIN_EXE_deftool"))
            .args(["check", "--strict"])
            .arg(entry.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert!(count > 0);
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
