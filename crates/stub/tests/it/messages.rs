//! Scenarios over the Messages API, and its refusals of invalid requests.

use std::net::SocketAddr;

use deftool_stub::{Fault, Scenario, Stub};
use serde_json::{Value, json};

use deftool_test_support::client::{exchange, post_to};

use super::{events, stub};

const WEATHER: &str = r#"(defscenario :name "weather" :key "secret"
 (expect :tools ["look"] :system "brief" :header (:anthropic-version "2023-06-01"))
 (reply (reasoning "Hm.") "Let me look. " (call "look" (:at "sea")) (call "look" (:at "sky")) :usage (:prompt 9 :completion 5 :cached 4))
 (reply :when (:last-role tool) (expect :contains "calm" :turn 2) "It is calm." :finish length)
 (error 529 :type "overloaded_error" :message "Overloaded"))"#;

/// Sends a request with a version and this header.
fn ask_with(address: SocketAddr, header: &str, body: &Value) -> (u16, Value) {
    let head = format!("HTTP/1.1\r\n{header}\r\nanthropic-version: 2023-06-01\r\n");
    exchange(address, &post_to("/v1/messages", body).replacen("HTTP/1.1\r\n", &head, 1))
}

fn ask(address: SocketAddr, body: &Value) -> (u16, Value) {
    ask_with(address, "x-api-key: secret", body)
}

/// Returns a request with a tool and further messages.
fn request(is_stream: bool, more: &[Value]) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "How is the sea?"})];
    messages.extend(more.iter().cloned());
    let tool = json!({"name": "look", "input_schema": {"type": "object"}});
    json!({
        "model": "m", "max_tokens": 2000, "system": [{"type": "text", "text": "Be brief."}], "messages": messages,
        "tools": [tool], "stream": is_stream,
    })
}

/// Returns the content of a reply and the results of its calls.
fn answered(content: &Value) -> [Value; 2] {
    let blocks = content.as_array().unwrap().iter();
    let results: Vec<Value> = blocks
        .filter(|block| block["type"] == "tool_use")
        .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "calm"}]}))
        .collect();
    [json!({"role": "assistant", "content": content}), json!({"role": "user", "content": results})]
}

#[test]
fn scenarios_are_answered_without_streaming() {
    let stub = stub(WEATHER);
    let (status, first) = ask(stub.address(), &request(false, &[]));
    assert_eq!((status, &first["stop_reason"]), (200, &json!("tool_use")));
    let blocks = first["content"].as_array().unwrap();
    let kinds: Vec<&Value> = blocks.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(
        (&blocks[0]["thinking"], &blocks[2]["input"], &blocks[3]["input"]),
        (&json!("Hm."), &json!({"at": "sea"}), &json!({"at": "sky"}))
    );
    assert_eq!(
        first["usage"],
        json!({"input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": 5})
    );
    let (_, second) = ask(stub.address(), &request(false, &answered(&first["content"])));
    assert_eq!(second["content"], json!([{"type": "text", "text": "It is calm."}]));
    assert_eq!(second["stop_reason"], "max_tokens");
    let (status, third) = ask(stub.address(), &request(false, &[]));
    assert_eq!((status, &third["error"]["type"]), (529, &json!("overloaded_error")));
    assert_eq!(stub.failures(), [""; 0]);
}

#[test]
fn a_stream_has_the_content_of_the_whole_message() {
    let stub = stub(WEATHER);
    let events = events(&ask(stub.address(), &request(true, &[])).1);
    let (first, last) = (&events[0], events.last().unwrap());
    assert_eq!((&first["type"], last), (&json!("message_start"), &json!({"type": "message_stop"})));
    let pieces = |index: u64, member: &str| -> String {
        let own = events.iter().filter(|event| event["index"] == index);
        own.filter_map(|event| event["delta"][member].as_str()).collect()
    };
    let whole = ask(super::stub(WEATHER).address(), &request(false, &[])).1;
    let content = &whole["content"];
    assert_eq!(pieces(0, "thinking"), content[0]["thinking"].as_str().unwrap());
    assert_eq!(pieces(0, "signature"), content[0]["signature"].as_str().unwrap());
    assert_eq!(pieces(1, "text"), content[1]["text"].as_str().unwrap());
    for index in [2, 3] {
        let input: Value = serde_json::from_str(&pieces(index, "partial_json")).unwrap();
        assert_eq!(input, content[index as usize]["input"]);
    }
    assert_eq!(stub.requests()[0].contents("user"), ["How is the sea?"]);
}

#[test]
fn keys_are_accepted_in_both_headers() {
    let ask = |header: &str| ask_with(stub(WEATHER).address(), header, &request(false, &[]));
    assert_eq!(ask("x-api-key: secret").0, 200);
    assert_eq!(ask("authorization: Bearer secret").0, 200);
    let (status, refused) = ask("x-api-key: other");
    assert_eq!((status, &refused["error"]["type"]), (401, &json!("authentication_error")));
}

/// A client may not change what the model wrote.
#[test]
fn changed_replies_are_refused() {
    let first = ask(stub(WEATHER).address(), &request(false, &[])).1;
    let refused = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut messages = answered(&first["content"]).to_vec();
        change(messages[0]["content"].as_array_mut().unwrap());
        let stub = stub(WEATHER);
        let (status, answer) = ask(stub.address(), &request(false, &messages));
        let message = answer["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(stub.failures().len(), usize::from(status == 400), "{message}");
        message
    };
    assert_eq!(refused(&|_| {}), "");
    assert!(refused(&|blocks| blocks[0]["thinking"] = json!("Ho.")).contains("cannot be modified"));
    assert!(
        refused(&|blocks| blocks[0]["signature"] = json!("EqQB"))
            .contains("Invalid `signature` in `thinking` block")
    );
    assert!(
        refused(&|blocks| blocks.rotate_left(1))
            .contains("The final block in an assistant message cannot be")
    );
    assert!(
        refused(&|blocks| blocks.truncate(3))
            .contains("unexpected `tool_use_id` found in `tool_result` blocks: call00001")
    );
}

/// A reply to a request with thinking starts with a thought, which must come back.
#[test]
fn thinking_is_required_if_it_is_enabled() {
    let stub = stub("(defscenario :name \"a\" (reply \"x\" (call \"look\" (:at \"sea\"))) (reply \"y\"))");
    let with_thinking = |more: &[Value]| {
        let mut body = request(false, more);
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        ask(stub.address(), &body)
    };
    let mut content = with_thinking(&[]).1["content"].clone();
    assert_eq!((&content[0]["type"], &content[1]["text"]), (&json!("thinking"), &json!("x")));
    let (_, whole) = with_thinking(&answered(&content));
    assert_eq!(whole["content"][1]["text"], "y");
    content.as_array_mut().unwrap().remove(0);
    let (status, refused) = with_thinking(&answered(&content));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(status == 400 && message.contains("must start with a thinking block"), "{message}");
}

#[test]
fn invalid_requests_are_refused_with_the_wording_of_the_api() {
    let rows: Value = serde_json::from_str(include_str!("../messages_refusals.json")).unwrap();
    for row in rows.as_array().unwrap() {
        let message = row["message"].as_str().unwrap();
        let mut body = request(false, &[]);
        for (member, value) in row["body"].as_object().unwrap() {
            match value {
                Value::Null => body.as_object_mut().unwrap().remove(member),
                value => body.as_object_mut().unwrap().insert(member.clone(), value.clone()),
            };
        }
        let version = row["version"]
            .as_str()
            .map_or_else(String::new, |version| format!("anthropic-version: {version}\r\n"));
        let sent =
            post_to("/v1/messages", &body).replacen("HTTP/1.1\r\n", &format!("HTTP/1.1\r\n{version}"), 1);
        let stub = Stub::start(Scenario::without_steps()).unwrap();
        let (status, refused) = exchange(stub.address(), &sent);
        let expected = if message.is_empty() { 200 } else { 400 };
        let found = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(
            status == expected && found.contains(message),
            "expected {message}, found {status}: {refused}"
        );
        // Local servers do not check this.
        let local = super::stub("(defscenario :name \"a\" :server llama-cpp (reply \"x\"))");
        assert_eq!(exchange(local.address(), &sent).0, 200, "{message}");
    }
}

#[test]
fn faults_of_other_apis_are_rejected() {
    let name = "stop-pause-turn";
    let chat_only =
        Stub::start(Scenario::with_faults([Fault::named("role-missing").unwrap()], None)).unwrap();
    let (status, error) = ask(chat_only.address(), &request(true, &[]));
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        status == 400 && message.starts_with("stub: fault `role-missing` exists in chat completions only"),
        "{message}"
    );
    let messages_only = Stub::start(Scenario::with_faults([Fault::named(name).unwrap()], None)).unwrap();
    let (status, error) = exchange(
        messages_only.address(),
        &post_to("/v1/responses", &json!({"input": "hello", "stream": true})),
    );
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        status == 400 && message.starts_with(&format!("stub: fault `{name}` exists in messages only")),
        "{message}"
    );
    let by_model = Stub::start(Scenario::without_steps()).unwrap();
    let mut body = request(true, &[]);
    body["model"] = json!(name);
    let stream = ask(by_model.address(), &body).1;
    assert!(stream.as_str().unwrap().contains("pause_turn"), "{stream}");
}
