//! Org files: their Emacs Lisp blocks are read in place.
//!
//! `tests/org/config.org` is checked (`config.findings`), fixed (`config.fixed.org`) and imported (`config.eld`).
//! `UPDATE_EXPECT=1` updates the expected output.

use std::fs;
use std::path::Path;

use crate::support::project::{Ended, Project};

fn config() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/org/config.org")).unwrap()
}

fn project() -> Project {
    let project = Project::empty();
    project.write("config.org", config());
    project
}

#[track_caller]
fn expect(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/org").join(name);
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(&path, found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(&path).unwrap_or_default(), "{name}");
}

#[test]
fn findings_are_at_their_lines() {
    let ended = project().run(&["check", "--format", "concise", "config.org"]);
    assert_eq!(ended.code, Some(1));
    expect("config.findings", &ended.stdout);
    let input = config();
    let ended = project().run_with_stdin(
        &["check", "--format", "concise", "--stdin-filename", "config.org", "-"],
        input.as_bytes(),
    );
    expect("config.findings", &ended.stdout);
}

#[test]
fn fixes_change_only_blocks() {
    let project = project();
    let ended = project.run(&["check", "--fix", "config.org"]);
    assert!(ended.stderr.starts_with("fixed    config.org: "), "{ended:?}");
    expect("config.fixed.org", &fs::read_to_string(project.path("config.org")).unwrap());
}

#[test]
fn tools_are_imported_and_compiled_as_emacs_loads_them() {
    let project = project();
    project.run(&["check", "--fix", "config.org"]);
    let ended = project.run(&["import", "config.org"]);
    expect("config.eld", &ended.stdout);
    let made = project.run(&["init", "--from", "gptel", "config.org", "made"]);
    assert!(made.stderr.contains("1 tool imported"), "{made:?}");
    let compiled = |name: &str| project.run(&["compile", name]).stdout;
    assert_eq!(compiled("config.org"), compiled("made/specs/find_notes.eld"));
    let ended = project.run(&["diff", "config.org", "made/specs"]);
    assert!(ended.stdout.is_empty() || !ended.stdout.contains("find_notes"), "{ended:?}");
}

#[test]
fn fmt_leaves_org_files_unchanged() {
    let project = project();
    let note = "note: config.org is not formatted: deftool does not change the layout of Org files\n";
    for arguments in [&["fmt", "config.org"][..], &["fmt", "--check", "config.org"]] {
        let Ended { code, stdout, stderr } = project.run(arguments);
        assert_eq!((code, stdout.as_str(), stderr), (Some(0), "", format!("{note}1 file unchanged\n")));
    }
    let text = config();
    let ended = project.run_with_stdin(&["fmt", "-", "--stdin-filename", "config.org"], text.as_bytes());
    assert_eq!((ended.stdout, ended.stderr.as_str()), (text.clone(), note));
    assert_eq!(fs::read_to_string(project.path("config.org")).unwrap(), text);
}

/// An Org file is read only if it is named. One without tools is not an error.
#[test]
fn org_files_are_not_found_without_a_name() {
    let project = Project::new();
    let before = project.run(&["check"]);
    project.write("specs/notes.org", "#+begin_src elisp\n(gptel-make-tool)\n#+end_src\n");
    let after = project.run(&["check"]);
    assert_eq!((after.code, after.stderr), (before.code, before.stderr));
    let named = project.run(&["check", "specs/notes.org"]);
    assert!(named.code == Some(1) && named.stdout.contains("specs/notes.org:2:1"), "{named:?}");
    project.write("plain.org", "* Plans\n- (buy \"milk\n");
    let plain = project.run(&["check", "plain.org"]);
    assert_eq!((plain.code, plain.stdout.as_str()), (Some(0), ""), "{plain:?}");
}
