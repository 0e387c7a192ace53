//! `check --watch`: the real binary, told of saves.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::project::{Project, command_in};

const LIMIT: Duration = Duration::from_secs(20);

struct Watching {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

impl Watching {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = command_in(folder, &[&["check", "--watch"], arguments].concat());
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// The JSON line of the next run.
    fn report(&self) -> Value {
        serde_json::from_str(&self.stdout.recv_timeout(LIMIT).unwrap()).unwrap()
    }

    /// Waits for a line on stderr that ends so.
    fn said(&self, end: &str) {
        loop {
            let line = self.stderr.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("nothing ends in {end:?}"));
            if line.ends_with(end) {
                return;
            }
        }
    }
}

#[test]
fn every_save_of_a_spec_or_script_is_checked() {
    let project = Project::new();
    let watching = Watching::start(&project.path("."), &["--format", "json"]);
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
    let watching = Watching::start(&project.path("."), &["--format", "json", "specs/silent.eld"]);
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
    let watching = Watching::start(&project.path("."), &["--format", "json"]);
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
    let mut watching = Watching::start(&project.path("."), &["--format", "concise"]);
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
    let watching = Watching::start(folder.path(), &["--format", "json", "loose.eld"]);
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
    let watching = Watching::start(&project.path("."), &["--format", "json", "scripts/count.lua"]);
    assert_eq!(watching.report()["summary"]["errors"], 0);
    project.write("scripts/broken.lua", "return function(\n");
    watching.said("1 tool in 1 file: all good; watching, Ctrl-C ends");
    project.write("scripts/count.lua", "return function(\n");
    while watching.report()["summary"]["errors"] != 1 {}
}

#[test]
fn what_cannot_be_read_at_first_is_not_watched() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["gone.eld"]] {
        let mut watching = Watching::start(folder.path(), arguments);
        assert_eq!(watching.child.wait().unwrap().code(), Some(2), "{arguments:?}");
    }
}
