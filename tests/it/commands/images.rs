//! Images in files: once each in recordings, journals and sessions, and shown by `deftool view`.

use std::fs;

use deftool_test_support::server::{Act, Answer, Server, call, finish};
use serde_json::{Value, json};

use crate::support::ledger::{kill, spawn, wait_until};
use crate::support::project::{Ended, Project};

/// A project with a tool that returns an image, and with another image for prompts.
fn project() -> Project {
    let project = Project::with_worker("(defworker :name \"w\")\n");
    project.write(
        "specs/picture.eld",
        r#"(deftool :name "picture" :description "Return a picture." :effect pure :args ())"#,
    );
    project.write(
        "scripts/picture.lua",
        "return function() return tool.image('\\137PNG\\r\\n\\26\\n' .. string.rep('tool', 500)) end\n",
    );
    fs::write(project.path("photo.png"), [b"\x89PNG\r\n\x1a\n".as_slice(), &b"user".repeat(500)].concat())
        .unwrap();
    project
}

/// The base64 of a part of the image of the tool, and of the prompt.
const OF_TOOL: &str = "dG9vbHRvb2x0b29s";
const OF_PROMPT: &str = "dXNlcnVzZXJ1c2Vy";

fn calls() -> Answer {
    Answer::chunks(&[call(0, "picture", "{}"), finish("tool_calls")])
}

fn run(project: &Project, server: &Server, arguments: &[&str]) -> Ended {
    let endpoint = server.endpoint();
    project.run(&[&["run", "Look.", "-f", "photo.png", "--endpoint", &endpoint], arguments].concat())
}

/// Returns the lines of a file that contain base64.
fn data_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains(OF_TOOL) || line.contains(OF_PROMPT)).collect()
}

#[test]
fn a_recording_contains_each_image_once() {
    let project = project();
    let server = Server::script([calls(), calls(), Answer::text("Two pictures.")]);
    let ended = run(&project, &server, &["--record", "r.jsonl"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Two pictures.\n"), "{ended:?}");
    let sent = server.posts()[2].body.to_string();
    assert_eq!((sent.matches("data:image/png;base64,").count(), sent.contains(OF_TOOL)), (3, true));
    let recording = fs::read_to_string(project.path("r.jsonl")).unwrap();
    let stored = data_lines(&recording);
    assert_eq!(stored.len(), 2, "{recording}");
    assert!(stored.iter().all(|line| line.starts_with(r#"{"record":"attachment","sha256":""#)), "{stored:?}");

    // Tools run again or not, the bodies are the same.
    for arguments in [
        &["run", "--replay", "r.jsonl"][..],
        &["run", "--replay", "r.jsonl", "--recorded-tools"],
        &["replay", "r.jsonl"],
    ] {
        let ended = project.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    }
    // A changed image is not the one that was sent.
    let changed = recording.replace(OF_TOOL, "dG9vbHRvb2x0b29z");
    fs::write(project.path("changed.jsonl"), changed).unwrap();
    let ended = project.run(&["run", "--replay", "changed.jsonl", "--recorded-tools"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("not sent: it was not stored"), "{ended:?}");
}

#[test]
fn a_page_shows_the_images() {
    let project = project();
    let server = Server::script([calls(), calls(), Answer::text("Two pictures.")]);
    let ended = run(&project, &server, &["--record", "r.jsonl", "--journal", "j"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for file in ["r.jsonl", "j"] {
        let page = project.run(&["view", file, "-o", "-"]).stdout;
        let data = page.split("id=\"data\">").nth(1).unwrap().split("</script").next().unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        let request = &data["files"][0]["requests"][0];
        let images = request["images"].as_object().unwrap();
        assert_eq!(images.len(), 2, "{file}");
        assert!(images.values().all(|url| url.as_str().unwrap().starts_with("data:image/png;base64,iVBOR")));
        assert_eq!(
            (page.matches(OF_TOOL).count() > 0, page.matches("data:image/png;base64,").count()),
            (true, 2)
        );
        let entries = request["entries"].as_array().unwrap();
        let call = entries.iter().find(|entry| entry["kind"] == "call").unwrap();
        assert!(images.contains_key(call["attachments"][0]["sha256"].as_str().unwrap()), "{call}");
    }
}

#[test]
fn a_resumed_request_sends_its_images_again() {
    let project = project();
    let server =
        Server::script([calls(), Answer::stream().delta("Half").then(Act::Silence), Answer::text("Done.")]);
    let endpoint = server.endpoint();
    let arguments = ["run", "Look.", "-f", "photo.png", "--journal", "j", "--endpoint", &endpoint];
    let child = spawn(project.command(&arguments));
    wait_until("the second turn begins", || server.posts().len() == 2);
    let listed = || project.run(&["journal", "list", "j"]).stdout;
    let shown = |id: &str| project.run(&["journal", "show", "j", id]).stdout;
    wait_until("the text is stored", || {
        listed().split(' ').next().is_some_and(|id| shown(id).contains("Half"))
    });
    kill(child);
    let journal = fs::read(project.path("j")).unwrap();
    assert!(!String::from_utf8_lossy(&journal).contains("data:image"));
    let ended = project.run(&["journal", "resume", "j"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Done.\n"), "{ended:?}");
    let posts = server.posts();
    let [_, before, after] = &posts[..] else { panic!("{posts:?}") };
    assert_eq!(before.body, after.body);
    assert!(after.body.to_string().contains(OF_TOOL) && after.body.to_string().contains(OF_PROMPT));
}

#[test]
fn a_session_keeps_the_images_of_results() {
    let project = project();
    let server = Server::script([calls(), Answer::text("A picture."), Answer::text("The same.")]);
    let endpoint = server.endpoint();
    let chat = |lines: &str, arguments: &[&str]| {
        let arguments = [&["chat", "--endpoint", &endpoint], arguments].concat();
        let ended = project.run_with_stdin(&arguments, lines.as_bytes());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    chat("Look.\n/save s.jsonl\n", &[]);
    let session = fs::read_to_string(project.path("s.jsonl")).unwrap();
    assert_eq!(data_lines(&session).len(), 1, "{session}");
    chat("Again.\n", &["--resume", "s.jsonl"]);
    let posts = server.posts();
    assert!(posts[2].body["messages"].to_string().contains(OF_TOOL), "{}", posts[2].body);
    let session = fs::read_to_string(project.path("s.jsonl")).unwrap();
    assert_eq!(data_lines(&session).len(), 1, "{session}");
    assert_eq!(json!(session.matches("\"attachments\"").count()), json!(1));
}
