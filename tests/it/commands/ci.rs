//! Commands of CI runners: texts of scripts, models and servers cannot emit them, except if the text is the result.
//!
//! GitHub's runner executes `::` at the start of a trimmed line, and `##[` anywhere in a line.

use deftool_test_support::server::{Answer, Server, call, finish};
use serde_json::json;

use crate::support::project::{Ended, Project};

/// Commands in all notations of runners, one per line.
const COMMANDS: &str = "first\n::error::x\n  ::stop-commands::t\n\t::add-mask::m\n\u{a0}::warning::w\r::notice::r\n##[error]y\nz \
                        ##[group]g\n##vso[task.complete]v";

/// Returns the lines that a runner would execute.
fn executed(text: &str) -> Vec<&str> {
    let lines = text.split(['\n', '\r']);
    lines
        .filter(|line| line.trim_start().starts_with("::") || line.contains("##[") || line.contains("##vso["))
        .collect()
}

/// Asserts that the output contains no commands.
fn assert_no_commands(ended: &Ended) {
    assert_eq!(executed(&ended.stdout), [""; 0], "{ended:?}");
    assert_eq!(executed(&ended.stderr), [""; 0], "{ended:?}");
}

/// A project whose tool logs, reports progress, returns and fails with `COMMANDS`.
fn project() -> Project {
    let project = Project::empty();
    let text = json!(COMMANDS).to_string().replace("\\u00a0", "\u{a0}");
    project.write(
        "specs/say.eld",
        "(deftool :name \"say\" :description \"Say.\" :args ((:name \"fail\" :type boolean :optional t :description \"Fail.\")))",
    );
    project.write(
        "scripts/say.lua",
        format!(
            "local text = {text}\nreturn function(fail)\n  print(text) log.warn(text) tool.progress(0.5, text)\n  if fail then \
             error(text) end\n  return text\nend\n"
        ),
    );
    project
}

#[test]
fn scripts_cannot_emit_ci_commands() {
    let project = project();
    for arguments in [
        &["call", "say"][..],
        &["call", "say", "--json"],
        &["call", "say", "{\"fail\": true}"],
        &["call", "say", "{\"fail\": true}", "--json"],
        &["call", "say", "--isolate", "process"],
        &["call", "say", "--time"],
    ] {
        assert_no_commands(&project.run(arguments));
    }
    let ended = project.run(&["call", "say"]);
    assert!(ended.stderr.contains("info: say: first\n    | ::error::x\n"), "{ended:?}");
    assert!(ended.stderr.contains("say: 50 % first\n    | ::error::x\n"), "{ended:?}");
    // The JSON value is unchanged.
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result, json!(COMMANDS));
    let text = json!(COMMANDS).to_string();
    project.write(
        "scripts/say_test.lua",
        format!(
            "test({text}, function() print({text}) expect({text}).is('other') end)\n\
             test('fails', function() tool.load('say')({{ fail = true }}) end)\n"
        ),
    );
    for format in ["human", "json", "junit"] {
        let ended = project.run(&["test", "--format", format]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_no_commands(&ended);
    }
}

#[test]
fn models_and_servers_cannot_emit_ci_commands() {
    let project = project();
    let arguments = json!({"fail": COMMANDS}).to_string();
    let stream = |name: &str, arguments: &str| {
        let called = Answer::stream().chunk(&call(0, name, arguments));
        called.chunk(&finish("tool_calls")).done().end()
    };
    let error = json!({"error": {"message": COMMANDS, "type": COMMANDS, "code": COMMANDS}}).to_string();
    for answers in [
        vec![stream("say", "{}"), Answer::text("done")],
        vec![stream("say", &arguments), Answer::text("done")],
        vec![stream(COMMANDS, "{}"), Answer::text("done")],
        vec![Answer::whole(400, &[], &error)],
        vec![Answer::whole(500, &[], COMMANDS), Answer::whole(500, &[], COMMANDS)],
    ] {
        let endpoint = |answers: Vec<Answer>| Server::script(answers);
        let server = endpoint(answers);
        let ended = project.run(&["run", "hello", "--endpoint", &server.endpoint()]);
        assert_no_commands(&ended);
    }
    // A model's text on stdout is the result of the command and unchanged.
    let server = Server::script([Answer::text(COMMANDS)]);
    let ended = project.run(&["run", "hello", "--endpoint", &server.endpoint()]);
    assert_eq!(ended.stdout, format!("{COMMANDS}\n"));
    assert_eq!(executed(&ended.stderr), [""; 0], "{ended:?}");
}

#[test]
fn specs_cannot_emit_ci_commands() {
    let project = Project::empty();
    let name = json!(COMMANDS).to_string().replace("\\r", "\r").replace('\u{a0}', " ");
    project.write(
        "specs/a.eld",
        format!(
            ";; ##[error]comment\n(deftool :name {name} :description {name} :args ((:name {name} :type strng)))\n(defworker :name {name} \
             :endpoint \"http://127.0.0.1:1/v1\" :tools [{name}])\n(deftool :name \"a\" :description \"##[x]\" :wrong 1)\n"
        ),
    );
    project.write("specs/::error::b.eld", "(deftool");
    for arguments in [
        &["check"][..],
        &["check", "--format", "concise"],
        &["check", "--format", "json"],
        &["check", "--format", "sarif"],
        &["check", "--format", "junit"],
        &["fmt", "--check"],
        &["doctor"],
        &["call", "a"],
        &["test"],
    ] {
        assert_no_commands(&project.run(arguments));
    }
    let mut inside = project.command(&["check", ".", "--format", "concise"]);
    assert_no_commands(&Ended::of(inside.current_dir(project.path("specs")).output().unwrap()));
}
