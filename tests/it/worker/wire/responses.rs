//! What only the Responses API has.

use deftool_chat::Api;
use deftool_lang::spec::SystemMessages;
use deftool_test_support::server::{Answer, Server, delta, encode_events, finish};
use serde_json::{Value, json};

use super::super::harness::{ask, over, turn, worker};
use super::{fails, play_all};

const API: Api = Api::Responses;

#[tokio::test]
async fn requests_have_the_form_of_the_api() {
    let calls = [("look", r#"{"at": "sea"}"#), ("done", r#"{"at": "early"}"#), ("look", "{}")];
    let server = Server::script([turn(API, "Looking. ", &calls), turn(API, "It is calm.", &[])]);
    let mut config = over(API);
    let params = json!({"temperature": 0, "max_tokens": 50, "reasoning_effort": "low"});
    config.run.params = params.as_object().unwrap().clone();
    config.run.system = Some(String::from("Be brief."));
    config.run.system_messages = SystemMessages::Separate;
    assert_eq!(ask(&worker(&server, config)).await.text(), "Looking. It is calm.");
    let posts = server.posts();
    for post in &posts {
        let members: Vec<&str> = post.body.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = [
            "model",
            "input",
            "tools",
            "temperature",
            "max_output_tokens",
            "reasoning",
            "stream",
            "store",
            "include",
        ];
        assert_eq!(members, expected);
        assert_eq!((&post.body["stream"], &post.body["store"]), (&json!(true), &json!(false)));
        assert_eq!(post.body["reasoning"], json!({"effort": "low"}));
        let tools = post.body["tools"].as_array().unwrap();
        let flat =
            |tool: &Value| tool["type"] == "function" && tool["name"].is_string() && tool["strict"] == false;
        assert!(tools.len() == 3 && tools.iter().all(flat), "{tools:?}");
    }
    let input = posts[1].body["input"].as_array().unwrap();
    let kinds: Vec<&str> =
        input.iter().map(|item| item["role"].as_str().or(item["type"].as_str()).unwrap()).collect();
    let expected = [
        "system",
        "system",
        "user",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ];
    assert_eq!(kinds, expected, "exit calls are not part of the conversation");
    assert_eq!(input[1]["content"], json!([{"type": "input_text", "text": "Be brief."}]));
    assert_eq!(input[3]["content"][0]["text"], "Looking. ");
    assert_eq!(input[4]["arguments"], r#"{"at": "sea"}"#);
    assert_eq!(input[6]["output"], r#"{"seen":{"at":"sea"}}"#);
}

#[tokio::test]
async fn combined_system_messages_are_one_item() {
    let server = Server::script([turn(API, "Hello.", &[])]);
    let mut config = over(API);
    config.run.system = Some(String::from("Be brief."));
    config.run.system_messages = SystemMessages::Combined;
    assert_eq!(ask(&worker(&server, config)).await.text(), "Hello.");
    let posts = server.posts();
    let input = posts[0].body["input"].as_array().unwrap();
    let roles: Vec<&str> = input.iter().map(|item| item["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user"]);
    let text = input[0]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("\n\nBe brief."), "{input:?}");
}

#[tokio::test]
async fn failed_responses_and_rejected_members_end_the_request() {
    let failed = |code: &str, message: &str| {
        let response = json!({"status": "failed", "error": {"code": code, "message": message}});
        Answer::begun(API, &[delta("so far")])
            .chunk(&json!({"type": "response.failed", "response": response}))
            .end()
    };
    let cases = vec![
        fails("failed", [failed("server_error", "cuda")], "server_error", &["cuda"]).text("so far"),
        fails(
            "too long a prompt, in the stream",
            [failed("context_length_exceeded", "too long")],
            "context_overflow",
            &["too long"],
        )
        .text("so far"),
        fails("no such API", [Answer::error(404, &[], "gone")], "http_error", &["`:api responses`"]),
        fails(
            "no variant applies",
            [Answer::error(400, &[], "stream_options? max_tokens? max_completion_tokens?")],
            "http_error",
            &["HTTP 400"],
        ),
    ];
    play_all(cases.into_iter().map(|case| case.over(API)).collect()).await;
}

#[tokio::test]
async fn a_built_in_tool_of_the_server_is_reported_and_skipped() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let search = json!({"type": "response.output_item.done", "output_index": 0, "item": search});
    let found = encode_events(API, &[delta("Found."), finish("stop")]);
    let answer = found.iter().fold(Answer::stream().chunk(&search), Answer::chunk).end();
    let ended = ask(&worker(&Server::script([answer]), over(API))).await;
    assert_eq!(ended.text(), "Found.");
    let warnings = ended.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("/responses: the reply contains web_search_call"), "{warnings:?}");
}
