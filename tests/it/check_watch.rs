//! `check --watch`: the real binary, told of saves.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::project::Project;
use crate::support::watching::{LIMIT, Watching};

fn check(folder: &Path, arguments: &[&str]) -> Watching {
    Watching::start(folder, "check", arguments)
}

#[test]
fn every_save_of_a_spec_or_script_is_checked() {
    let project = Project::new();
    let watching = check(&project.path("."), &["--format", "json"]);
    assert_eq!(watching.report()["summary"]["errors"], 0);
    project.write("scripts/count.lua", "return function() end\n");
    assert_eq!(watching.report()["findings"][0]["name"], "script-arity");
    project.write("scripts/count.lua", "return function(text, times) end\n");
    assert_eq!(watching.report()["summary"]["errors"], 0);
    project.write("specs/new.eld", "(defexit :name \"two words\" :description \"d\")\n");
    assert_eq!(watching.report()["findings"][0]["file"], "specs/new.eld");
    fs::remove_file(project.path("specs/new.eld")).unwrap();
    assert_eq!(watching.report()["findings"], serde_json::json!([]));
}

/// What the project says of findings counts for one of its files, too, and a change of it is a change.
#[test]
fn denials_are_watched() {
    let project = Project::new();
    project.write("specs/silent.eld", "(defexit :name \"silent\")\n");
    let watching = Watching::start(&project.path("."), "check", &["--format", "json", "specs/silent.eld"]);
    assert_eq!(watching.report()["summary"]["errors"], 0);
    project.write("specs/lint.eld", "(deflint :deny [missing-description])\n");
    assert_eq!(watching.report()["findings"][0]["severity"], "error");
    fs::remove_file(project.path("specs/lint.eld")).unwrap();
    assert_eq!(watching.report()["findings"][0]["severity"], "warning");
}

/// A script elsewhere that is no longer named is no second change, and an editor's lock is none at all.
#[test]
fn a_removed_tool_is_one_report() {
    let project = Project::new();
    project.write("other/x.lua", "return function() end\n");
    project.write("specs/x.eld", "(deftool :name \"x\" :description \"Do it.\" :script \"other/x.lua\")\n");
    let watching = Watching::start(&project.path("."), "check", &["--format", "json"]);
    watching.report();
    project.write("specs/x.eld", "; nothing\n");
    watching.report();
    project.write("scripts/.#count.lua", "");
    assert!(watching.stdout.recv_timeout(Duration::from_millis(2500)).is_err(), "a second report");
}

#[cfg(unix)]
#[test]
fn people_see_findings_time_and_summary_until_ctrl_c() {
    let project = Project::new();
    let mut watching = check(&project.path("."), &["--format", "concise"]);
    watching.said(" 3 tools in 1 file: all good; watching, Ctrl-C ends");
    project.write("specs/new.eld", "(defexit :name \"two words\" :description \"Say it.\")\n");
    let line = watching.stdout.recv_timeout(LIMIT).unwrap();
    assert!(line.starts_with("specs/new.eld:1:16: error[DT110]"), "no screen is cleared in a pipe: {line:?}");
    watching.said(" 4 tools in 2 files: 1 error; `--fix --unsafe-fixes` repairs 1; watching, Ctrl-C ends");
    let pid = watching.child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert_eq!(watching.child.wait().unwrap().code(), Some(130));
}

/// Files of no project, and a script by its name.
#[test]
fn paths_are_watched_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loose.eld");
    fs::write(&path, "(deftool :name \"a\" :description \"d\")\n").unwrap();
    let watching = check(folder.path(), &["--format", "json", "loose.eld"]);
    assert_eq!(watching.report()["summary"]["errors"], 0);
    fs::write(&path, "(deftool :name \"a b\" :description \"d\")\n").unwrap();
    assert_eq!(watching.report()["summary"]["errors"], 1);
    fs::remove_file(&path).unwrap();
    loop {
        let line = watching.stderr.recv_timeout(LIMIT).unwrap();
        if line.starts_with("error: ") {
            assert!(line.contains("cannot read"), "{line}");
            break;
        }
    }
    fs::write(&path, "(deftool :name \"a\" :description \"d\")\n").unwrap();
    assert_eq!(watching.report()["summary"]["errors"], 0);

    let project = Project::new();
    let watching = check(&project.path("."), &["--format", "json", "scripts/count.lua"]);
    assert_eq!(watching.report()["summary"]["errors"], 0);
    project.write("scripts/broken.lua", "return function(\n");
    watching.said("1 tool in 1 file: all good; watching, Ctrl-C ends");
    project.write("scripts/count.lua", "return function(\n");
    while watching.report()["summary"]["errors"] != 1 {}
}

#[test]
fn stdin_is_not_watched() {
    let project = Project::new();
    let ended = project.run_with_stdin(&["check", "-", "--watch"], b"");
    let told = "error: `-` is stdin: it is checked alone and once, and fixes have no file to go to\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), told));
}

#[test]
fn what_cannot_be_read_at_first_is_not_watched() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["gone.eld"]] {
        let mut watching = check(folder.path(), arguments);
        assert_eq!(watching.child.wait().unwrap().code(), Some(2), "{arguments:?}");
    }
}
