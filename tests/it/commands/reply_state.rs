//! The state of replies goes back to the server and model that sent it, and to no other: `tests/reply_state`.

use std::process::Stdio;

use deftool_chat::Api;
use deftool_test_support::server::{
    Act, Answer, Received, Server, call, delta, encode_events, event, finish,
};
use deftool_test_support::validity::assert_valid;
use serde_json::{Map, Value, json};

use crate::support::ledger::{kill, spawn, wait_until};
use crate::support::project::{Ended, Project};

/// A server that needs the state of its replies back.
#[derive(Clone)]
struct Dialect(Value);

impl Dialect {
    fn all() -> Vec<Self> {
        let rows: Vec<Value> = serde_json::from_str(include_str!("../../reply_state/dialects.json")).unwrap();
        rows.into_iter().map(Self).collect()
    }

    fn text(&self, member: &str) -> &str {
        self.0[member].as_str().unwrap_or_default()
    }

    fn api(&self) -> Api {
        serde_json::from_value(self.0["api"].clone()).unwrap_or_default()
    }

    /// A member of the row for one reply.
    fn of_step(&self, member: &str, step: usize) -> Value {
        serde_json::from_str(&self.0[member].to_string().replace("STEP", &step.to_string())).unwrap()
    }

    fn project(&self) -> Project {
        let api = self.0["api"].as_str().map_or_else(String::new, |api| format!(" :api {api}"));
        Project::with_worker(&format!("(defworker :name \"w\" :model \"{}\"{api})", self.text("model")))
    }

    /// A reply with the state and at least one call.
    fn calling(&self, step: usize) -> Answer {
        let deltas = self.of_step("deltas", step);
        let deltas = deltas.as_array().unwrap().clone();
        if self.api() != Api::ChatCompletions {
            let mut events = encode_events(self.api(), &[finish("tool_calls")]);
            let is_end =
                |event: &Value| event["type"] == "message_delta" || event["type"] == "response.completed";
            let end = events.iter().position(is_end).unwrap();
            events.splice(end..end, deltas);
            return stream_of(events);
        }
        let mut chunks: Vec<Value> = deltas.into_iter().map(chunk).collect();
        if !self.0["deltas"].to_string().contains("tool_calls") {
            let mut called = call(0, "count", r#"{"text": "abc"}"#);
            let id = self.of_step("call_id", step);
            let id = id.as_str().map_or_else(|| format!("call_{step}"), str::to_owned);
            called["choices"][0]["delta"]["tool_calls"][0]["id"] = json!(id);
            chunks.push(called);
        }
        stream_of(chunks.into_iter().chain([finish("tool_calls")]))
    }

    /// A reply that ends the turn.
    fn answer(&self) -> Answer {
        Answer::reply(self.api(), &[delta("Done."), finish("stop")])
    }

    /// Returns what a request contains of each reply with calls, beside its text.
    fn sent(&self, request: &Received) -> Vec<Value> {
        if self.api() == Api::Responses {
            let items = request.body["input"].as_array().unwrap();
            let is_of_model = |item: &&Value| {
                matches!(item["type"].as_str(), Some("reasoning" | "function_call"))
                    || (item["role"] == "assistant" && item["content"][0]["text"] != "Done.")
            };
            // A reply ends at its first result.
            let mut replies = vec![Vec::new()];
            for item in items {
                if item["type"] == "function_call_output" && !replies.last().unwrap().is_empty() {
                    replies.push(Vec::new());
                } else if is_of_model(&item) {
                    replies.last_mut().unwrap().push(item.clone());
                }
            }
            return replies.into_iter().filter(|items| !items.is_empty()).map(Value::Array).collect();
        }
        if self.api() == Api::Messages {
            let messages = request.body["messages"].as_array().unwrap().iter();
            let content =
                messages.filter(|message| message["role"] == "assistant").map(|message| &message["content"]);
            return content
                .filter(|content| has_block(content, "tool_use"))
                .map(without_cache_control)
                .collect();
        }
        assert_valid(&request.body);
        let messages = request.body["messages"].as_array().unwrap();
        let calling = messages.iter().filter(|message| message["tool_calls"].is_array());
        calling.map(opaque_of).collect()
    }

    /// Answers a request, and refuses it unless it contains the state of its replies and no other. `is_last`: whether the
    /// turn ends after a number of replies with calls.
    fn respond(&self, request: &Received, is_last: impl Fn(usize) -> bool) -> Answer {
        let sent = self.sent(request);
        let forgotten =
            if self.0["until_next_prompt"] == true { replies_before_last_prompt(request) } else { 0 };
        let is_right = sent
            .iter()
            .enumerate()
            .all(|(number, sent)| number < forgotten || *sent == self.of_step("returned", number + 1));
        let is_foreign = sent.iter().take(forgotten).any(has_state);
        if !is_right || is_foreign {
            let refusal = &self.0["refusal"];
            return Answer::json(refusal[0].as_u64().unwrap() as u16, &refusal[1]);
        }
        if is_last(sent.len()) { self.answer() } else { self.calling(sent.len() + 1) }
    }
}

/// Whether a reply contains more than text and calls.
fn has_state(sent: &Value) -> bool {
    match sent {
        Value::Array(items) => {
            let is_state = |item: &Value| {
                matches!(item["type"].as_str(), Some("reasoning" | "thinking" | "redacted_thinking"))
                    || item.get("phase").is_some()
            };
            items.iter().any(is_state)
        }
        sent => *sent != json!({}),
    }
}

fn chunk(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn stream_of(chunks: impl IntoIterator<Item = Value>) -> Answer {
    let stream = chunks.into_iter().fold(Answer::stream(), |answer, chunk| answer.piece(event(&chunk)));
    stream.done()
}

fn has_block(content: &Value, kind: &str) -> bool {
    content.as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == kind))
}

/// Returns blocks without the marks of a cache, which a client may add.
fn without_cache_control(content: &Value) -> Value {
    let mut blocks = content.clone();
    for block in blocks.as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    blocks
}

/// Whether an item is a message of the user. Results of the Messages API have the same role.
fn is_prompt(item: &Value) -> bool {
    item["role"] == "user" && !has_block(&item["content"], "tool_result")
}

/// Returns the members of a message beside its role, text and calls.
fn opaque_of(message: &Value) -> Value {
    let mut members = message.as_object().unwrap().clone();
    members.remove("role");
    if !members["content"].is_array() {
        members.remove("content");
    }
    let calls: Vec<Value> = members["tool_calls"].as_array().unwrap().iter().map(opaque_of_call).collect();
    if calls.iter().all(|call| *call == json!({})) {
        members.remove("tool_calls");
    } else {
        members.insert(String::from("tool_calls"), Value::Array(calls));
    }
    Value::Object(members)
}

fn opaque_of_call(call: &Value) -> Value {
    let members = call.as_object().unwrap().iter();
    let opaque = members.filter(|(name, _)| !matches!(name.as_str(), "id" | "type" | "function"));
    Value::Object(opaque.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// Returns the number of replies with calls before the last user message.
fn replies_before_last_prompt(request: &Received) -> usize {
    let list = request.body.get("messages").or_else(|| request.body.get("input"));
    let list = list.unwrap().as_array().unwrap();
    let last = list.iter().rposition(is_prompt).unwrap();
    let mut count = 0;
    let mut in_reply = false;
    for item in &list[..last] {
        let is_message = item["tool_calls"].is_array() || has_block(&item["content"], "tool_use");
        let calls = is_message || item["type"] == "function_call";
        count += usize::from(calls && (!in_reply || is_message));
        in_reply = item["type"] == "function_call" || (in_reply && item["type"] == "reasoning");
    }
    count
}

/// Runs a chat with these lines of stdin.
fn chat(project: &Project, server: &Server, arguments: &[&str], lines: &str) -> Ended {
    let endpoint = server.endpoint();
    let mut command = project.command(&[&["chat", "--endpoint", &endpoint], arguments].concat());
    command.env("XDG_STATE_HOME", project.path("state")).env("HOME", project.path("home"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
    Ended::of(child.wait_with_output().unwrap())
}

#[test]
fn state_goes_back_in_steps_prompts_and_sessions_and_to_no_other_server() {
    for dialect in Dialect::all() {
        let name = dialect.text("name").to_owned();
        let project = dialect.project();
        let row = dialect.clone();
        // Two steps for the first prompt, one for the second, and one in a resumed session.
        let last_steps = [2, 3, 4];
        let server = Server::answering(move |_, request| {
            let prompts = prompts(request);
            row.respond(request, |steps| steps == last_steps[prompts - 1])
        });
        let ended = chat(&project, &server, &[], "first\nsecond\n");
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        let ended = chat(&project, &server, &["--resume"], "third\n");
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        let posts = server.posts();
        assert_eq!(posts.len(), 7, "{name}: a request was refused: {:?}", posts.last().unwrap().body);
        if let Some(written) = dialect.0.get("arguments") {
            let calls = calling_message(&posts[1])["tool_calls"].as_array().unwrap().clone();
            let sent: Vec<&Value> = calls.iter().map(|call| &call["function"]["arguments"]).collect();
            assert_eq!(json!(sent), *written, "{name}");
        }
        if dialect.text("call_id").starts_with("functions") {
            assert!(
                posts[1].body["messages"].to_string().contains(r#""tool_call_id":"functions.count:1""#),
                "{name}"
            );
        }

        let row = dialect.clone();
        let other = Server::answering(move |_, _| row.answer());
        let ended = chat(&project, &other, &["--resume"], "fourth\n");
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        let sent = dialect.sent(&other.posts()[0]);
        assert!(sent.len() == 4 && !sent.iter().any(has_state), "{name}: {sent:?}");
    }
}

/// Returns the number of user messages.
fn prompts(request: &Received) -> usize {
    let list = request.body.get("messages").or_else(|| request.body.get("input"));
    list.unwrap().as_array().unwrap().iter().filter(|item| is_prompt(item)).count()
}

#[test]
fn state_survives_a_crash() {
    for dialect in Dialect::all() {
        let name = dialect.text("name").to_owned();
        let project = dialect.project();
        let row = dialect.clone();
        let server = Server::answering(move |number, request| {
            if number == 1 {
                Answer::stream().then(Act::Silence)
            } else {
                row.respond(request, |steps| steps == 2)
            }
        });
        let endpoint = server.endpoint();
        let arguments = ["run", "hello", "--trust", "--journal", "requests.journal", "--endpoint", &endpoint];
        let child = spawn(project.command(&arguments));
        wait_until("the second turn begins", || server.posts().len() == 2);
        kill(child);
        let ended = project.run(&["journal", "resume", "requests.journal", "--trust"]);
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        let posts = server.posts();
        assert_eq!((posts.len(), &posts[1].body), (4, &posts[2].body), "{name}");
    }
}

#[test]
fn a_refused_history_is_corrected_once() {
    let rows: Value = serde_json::from_str(include_str!("../../reply_state/refusals.json")).unwrap();
    for row in rows.as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let project = Project::with_worker("(defworker :name \"w\" :model \"m\")");
        let expected = row.clone();
        let refusing = move |request: &Received| {
            let messages = request.body["messages"].as_array().unwrap();
            let calling: Vec<&Value> =
                messages.iter().filter(|message| message["tool_calls"].is_array()).collect();
            let is_right = calling.iter().all(|message| {
                let id = message["tool_calls"][0]["id"].as_str().unwrap();
                expected.get("history").is_none_or(|history| opaque_of(message) == *history)
                    && expected["id_length"].as_u64().is_none_or(|length| id.len() as u64 == length)
            });
            let refusal = &expected["refusal"];
            (!is_right).then(|| Answer::json(refusal[0].as_u64().unwrap() as u16, &refusal[1]))
        };
        let own = row["server"] == "own";
        let check = refusing.clone();
        let server = Server::answering(move |_, request| {
            if let Some(refused) = check(request).filter(|_| own) {
                return refused;
            }
            let calls =
                request.body["messages"].as_array().unwrap().iter().filter(|m| m["tool_calls"].is_array());
            match calls.count() {
                number @ 0..2 => calling_with_reasoning(number),
                _ => Answer::text("Done."),
            }
        });
        let ended = chat(&project, &server, &[], "first\n");
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        assert_eq!(server.posts().len(), 3 + usize::from(own), "{name}");
        if own {
            continue;
        }
        let other =
            Server::answering(move |_, request| refusing(request).unwrap_or_else(|| Answer::text("Done.")));
        let ended = chat(&project, &other, &["--resume"], "second\nthird\n");
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        assert_eq!(other.posts().len(), 3, "{name}: the first request is refused");
    }
}

fn calling_with_reasoning(number: usize) -> Answer {
    let mut called = call(0, "count", r#"{"text": "abc"}"#);
    called["choices"][0]["delta"]["tool_calls"][0]["id"] = json!(format!("functions.count:{number}"));
    let reasoning = chunk(json!({"reasoning_content": format!("step {number}")}));
    stream_of([reasoning, called, finish("tool_calls")])
}

/// Items that another key encrypted are left out once. Later items come back.
#[test]
fn unreadable_reasoning_is_forgotten_and_later_reasoning_is_kept() {
    let row = Dialect::all().into_iter().find(|row| row.text("name") == "OpenAI, Responses API").unwrap();
    let project = row.project();
    let replies = row.clone();
    let server = Server::answering(move |number, request| {
        let input = request.body["input"].to_string();
        if input.contains("whole-1") {
            let message = "The encrypted content whole-1 could not be verified.";
            return Answer::json(
                400,
                &json!({"error": {"message": message, "code": "invalid_encrypted_content"}}),
            );
        }
        match number {
            0 => replies.calling(1),
            2 => replies.calling(2),
            _ if input.contains("whole-2") => replies.answer(),
            _ => Answer::error(400, &[], "the second reply lacks its reasoning"),
        }
    });
    let ended = chat(&project, &server, &[], "first\nsecond\n");
    // The second prompt is not refused again.
    assert_eq!((ended.code, server.posts().len()), (Some(0), 5), "{ended:?}");
    assert_eq!(server.posts()[0].body["include"], json!(["reasoning.encrypted_content"]));
}

/// A thought whose signature the server refuses is left out once. Later thoughts come back.
#[test]
fn a_thought_that_the_server_refuses_is_forgotten_and_later_thoughts_are_kept() {
    let row = Dialect::all().into_iter().find(|row| row.text("name") == "Anthropic, thinking").unwrap();
    let project = row.project();
    let replies = row.clone();
    let server = Server::answering(move |number, request| {
        let messages = request.body["messages"].to_string();
        if messages.contains("sig-1") {
            let message = "messages.1.content.0: Invalid `signature` in `thinking` block";
            let error = json!({"type": "invalid_request_error", "message": message});
            return Answer::json(400, &json!({"type": "error", "error": error}));
        }
        match number {
            0 => replies.calling(1),
            2 => replies.calling(2),
            _ if messages.contains("sig-2") => replies.answer(),
            _ => Answer::error(400, &[], "the second reply lacks its thought"),
        }
    });
    let ended = chat(&project, &server, &[], "first\nsecond\n");
    // The second prompt is not refused again.
    assert_eq!((ended.code, server.posts().len()), (Some(0), 5), "{ended:?}");
}

/// Azure and others look an item up by its id although they store none. Encrypted content is complete without it.
#[test]
fn items_that_a_server_does_not_find_go_back_without_their_ids() {
    let row = Dialect::all().into_iter().find(|row| row.text("name") == "OpenAI, Responses API").unwrap();
    let project = row.project();
    let server = Server::answering(move |_, request| {
        let input = request.body["input"].to_string();
        if input.contains("rs_1") {
            let message =
                "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.";
            return Answer::json(404, &json!({"error": {"message": message}}));
        }
        match (input.contains("whole-1"), input.contains("whole-2")) {
            (true, true) => row.answer(),
            (true, false) => row.calling(2),
            _ => row.calling(1),
        }
    });
    let ended = project.run(&["run", "hello", "--endpoint", &server.endpoint()]);
    assert_eq!((ended.code, server.posts().len()), (Some(0), 4), "{ended:?}");
}

#[test]
fn recorded_requests_with_state_are_replayed() {
    for dialect in Dialect::all() {
        let project = dialect.project();
        let row = dialect.clone();
        let server = Server::answering(move |_, request| row.respond(request, |steps| steps == 2));
        let endpoint = server.endpoint();
        let ended = project.run(&["run", "hello", "--endpoint", &endpoint, "--record", "r.jsonl"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let replayed = project.run(&["run", "--replay", "r.jsonl"]);
        assert_eq!((replayed.code, replayed.stdout), (Some(0), ended.stdout), "{}", dialect.text("name"));
    }
}

/// A part with a secret is left out of the session, and other parts are stored unchanged.
#[test]
fn a_part_with_a_secret_is_not_stored() {
    let project = Project::with_worker("(defworker :name \"w\" :model \"m\")");
    let specs = std::fs::read_to_string(project.path("specs/tools.eld")).unwrap();
    let allowed = "\"Fails.\" :args () :allow (:env [\"MY_TOKEN\"])";
    project.write("specs/tools.eld", specs.replace("\"Fails.\" :args ()", allowed));
    let details = |text: &str| json!([{"type": "reasoning.text", "text": text, "signature": "sig"}]);
    let server = Server::script([
        stream_of([
            chunk(json!({"reasoning_content": "it is token-", "reasoning_details": details("fine")})),
            chunk(json!({"reasoning_content": "0815-xyz"})),
            call(0, "count", r#"{"text": "abc"}"#),
            finish("tool_calls"),
        ]),
        Answer::text("Done."),
    ]);
    let endpoint = server.endpoint();
    let mut command = project.command(&["chat", "--trust", "--endpoint", &endpoint]);
    command.env("XDG_STATE_HOME", project.path("state")).env("MY_TOKEN", "token-0815-xyz");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"first\n/save talk.jsonl\n").unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let stored = std::fs::read_to_string(project.path("talk.jsonl")).unwrap();
    assert!(
        !stored.contains("reasoning_content") && stored.contains(&details("fine").to_string()),
        "{stored}"
    );
    assert_eq!(opaque_of(&calling_message(&server.posts()[1]))["reasoning_content"], "it is token-0815-xyz");
}

fn calling_message(request: &Received) -> Value {
    let messages = request.body["messages"].as_array().unwrap();
    messages.iter().find(|message| message["tool_calls"].is_array()).unwrap().clone()
}
