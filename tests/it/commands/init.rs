//! `deftool init` and `demo`: a new project works with every command at once.

use std::fs;
use std::path::Path;

use deftool_test_support::server::{Answer, Server, Texts};
use serde_json::{Value, json};

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

#[test]
fn every_command_works_in_a_new_project() {
    let project = Project::empty();
    assert_eq!(project.run(&["init", "made"]).code, Some(0));
    assert_eq!(run(&project, &["check", "--strict"]).code, Some(0));
    assert_eq!(run(&project, &["test"]).code, Some(0));
    assert_prints(&run(&project, &["call", "word_count", "text=one two"]), "\"words\": 2");
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let served = project.run_with_stdin(&["mcp", "-C", "made"], format!("{initialize}\n").as_bytes());
    let reply: Value = serde_json::from_str(served.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(reply["result"]["serverInfo"]["name"], json!("deftool"));
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
fn the_tools_of_an_init_file_become_a_project() {
    let project = Project::empty();
    project.write("init.el", fs::read_to_string("tests/import/gptel_init.el").unwrap());
    let made = project.run(&["init", "--from", "gptel", "init.el", "made"]);
    // The file contains tools with errors, which are left out.
    assert!(made.code == Some(1) && made.stderr.contains("3 tools imported"), "{made:?}");
    assert_eq!(run(&project, &["check"]).code, Some(0));
    let called = run(&project, &["call", "count_word", "text=a", "word=b"]);
    assert!(called.code == Some(1) && called.stderr.contains("count_word is not implemented"), "{called:?}");
}

#[test]
fn the_tools_of_an_api_request_become_a_project() {
    let project = Project::empty();
    let tools = json!([{"type": "function", "function": {"name": "now", "description": "The time."}}]);
    project.write("tools.json", tools.to_string());
    let made = project.run(&["init", "made", "--from", "openai", "tools.json"]);
    assert!(made.code == Some(0) && made.stderr.contains("deftool call now --help"), "{made:?}");
    assert!(run(&project, &["call", "now"]).stderr.contains("now is not implemented"));
    assert_eq!(run(&project, &["call", "now", "--help"]).code, Some(0));
}

#[test]
fn the_tools_of_an_mcp_server_become_a_project() {
    let project = Project::new();
    let server = format!("{} mcp", env!("CARGO_BIN_EXE_deftool"));
    let made = project.run(&["init", "made", "--from", "mcp", &server]);
    assert!(made.code == Some(0) && made.stderr.contains("2 tools imported"), "{made:?}");
    let called = run(&project, &["call", "count", "text=a"]);
    assert!(called.stderr.contains("count is not implemented"), "{called:?}");
}

#[test]
fn init_from_reports_bad_input_and_writes_nothing() {
    let project = Project::empty();
    project.write("broken.json", "{\"name\": ");
    for (from, expected) in [
        (["lisp", "init.el"], "unknown format `lisp`; known formats: openai,"),
        (["gptel", "missing.el"], "cannot read"),
        (["mcp", "missing.json"], "cannot read"),
        (["mcp", "missing-program stdio"], "MCP server `missing-program stdio`: cannot be started"),
    ] {
        let ended = project.run(&["init", "made", "--from", from[0], from[1]]);
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{ended:?}");
        assert!(!project.path("made").exists());
    }
    let ended = project.run(&["init", "made", "--from", "openai", "broken.json"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("error[DT601]"), "{ended:?}");
    assert!(ended.stderr.contains("no tool was imported; nothing was written"), "{ended:?}");
    assert!(!project.path("made").exists());
}

#[test]
fn the_demo_shows_the_main_commands_and_leaves_nothing() {
    let project = Project::empty();
    fs::create_dir(project.path("temporary")).unwrap();
    let mut command = project.command(&["demo"]);
    let ended = Ended::of(command.env("TMPDIR", project.path("temporary")).output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for text in ["did you mean `integer`?", "\"words\": 6", "The line has 4 different words."] {
        assert!(ended.stdout.contains(text), "{ended:?}");
    }
    for text in ["created  specs/tools.eld", "error[invalid_arguments]", "signal task_complete"] {
        assert!(ended.stderr.contains(text), "{ended:?}");
    }
    assert_eq!(fs::read_dir(project.path("temporary")).unwrap().count(), 0);
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
    for (name, is_on) in [("otel", cfg!(feature = "otel")), ("types", cfg!(feature = "types"))] {
        assert_eq!(long.contains(&format!(", {name}")), is_on, "{long}");
    }
}
