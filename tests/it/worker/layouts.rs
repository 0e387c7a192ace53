//! Servers and chat templates that reject the layout of a request: the real binary completes after one rejection.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use deftool_chat::Api;
use deftool_test_support::server::{Answer, Received, Server};
use serde_json::{Value, json};

use super::harness::turn;
use crate::support::project::Project;

/// A server that rejects some requests.
struct Case {
    name: &'static str,
    /// Keys of the worker, in addition to its name, its model and its budget.
    keys: &'static str,
    status: u16,
    body: &'static str,
    is_rejected: fn(&Received) -> bool,
    /// The number of rejected requests.
    rejected: usize,
}

const MISTRAL: &str = r#"{"object": "error", "message": "Unexpected role 'system' after role 'tool'",
    "type": "invalid_request_message_order", "param": null, "code": "3230"}"#;
const MINIMAX: &str = r#"{"type": "error", "error": {"type": "bad_request_error",
    "message": "invalid params, invalid chat setting (2013)", "http_code": "400"}, "request_id": "0660ea"}"#;
const MINISTRAL: &str = r#"{"error": {"code": 500, "message": "Jinja Exception: Only user, assistant and tool roles are supported, got system.",
    "type": "server_error"}}"#;
const OLLAMA: &str =
    r#"{"error": {"message": "invalid message content type: <nil>", "type": "invalid_request_error"}}"#;
const OPENAI: &str = r#"{"error": {"message": "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
    "type": "invalid_request_error", "param": "reasoning_effort", "code": null}}"#;

const CASES: [Case; 10] = [
    case("Mistral", "", MISTRAL, breaks_mistral, 0),
    case("Mistral, tail", ":bios-budget tail", MISTRAL, breaks_mistral, 1),
    case("MiniMax", "", MINIMAX, |request| count(request, "system") > 1, 0),
    case("MiniMax, system", ":system \"Be brief.\"", MINIMAX, |request| count(request, "system") > 1, 0),
    case(
        "MiniMax, separate",
        ":system \"Be brief.\" :system-messages separate",
        MINIMAX,
        |request| count(request, "system") > 1,
        1,
    ),
    case("MiniMax, tail", ":bios-budget tail", MINIMAX, |request| count(request, "system") > 1, 1),
    Case { status: 500, ..case("Ministral 3, tail", ":bios-budget tail", MINISTRAL, has_late_system, 1) },
    Case { status: 500, ..case("Ministral 3", "", MINISTRAL, has_late_system, 0) },
    case(
        "Ollama",
        "",
        OLLAMA,
        |request| messages(request).iter().any(|message| message["content"].is_null()),
        1,
    ),
    case("OpenAI", "", OPENAI, |request| request.line.contains("chat/completions"), 1),
];

const fn case(
    name: &'static str,
    keys: &'static str,
    body: &'static str,
    is_rejected: fn(&Received) -> bool,
    rejected: usize,
) -> Case {
    Case { name, keys, status: 400, body, is_rejected, rejected }
}

fn messages(request: &Received) -> Vec<Value> {
    request.body["messages"].as_array().cloned().unwrap_or_default()
}

fn roles(request: &Received) -> Vec<String> {
    messages(request).iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
}

fn count(request: &Received, role: &str) -> usize {
    roles(request).iter().filter(|other| *other == role).count()
}

fn has_late_system(request: &Received) -> bool {
    roles(request).iter().skip(1).any(|role| role == "system")
}

/// A system or user message after a result, a system message after a reply, or a last message of another role.
fn breaks_mistral(request: &Received) -> bool {
    let roles = roles(request);
    let is_wrong = |pair: &[String]| {
        matches!((pair[0].as_str(), pair[1].as_str()), ("tool", "system" | "user") | ("assistant", "system"))
    };
    roles.windows(2).any(is_wrong) || !matches!(roles.last().unwrap().as_str(), "user" | "tool")
}

/// The session of a recording has the API of the worker, and its requests have both.
#[test]
fn a_switch_to_the_responses_api_is_recorded_and_replayed() {
    let server = Server::answering(|index, request| match request.line.contains("responses") {
        false => Answer::whole(400, &[], OPENAI),
        true if index == 1 => turn(Api::Responses, "Counting. ", &[("count", r#"{"text": "abc"}"#)]),
        true => turn(Api::Responses, "Three.", &[]),
    });
    let project = Project::with_worker("(defworker :name \"w\" :model \"m\")");
    let run = ["run", "Count.", "--json", "--record", "a.jsonl", "--endpoint", &server.endpoint()];
    let recorded = project.run(&run);
    assert_eq!(recorded.finished()["text"], "Counting. Three.", "{recorded:?}");
    let again = project.run(&["run", "--replay", "a.jsonl", "--json"]);
    assert_eq!((again.code, again.stdout), (Some(0), recorded.stdout), "{}", again.stderr);
    let replayed = project.run(&["replay", "a.jsonl"]);
    assert!(replayed.stdout.contains("1 request, 3 exchanges, 1 tool call"), "{replayed:?}");
    let page = project.run(&["view", "-o", "-", "a.jsonl"]).stdout;
    let (_, data) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let viewed: Value = serde_json::from_str(data.split("</script").next().unwrap()).unwrap();
    let entries = viewed["files"][0]["requests"][0]["entries"].as_array().unwrap();
    let turns: Vec<&Value> = entries.iter().filter(|entry| entry["kind"] == "turn").collect();
    assert_eq!((turns.len(), &turns[2]["budget"]["left"]), (3, &json!(7)), "{viewed}");
    assert!(entries.iter().any(|entry| entry["kind"] == "call" && entry["name"] == "count"), "{viewed}");
}

#[test]
fn a_rejected_layout_costs_one_request() {
    for Case { name, keys, status, body, is_rejected, rejected } in CASES {
        let accepted = AtomicUsize::new(0);
        let server = Server::answering(move |_, request| {
            if is_rejected(request) {
                return Answer::whole(status, &[], body);
            }
            let calls = [("count", r#"{"text": "abc"}"#)];
            let is_call = accepted.fetch_add(1, Ordering::SeqCst) == 0;
            let calls = if is_call { &calls[..] } else { &[] };
            let text = if is_call { "" } else { "Three." };
            let is_response = request.line.contains("responses");
            turn(if is_response { Api::Responses } else { Api::ChatCompletions }, text, calls)
        });
        let worker = format!("(defworker :name \"w\" :model \"m\" :tool-budget 8 {keys})");
        let ended = Project::with_worker(&worker).run(&[
            "run",
            "Count.",
            "--json",
            "--endpoint",
            &server.endpoint(),
            "--trust",
        ]);
        let finished = ended.finished();
        assert_eq!(
            (&finished["state"], &finished["text"]),
            (&json!("completed"), &json!("Three.")),
            "{name}: {ended:?}"
        );
        let posts = server.posts();
        assert_eq!(posts.iter().filter(|post| is_rejected(post)).count(), rejected, "{name}");
        assert_eq!(posts.len(), 2 + rejected, "{name}");
        let bodies: HashSet<String> =
            posts.iter().map(|post| format!("{} {}", post.line, post.body)).collect();
        assert_eq!(bodies.len(), posts.len(), "{name}: a request was repeated");
        let last = posts.last().unwrap().body.to_string();
        assert!(last.contains("iterations left: 7"), "{name}: {last}");
        let is_switched = ended.stdout.contains("the model requires the responses API");
        assert_eq!(is_switched, name == "OpenAI", "{name}: {ended:?}");
    }
}
