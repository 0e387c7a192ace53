//! `check --watch` with the real binary.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::project::{Project, command_in};
use crate::support::watching::{LIMIT, WatchProcess};

fn check(folder: &Path, arguments: &[&str]) -> WatchProcess {
    WatchProcess::start(folder, "check", arguments)
}

#[test]
fn every_save_of_a_spec_or_script_is_checked() {
    let project = Project::new();
    let watch = check(&project.path("."), &["--format", "json"]);
    assert_eq!(watch.report()["summary"]["errors"], 0);
    project.write("scripts/count.lua", "return function() end\n");
    assert_eq!(watch.report()["findings"][0]["name"], "script-arity");
    project.write("scripts/count.lua", "return function(text, times) end\n");
    assert_eq!(watch.report()["summary"]["errors"], 0);
    project.write("specs/new.eld", "(defexit :name \"two words\" :description \"d\")\n");
    assert_eq!(watch.report()["findings"][0]["file"], "specs/new.eld");
    fs::remove_file(project.path("specs/new.eld")).unwrap();
    assert_eq!(watch.report()["findings"], serde_json::json!([]));
}

/// Project-wide settings apply to a single checked file, and changes of them are detected.
#[test]
fn deny_settings_are_watched() {
    let project = Project::new();
    project.write("specs/silent.eld", "(defexit :name \"silent\")\n");
    let watch = WatchProcess::start(&project.path("."), "check", &["--format", "json", "specs/silent.eld"]);
    assert_eq!(watch.report()["summary"]["errors"], 0);
    project.write("specs/lint.eld", "(defproject :deny [missing-description])\n");
    assert_eq!(watch.report()["findings"][0]["severity"], "error");
    fs::remove_file(project.path("specs/lint.eld")).unwrap();
    assert_eq!(watch.report()["findings"][0]["severity"], "warning");
}

/// An external script that is no longer referenced causes no second report. A lock file of an editor causes none at
/// all.
#[test]
fn removing_a_tool_causes_one_report() {
    let project = Project::new();
    project.write("other/x.lua", "return function() end\n");
    project.write("specs/x.eld", "(deftool :name \"x\" :description \"Do it.\" :script \"other/x.lua\")\n");
    let watch = WatchProcess::start(&project.path("."), "check", &["--format", "json"]);
    watch.report();
    project.write("specs/x.eld", "; nothing\n");
    watch.report();
    project.write("scripts/.#count.lua", "");
    assert!(watch.stdout.recv_timeout(Duration::from_millis(2500)).is_err(), "unexpected second report");
}

/// The analyzer is not started: no tool has a script.
#[test]
fn previews_are_announced() {
    let project = Project::empty();
    project.write(
        "specs/now.eld",
        "(deftool :name \"now\" :description \"Tell the time.\" :command [\"date\"])\n",
    );
    project.write(&format!("bin/deftool-analyze{}", std::env::consts::EXE_SUFFIX), "");
    let mut command = command_in(&project.path("."), &["check", "--watch", "--types"]);
    command.env("PATH", project.path("bin")).stdin(Stdio::null()).stdout(Stdio::piped());
    let watch = WatchProcess::of(command.stderr(Stdio::piped()).spawn().unwrap());
    let line = watch.stderr.recv_timeout(LIMIT).unwrap();
    assert!(line.starts_with("warning: `--types` is a preview"), "{line}");
}

#[cfg(unix)]
#[test]
fn human_output_has_findings_and_a_summary_until_ctrl_c() {
    let project = Project::new();
    let mut watch = check(&project.path("."), &["--format", "concise"]);
    watch.wait_for_stderr(" 3 tools in 1 file: all good; watching; press Ctrl-C to stop");
    project.write("specs/new.eld", "(defexit :name \"two words\" :description \"Say it.\")\n");
    let line = watch.stdout.recv_timeout(LIMIT).unwrap();
    assert!(
        line.starts_with("specs/new.eld:1:16: error[DT110]"),
        "the screen must not be cleared in a pipe: {line:?}"
    );
    watch.wait_for_stderr(
        " 4 tools in 2 files: 1 error; `--fix --unsafe-fixes` repairs 1; watching; press Ctrl-C to stop",
    );
    let pid = watch.child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert_eq!(watch.child.wait().unwrap().code(), Some(130));
}

/// Files outside of a project, and a script.
#[test]
fn single_paths_are_watched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loose.eld");
    fs::write(&path, "(deftool :name \"a\" :description \"d\")\n").unwrap();
    let watch = check(folder.path(), &["--format", "json", "loose.eld"]);
    assert_eq!(watch.report()["summary"]["errors"], 0);
    fs::write(&path, "(deftool :name \"a b\" :description \"d\")\n").unwrap();
    assert_eq!(watch.report()["summary"]["errors"], 1);
    fs::remove_file(&path).unwrap();
    loop {
        let line = watch.stderr.recv_timeout(LIMIT).unwrap();
        if line.starts_with("error: ") {
            assert!(line.contains("cannot read"), "{line}");
            break;
        }
    }
    fs::write(&path, "(deftool :name \"a\" :description \"d\")\n").unwrap();
    assert_eq!(watch.report()["summary"]["errors"], 0);

    let project = Project::new();
    let watch = check(&project.path("."), &["--format", "json", "scripts/count.lua"]);
    assert_eq!(watch.report()["summary"]["errors"], 0);
    project.write("scripts/broken.lua", "return function(\n");
    watch.wait_for_stderr("1 tool in 1 file: all good; watching; press Ctrl-C to stop");
    project.write("scripts/count.lua", "return function(\n");
    while watch.report()["summary"]["errors"] != 1 {}
}

#[test]
fn stdin_is_not_watched() {
    let project = Project::new();
    let ended = project.run_with_stdin(&["check", "-", "--watch"], b"");
    let expected = "error: `-` (stdin) cannot be combined with other paths, --fix, --diff or --watch\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), expected));
}

#[test]
fn an_unreadable_path_ends_the_command() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["gone.eld"]] {
        let mut watch = check(folder.path(), arguments);
        assert_eq!(watch.child.wait().unwrap().code(), Some(2), "{arguments:?}");
    }
}
