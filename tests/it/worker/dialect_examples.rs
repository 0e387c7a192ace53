//! What the rows of the dialects name as their examples is sent to the real binary, and has the effect of the row.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use deftool_chat::{Api, BodyFallback, Dialect, Dialects, ErrorMeaning, ErrorRow, Example, FinishMeaning};
use deftool_test_support::server::{Answer, Received, Server, call, delta, encode_events, event, finish};
use serde_json::{Value, json};

use super::harness::{api_path, turn};
use crate::support::project::{Project, command_in};

/// A first answer of a server, and how the request must end: the state, the kind of a failure or the finish reason of a
/// completed request, and the number of requests.
struct Case {
    name: String,
    dialect: Dialect,
    answer: Answer,
    expected: (&'static str, &'static str, usize),
}

/// Runs a request whose server answers once like this, and then with a text. Returns the difference.
fn play(case: Case) -> Option<String> {
    let Case { name, dialect, answer, expected } = case;
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    let server = Server::answering(move |_, request| {
        if !request.line.ends_with("/chat/completions") {
            // A page about a model.
            Answer::error(404, &[], "not here")
        } else if counter.fetch_add(1, Ordering::SeqCst) == 0 {
            answer.clone()
        } else {
            Answer::text("fine")
        }
    });
    let project = Project::with_worker(&format!(
        r#"(defworker :name "w" :endpoint "{}" :model "m" :dialect {} :params (:tool-choice "required"))"#,
        server.endpoint(),
        dialect.name()
    ));
    let command = ["run", "Hello", "--json", "--no-stdin", "--trust"];
    let output = command_in(&project.path(""), &command).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let end: Value = serde_json::from_str(lines.lines().last().unwrap_or_default()).unwrap_or_default();
    let kind = end.get("kind").filter(|kind| kind.is_string()).unwrap_or(&end["finish_reason"]);
    let found = (end["state"].as_str().unwrap_or_default(), kind.as_str().unwrap_or_default());
    let found = (found.0, found.1, requests.load(Ordering::SeqCst));
    (found != expected).then(|| format!("{dialect:?}: {name}: {found:?}, expected {expected:?}: {end}"))
}

/// Plays cases on a few threads, because each of them is a process that waits. `play` returns what is wrong.
fn play_all<C: Send>(cases: Vec<C>, play: impl Fn(C) -> Option<String> + Sync) {
    assert!(cases.len() > 20, "{}", cases.len());
    let cases = Mutex::new(cases);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(case) = cases.lock().unwrap().pop() else { break };
                    wrong.lock().unwrap().extend(play(case));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn errors_mean_what_their_rows_say() {
    let mut cases = Vec::new();
    for dialect in Dialects::built_in().iter() {
        for row in dialect.own_errors() {
            let (Some(meaning), Some(example)) = (row.means, &row.example) else { continue };
            let expected = match meaning {
                ErrorMeaning::Overflow => ("failed", "context_overflow", 1),
                ErrorMeaning::Unauthorized => ("failed", "unauthorized", 1),
                ErrorMeaning::Quota | ErrorMeaning::NoTools => ("failed", "http_error", 1),
                // The next request is accepted.
                ErrorMeaning::Busy
                | ErrorMeaning::Temporary
                | ErrorMeaning::Loading
                | ErrorMeaning::Rejected
                | ErrorMeaning::UnparsedCall => ("completed", "stop", 2),
            };
            let body = example.body();
            let answer = Answer::json(example.status, &body);
            cases.push(Case { name: body.to_string(), dialect, answer, expected });
        }
    }
    play_all(cases, play);
}

#[test]
fn finish_reasons_mean_what_their_rows_say() {
    let mut cases = Vec::new();
    for dialect in Dialects::built_in().iter() {
        for (reasons, meaning, _) in dialect.own_finish_reasons() {
            let expected = match meaning {
                FinishMeaning::Finished | FinishMeaning::Called => ("completed", "stop", 1),
                FinishMeaning::Paused => ("completed", "stop", 2),
                FinishMeaning::CutShort => ("completed", "max_tokens", 1),
                FinishMeaning::Filtered => ("completed", "content_filter", 1),
                FinishMeaning::Failed => ("failed", "server_error", 1),
            };
            for reason in reasons {
                let answer = Answer::chunks(&[delta("so far"), finish(reason)]);
                cases.push(Case { name: reason.clone(), dialect, answer, expected });
            }
        }
    }
    play_all(cases, play);
}

/// A first reply with two calls: alone, or with everything that a server may not take back.
fn calling(api: Api, has_state: bool) -> Answer {
    let calls = [0, 1].map(|index| {
        let mut called = call(index, "picture", "{}");
        called["choices"][0]["delta"]["tool_calls"][0]["id"] = json!(format!("call:{index}"));
        called
    });
    let state = [json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}), delta("Looking.")];
    let state = state.into_iter().filter(|_| has_state);
    let chunks: Vec<Value> = state.chain(calls).chain([finish("tool_calls")]).collect();
    let mut events = encode_events(api, &chunks);
    for event in events.iter_mut().filter(|event| event["item"]["type"] == "reasoning") {
        event["item"]["encrypted_content"] = json!("e");
    }
    events.iter().map(event).fold(Answer::stream(), Answer::piece).done()
}

/// What a server refuses is changed as one of its rows says, and is taken then.
#[test]
fn changes_follow_as_their_rows_say() {
    let rows =
        Dialects::built_in().iter().flat_map(|dialect| dialect.own_errors().map(move |row| (dialect, row)));
    let rows: Vec<(Dialect, &ErrorRow)> = rows.filter(|(_, row)| !row.send.is_empty()).collect();
    play_all(rows, |(dialect, row)| {
        let Some(example) = &row.example else { return Some(format!("{dialect:?}: {row:?}: no example")) };
        let forms = [
            (Api::ChatCompletions, false),
            (Api::ChatCompletions, true),
            (Api::Responses, true),
            (Api::Messages, true),
        ];
        let found = forms.map(|(api, has_state)| changes(dialect, example, (api, has_state)));
        let follows = |change: &BodyFallback| found.iter().any(|found| found.contains(&*change.describe()));
        (!row.send.iter().any(follows)).then(|| format!("{dialect:?}: {row:?}: {found:#?}"))
    });
}

/// Returns the events of a request whose second body is refused like this, if the third one completes it.
fn changes(dialect: Dialect, example: &Example, (api, has_state): (Api, bool)) -> String {
    let refusal = Answer::json(example.status, &example.body());
    let requests = AtomicUsize::new(0);
    let server = Server::answering(move |_, request| {
        let path = request.path();
        let Some(of_path) = Api::ALL.into_iter().find(|api| path.ends_with(api_path(*api))) else {
            return Answer::error(404, &[], "not here");
        };
        match requests.fetch_add(1, Ordering::SeqCst) {
            0 => calling(api, has_state),
            1 => refusal.clone(),
            _ => turn(of_path, "fine", &[]),
        }
    });
    let project = Project::with_worker(&format!(
        r#"(defworker :name "w" :endpoint "{}" :model "m" :dialect {} :api {} :system "Be kind."
            :system-messages separate :bios-budget tail :params (:max-tokens 50))
           (deftool :name "picture" :description "A picture." :effect pure :args ((:name "of" :optional t)))"#,
        server.endpoint(),
        dialect.name(),
        api.as_str()
    ));
    let image = r"'\137PNG\r\n\26\n' .. string.rep('tool', 500)";
    project.write("scripts/picture.lua", format!("return function(of) return tool.image({image}) end\n"));
    project.write("photo.png", [b"\x89PNG\r\n\x1a\n".as_slice(), &b"user".repeat(500)].concat());
    let ended = project.run(&["run", "Look.", "-f", "photo.png", "--json", "--no-stdin", "--trust"]);
    // Ollama also has a page about its model.
    let is_request = |post: &&Received| Api::ALL.iter().any(|api| post.path().ends_with(api_path(*api)));
    let requests = server.posts().iter().filter(is_request).count();
    if ended.code == Some(0) && requests == 3 { ended.stdout } else { String::new() }
}

/// A project and a user name an error that deftool does not know, with the row that the error suggests.
#[test]
fn an_error_suggests_the_row_that_names_it() {
    let message = "Prompt was trimmed by the gateway, sorry";
    let server = Server::answering(move |_, _| Answer::error(400, &[], message));
    let (project, user) = (Project::new(), Project::empty());
    let run = |worker: &str| -> Value {
        let spec = format!(
            r#"(defproject :preview (dialects))
            (defworker :name "w" :endpoint "{}" :model "m" {worker}"#,
            server.endpoint()
        );
        project.write("specs/worker.eld", spec);
        let command = ["run", "Hello", "--json", "--no-stdin", "--trust"];
        let mut command = command_in(&project.path(""), &command);
        let output = command.env("DEFTOOL_CONFIG_DIR", user.path("")).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(lines.lines().last().unwrap_or_default()).unwrap()
    };
    let row = r#"(defdialect :name "mine" :like openai :errors ((:says ["Prompt was trimmed by the gateway,"] :means overflow)))"#;
    let unknown = run(")");
    assert_eq!(unknown["kind"], "http_error");
    assert!(unknown["detail"].as_str().unwrap().contains(row), "{unknown}");
    assert_eq!(run(&format!(":dialect mine) {row}"))["kind"], "context_overflow");
    let doctor = command_in(&project.path(""), &["doctor"]).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("mine as set by `:dialect`"), "{doctor}");
    assert_eq!(run(")")["kind"], "http_error", "the rows of a dialect that the worker does not name");
    user.write("specs/own.eld", row.replace("mine", "openai"));
    assert_eq!(run(")")["kind"], "context_overflow", "the rows of the user count for all servers");
}
