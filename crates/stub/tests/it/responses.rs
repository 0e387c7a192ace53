//! Scenarios over the Responses API.

use std::net::SocketAddr;

use deftool_stub::{Fault, Scenario, Stub};
use serde_json::{Value, json};

use deftool_test_support::client::{exchange, get, post_to};

use super::{events, stub};

const WEATHER: &str = r#"(defscenario :name "weather"
 (expect :tools ["look"] :system "brief")
 (reply (reasoning "Hm.") "Let me look. " (call "look" (:at "sea")))
 (reply :when (:last-role tool) (expect :contains "calm" :turn 2) "It is calm." :finish length)
 (error 429 :message "slow down" :retry-after 1))"#;

fn ask(address: SocketAddr, body: &Value) -> (u16, Value) {
    exchange(address, &post_to("/v1/responses", body))
}

/// Returns a request with a tool and further items.
fn request(is_stream: bool, more: &[Value]) -> Value {
    let mut input =
        vec![json!({"role": "user", "content": [{"type": "input_text", "text": "How is the sea?"}]})];
    input.extend(more.iter().cloned());
    let tool = json!({"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": false});
    json!({"model": "m", "instructions": "Be brief.", "input": input, "tools": [tool], "stream": is_stream})
}

fn items_after_a_call() -> [Value; 3] {
    [
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look. "}]}),
        json!({"type": "function_call", "call_id": "call00000", "name": "look", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "call00000", "output": "calm"}),
    ]
}

#[test]
fn scenarios_are_answered_without_streaming() {
    let stub = stub(WEATHER);
    let (status, first) = ask(stub.address(), &request(false, &[]));
    assert_eq!((status, &first["status"]), (200, &json!("completed")));
    let kinds: Vec<&str> =
        first["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(first["output"][2]["arguments"], r#"{"at":"sea"}"#);
    let (_, second) = ask(stub.address(), &request(false, &items_after_a_call()));
    assert_eq!(second["output"][0]["content"][0]["text"], "It is calm.");
    assert_eq!(
        (&second["status"], &second["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    let (status, third) = ask(stub.address(), &request(false, &[]));
    assert_eq!((status, &third["error"]["message"]), (429, &json!("slow down")));
    assert_eq!(stub.failures(), [""; 0]);

    // Mismatches are reported as in chat completions.
    let stub = super::stub(WEATHER);
    let (status, error) = ask(stub.address(), &json!({"input": "hello"}));
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!(status, 400);
    assert!(
        message.contains(
            "expected `brief` in a system message; expected the tool `look` to be offered, found none"
        ),
        "{message}"
    );
}

#[test]
fn a_stream_ends_with_the_whole_response() {
    let stub = stub(WEATHER);
    let (_, stream) = ask(stub.address(), &request(true, &[]));
    let events = events(&stream);
    let (first, last) = (&events[0], events.last().unwrap());
    assert_eq!((&first["type"], &last["type"]), (&json!("response.created"), &json!("response.completed")));
    let deltas = |kind: &str| -> String {
        let deltas =
            events.iter().filter(|event| event["type"] == kind).map(|event| event["delta"].as_str().unwrap());
        deltas.collect()
    };
    assert_eq!(deltas("response.output_text.delta"), "Let me look. ");
    assert_eq!(deltas("response.reasoning_text.delta"), "Hm.");
    assert_eq!(deltas("response.function_call_arguments.delta"), r#"{"at":"sea"}"#);
    // The answer without streaming is the same.
    let again = super::stub(WEATHER);
    assert_eq!(last["response"], ask(again.address(), &request(false, &[])).1);
    assert_eq!(stub.requests()[0].contents("user"), ["How is the sea?"]);
}

#[test]
fn faults_of_chat_completions_only_are_rejected() {
    let whole = Stub::start(Scenario::with_faults([Fault::named("role-missing").unwrap()], None)).unwrap();
    let by_key = stub("(defscenario :name \"a\" (reply \"x\" :misbehave [crlf name-split]))");
    let by_model = Stub::start(Scenario::without_steps()).unwrap();
    for (stub, model, name) in
        [(whole, "m", "role-missing"), (by_key, "m", "name-split"), (by_model, "calls-null", "calls-null")]
    {
        let (status, error) = ask(stub.address(), &json!({"model": model, "input": "hello", "stream": true}));
        let message = error["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400);
        assert!(
            message.starts_with(&format!("stub: fault `{name}` exists in chat completions only")),
            "{message}"
        );
        assert_eq!(stub.failures().len(), 1, "{name}");
    }
    // Other faults work over the Responses API, too.
    let by_model = Stub::start(Scenario::without_steps()).unwrap();
    assert_eq!(ask(by_model.address(), &json!({"model": "http-502-html", "input": "hello"})).0, 502);
    let (_, stream) =
        ask(by_model.address(), &json!({"model": "line-ends-mixed", "input": "hello", "stream": true}));
    assert!(stream.as_str().unwrap().contains("\r\n"));
}

#[test]
fn unknown_paths_and_methods_get_a_helpful_error() {
    let stub = Stub::start(Scenario::without_steps()).unwrap();
    assert_eq!(get(stub.address(), "/v1/responses").0, 405);
    let (status, error) = exchange(stub.address(), &post_to("/v1/completions", &json!({})));
    assert_eq!(status, 404);
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("POST to /v1/chat/completions, /v1/responses or /v1/messages")
    );
    // The answer to HEAD has no body, and the connection stays open.
    let mut client = deftool_test_support::client::Client::connect(stub.address());
    client.send("HEAD /v1/models HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\nconnection: close\r\n\r\n");
    let (text, _) = client.read_to_end();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2);
    assert!(!text.contains("object") && text.contains("{\"status\":\"ok\"}"), "{text}");
}

#[test]
fn ollama_pages_are_emulated() {
    let stub = stub("(defscenario :name \"a\" :server ollama :models [\"small\"] (reply \"x\"))");
    assert!(get(stub.address(), "/api/version").1["version"].is_string());
    assert_eq!(get(stub.address(), "/api/ps").1["models"][0]["context_length"], 4096);
    let show = post_to("/api/show", &json!({"model": "small"}));
    assert_eq!(exchange(stub.address(), &show).1["parameters"], "num_ctx 4096");
    assert_eq!(get(stub.address(), "/props").0, 404);
}
