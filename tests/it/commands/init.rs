//! `deftool init`: its recording, and what its worker sends. The command is in `tests/commands/init.md`.

use std::fs;
use std::path::Path;

use deftool_test_support::server::{Answer, Server, Texts};

use crate::support::project::{Ended, Project};

const FILES: &str = "src/cli/commands/init/files";

/// Runs a command in the folder `made` of the project.
fn run(project: &Project, arguments: &[&str]) -> Ended {
    let mut command = project.command(arguments);
    Ended::of(command.current_dir(project.path("made")).output().unwrap())
}

fn assert_prints(ended: &Ended, text: &str) {
    assert!(ended.code == Some(0) && ended.stdout.contains(text), "{ended:?}");
}

/// `UPDATE_EXPECT=1` records the request again, with the replies of `sample.scenario.eld`.
#[test]
fn a_new_project_replays_its_recording() {
    let project = Project::empty();
    assert_eq!(project.run(&["init", "made"]).code, Some(0));
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILES);
    if std::env::var("UPDATE_EXPECT").is_ok() {
        let scenario = files.join("sample.scenario.eld");
        let stub = ["stub", scenario.to_str().unwrap(), "--quiet", "--", env!("CARGO_BIN_EXE_deftool")];
        let prompt = "How many different words are in: to be or not to be";
        let recorded = run(&project, &[&stub[..], &["run", "--record", "new.jsonl", prompt]].concat());
        assert_eq!(recorded.code, Some(0), "{recorded:?}");
        fs::copy(project.path("made/new.jsonl"), files.join("sample.recording.jsonl")).unwrap();
    }
    fs::copy(files.join("sample.recording.jsonl"), project.path("made/sample.recording.jsonl")).unwrap();
    let replayed = run(&project, &["run", "--replay", "sample.recording.jsonl"]);
    assert_prints(&replayed, "The line has 4 different words.");
    assert!(replayed.stderr.contains("signal task_complete"), "{replayed:?}");
}

/// The worker of `init` sends a result that is a string as it is; a worker that sets nothing sends JSON.
#[test]
fn a_new_worker_sends_strings_as_they_are() {
    for (worker, expected) in [(None, "It is noon."), (Some("(defworker :name \"w\")"), "\"It is noon.\"")] {
        let project = Project::empty();
        assert_eq!(project.run(&["init", "made"]).code, Some(0));
        project.write("made/specs/noon.eld", "(deftool :name \"noon\" :description \"The time.\" :args ())");
        project.write("made/scripts/noon.lua", "return function() return 'It is noon.' end");
        if let Some(worker) = worker {
            project.write("made/specs/worker.eld", worker);
        }
        let server = Server::script([Answer::calls(&[("noon", "{}")]), Answer::text("Noon.")]);
        let ended = run(&project, &["run", "When?", "--endpoint", &server.endpoint()]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(server.posts()[1].texts("tool"), [expected]);
    }
}

#[test]
fn manual_pages_describe_every_command() {
    let project = Project::empty();
    assert_eq!(project.run(&["man", "pages"]).code, Some(0));
    let page = fs::read_to_string(project.path("pages/deftool-check.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("Check specs, scripts and workers"), "{page}");
    project.write("file", "");
    let ended = project.run(&["man", "file/pages"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("cannot write file/pages"), "{ended:?}");
}

#[test]
fn the_long_version_names_the_build() {
    let project = Project::empty();
    let short = project.run(&["-V"]).stdout;
    assert_eq!(short, format!("deftool {}\n", env!("CARGO_PKG_VERSION")));
    let long = project.run(&["--version", "--verbose"]).stdout;
    assert!(long.starts_with(&short), "{long}");
    for line in ["commit: ", "platform: ", "features: cli"] {
        assert!(long.contains(&format!("\n{line}")), "{long}");
    }
    for (name, is_on) in [("otel", cfg!(feature = "otel")), ("analyze", cfg!(feature = "analyze"))] {
        assert_eq!(long.contains(&format!(", {name}")), is_on, "{long}");
    }
}
