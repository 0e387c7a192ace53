//! Tests of the format of messages.

use std::sync::Arc;

use crate::dialect::Dialect;

use super::super::change::{BodyFallback, BodyFallbacks};
use super::*;
use crate::dialect::Capabilities;
use crate::received::Opaque;
use crate::{Api, BodyEncoder};

fn system(text: &str) -> Message {
    Message::System { content: text.to_owned() }
}

fn user(text: &str) -> Message {
    Message::User { content: text.to_owned(), attachments: Vec::new() }
}

fn result(id: &str, text: &str) -> Message {
    Message::Tool { tool_call_id: id.to_owned(), content: text.to_owned(), attachments: Vec::new() }
}

/// A reply with calls of `look`, and the blocks that the server sent.
fn reply(text: &str, calls: &[(&str, &str)], blocks: &Value) -> Message {
    let tool_calls =
        calls.iter().map(|(id, arguments)| MessageToolCall::new(*id, "look", *arguments)).collect();
    let items = blocks.as_array().cloned().unwrap_or_default();
    let parts = Opaque { items, ..Opaque::default() };
    let received = (!parts.is_empty()).then(|| Arc::new(Received { parts, ..Received::default() }));
    Message::Assistant { content: text.to_owned(), tool_calls, received }
}

fn request(messages: impl IntoIterator<Item = Message>) -> ChatRequest {
    let messages = messages.into_iter().map(Arc::new).collect();
    ChatRequest { model: String::from("m"), messages, ..ChatRequest::default() }
}

/// The form for a local server, which gets no marks.
fn local() -> BodyForm {
    BodyForm { server: Capabilities::of(Dialect::named("vllm")), ..hosted() }
}

fn hosted() -> BodyForm {
    BodyForm { api: Api::Messages, ..BodyForm::default() }
}

fn with_params(params: &Value) -> ChatRequest {
    let function =
        json!({ "name": "f", "description": "d", "parameters": { "type": "object", "properties": {} } });
    let tools = vec![json!({ "type": "function", "function": function })];
    let params = params.as_object().cloned().unwrap();
    ChatRequest { model: String::from("m"), params, tools, ..ChatRequest::default() }
}

#[test]
fn a_conversation_with_two_calls_becomes_alternating_messages() {
    let calls = [("toolu_1", r#"{"at":"sea"}"#), ("toolu_2", "{}")];
    let request = request([
        system("bios"),
        system("Be brief."),
        user("u"),
        reply("Looking.", &calls, &json!([])),
        result("toolu_1", "[1]"),
        result("toolu_2", r#"{"error":{"kind":"timeout","message":"no answer"}}"#),
        system("left: 3"),
        reply("Calm. \n", &[], &json!([])),
        user("again"),
        user(" "),
        user("and again"),
    ]);
    let expected = json!({
        "model": "m",
        "max_tokens": 8192,
        "system": "bios\n\nBe brief.",
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "u" }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Looking." },
                { "type": "tool_use", "id": "toolu_1", "name": "look", "input": { "at": "sea" } },
                { "type": "tool_use", "id": "toolu_2", "name": "look", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "content": "[1]" },
                { "type": "tool_result", "tool_use_id": "toolu_2",
                  "content": r#"{"error":{"kind":"timeout","message":"no answer"}}"#, "is_error": true },
                { "type": "text", "text": "left: 3" },
            ] },
            { "role": "assistant", "content": [{ "type": "text", "text": "Calm." }] },
            { "role": "user", "content": [
                { "type": "text", "text": "again" },
                { "type": "text", "text": "and again" },
            ] },
        ],
        "stream": true,
    });
    assert_eq!(request.encode_body(local()).to_value().to_string(), expected.to_string());
}

/// Messages, and the messages of the body: role, then the type of each block with its text or id.
#[test]
fn messages_without_content_are_left_out() {
    let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    let search = json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} });
    for (messages, expected) in [
        (vec![user("")], ""),
        (vec![user("a"), reply("", &[], &json!([])), user("b")], "user: a b"),
        // Thinking at the end of a reply is not sent, and alone it is no reply.
        (vec![user("a"), reply("", &[], &json!([thought])), user("b")], "user: a b"),
        (
            vec![user("a"), reply("c", &[], &json!([thought, { "type": "text", "text": "c" }, thought]))],
            "user: a; assistant: thinking c",
        ),
        // A reply that the server paused.
        (vec![user("a"), reply("", &[], &json!([search]))], "user: a; assistant: server_tool_use"),
        (
            vec![user("a"), reply("", &[("1", "{}")], &json!([])), result("1", "")],
            "user: a; assistant: tool_use; user: tool_result",
        ),
        // Results come first.
        (
            vec![reply("", &[("1", "{}")], &json!([])), system("late"), result("1", "2"), user("b")],
            "assistant: tool_use; user: tool_result late b",
        ),
    ] {
        let body = request(messages).encode_body(local()).to_value();
        let shown = |block: &Value| match block["text"].as_str() {
            Some(text) => text.to_owned(),
            None => block["type"].as_str().unwrap().to_owned(),
        };
        let messages = body["messages"].as_array().unwrap().iter().map(|message| {
            let blocks: Vec<String> = message["content"].as_array().unwrap().iter().map(shown).collect();
            format!("{}: {}", message["role"].as_str().unwrap(), blocks.join(" "))
        });
        assert_eq!(messages.collect::<Vec<_>>().join("; "), expected);
    }
}

/// The text and the calls of a reply, the blocks that were received, and the blocks that go back.
#[test]
fn received_blocks_go_back_unchanged_if_they_contain_the_text_and_the_calls() {
    let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    let redacted = json!({ "type": "redacted_thinking", "data": "d" });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "look", "input": { "a": 1.0 } });
    let arguments = r#"{"a": 1.0}"#;
    for (content, calls, received, expected) in [
        // Interleaved thinking.
        (
            "A.B.",
            vec![("1", arguments), ("2", arguments)],
            json!([thought, text("A."), call("1"), redacted, text("B."), call("2")]),
            json!([thought, text("A."), call("1"), redacted, text("B."), call("2")]),
        ),
        // A repeated id was replaced. A call of an exit tool has no result.
        ("", vec![("x", arguments)], json!([thought, call("1")]), json!([thought, call("x")])),
        ("A", vec![], json!([thought, text("A"), call("1")]), json!([thought, text("A")])),
        ("A", vec![], json!([thought, text("\n"), text("A")]), json!([thought, text("A")])),
        // A call that was written as text.
        (
            "A",
            vec![("1", arguments)],
            json!([thought, redacted, text("A<call>")]),
            json!([thought, redacted, text("A"), call("1")]),
        ),
        // The block of a call contained a secret and was dropped.
        ("A", vec![("1", arguments)], json!([thought, text("A")]), json!([thought, text("A"), call("1")])),
    ] {
        let request = request([user("u"), reply(content, &calls, &received)]);
        let body = request.encode_body(local()).to_value();
        assert_eq!(body["messages"][1]["content"].to_string(), expected.to_string());
        let fallbacks = BodyFallbacks::default().with(BodyFallback::NoState);
        let body = request.encode_body(BodyForm { fallbacks, ..local() }).json().clone();
        assert!(!String::from_utf8_lossy(&body).contains("hm"), "{body:?}");
    }
}

#[test]
fn parameters_are_renamed_for_this_api() {
    let choice = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let serial = json!({ "type": "auto", "disable_parallel_tool_use": true });
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": { "type": "object" } } });
    for (params, expected) in [
        (json!({ "max_tokens": 9 }), json!({ "max_tokens": 9 })),
        (json!({ "max_completion_tokens": 9 }), json!({ "max_tokens": 9 })),
        (
            json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 } }),
            json!({ "max_tokens": 10192, "thinking": { "type": "enabled", "budget_tokens": 2000 } }),
        ),
        (json!({ "stop": "x" }), json!({ "stop_sequences": ["x"] })),
        (json!({ "stop": ["x", "y"] }), json!({ "stop_sequences": ["x", "y"] })),
        (
            json!({ "reasoning_effort": "low", "response_format": format }),
            json!({ "output_config": {
                "effort": "low", "format": { "type": "json_schema", "schema": { "type": "object" } },
            } }),
        ),
        (json!({ "tool_choice": "required" }), json!({ "tool_choice": { "type": "any" } })),
        (json!({ "tool_choice": "none" }), json!({ "tool_choice": { "type": "none" } })),
        (json!({ "tool_choice": choice("f") }), json!({ "tool_choice": { "type": "tool", "name": "f" } })),
        (json!({ "tool_choice": { "type": "any" } }), json!({ "tool_choice": { "type": "any" } })),
        (
            json!({ "tool_choice": { "type": "tool", "name": "f" } }),
            json!({ "tool_choice": { "type": "tool", "name": "f" } }),
        ),
        (
            json!({ "tool_choice": { "type": "allowed_tools", "allowed_tools": {
                "mode": "required", "tools": [choice("f")]
            } } }),
            json!({ "tool_choice": { "type": "any" } }),
        ),
        (json!({ "parallel_tool_calls": true }), json!({})),
        (json!({ "parallel_tool_calls": false }), json!({ "tool_choice": serial })),
        (
            json!({ "parallel_tool_calls": false, "tool_choice": "none" }),
            json!({ "tool_choice": { "type": "none" } }),
        ),
        // Parameters without an equivalent, and those of this API, are sent unchanged.
        (
            json!({ "temperature": 0, "top_k": 5, "seed": 1, "response_format": { "type": "json_object" } }),
            json!({ "temperature": 0, "top_k": 5, "seed": 1, "response_format": { "type": "json_object" } }),
        ),
        // Members that this module sets itself.
        (
            json!({ "model": "x", "messages": [], "system": "s", "tools": [], "stream": false, "stream_options": {} }),
            json!({}),
        ),
    ] {
        let schema = json!({ "type": "object", "properties": {} });
        let tools = json!([{ "name": "f", "description": "d", "input_schema": schema }]);
        let mut whole =
            json!({ "model": "m", "max_tokens": 8192, "messages": [], "tools": tools, "stream": true });
        whole.as_object_mut().unwrap().extend(expected.as_object().cloned().unwrap());
        assert_eq!(with_params(&params).encode_body(local()).to_value(), whole, "{params}");
    }
    let native = json!({ "type": "web_search_20260209", "name": "web_search" });
    let request = ChatRequest {
        tools: vec![native.clone(), json!({ "function": { "name": "g" } })],
        ..ChatRequest::default()
    };
    let expected = json!([native, { "name": "g", "input_schema": { "type": "object" } }]);
    assert_eq!(request.encode_body(local()).to_value()["tools"], expected);
    // Half of a small context is left for the prompt.
    let server = Capabilities { context: Some(4096), ..Capabilities::of(Dialect::named("llama-cpp")) };
    assert_eq!(request.encode_body(BodyForm { server, ..local() }).to_value()["max_tokens"], 2048);
}

#[test]
fn body_fallbacks_apply_to_this_api() {
    let params =
        json!({ "tool_choice": "required", "temperature": 0, "top_p": 1, "parallel_tool_calls": false });
    let mut request = with_params(&params);
    request.messages =
        [user("u"), reply("", &[("a:1", "{}")], &json!([])), result("a:1", "2"), system("late")]
            .map(Arc::new)
            .into();
    let members = |fallback: BodyFallback, names: &[&str]| {
        let fallbacks = BodyFallbacks::default().with(fallback);
        let body = request.encode_body(BodyForm { fallbacks, ..hosted() }).to_value();
        names.iter().map(|name| body[*name].to_string()).collect::<Vec<_>>().join(" ")
    };
    for (fallback, names, expected) in [
        (
            BodyFallback::NoToolChoice,
            &["tool_choice"][..],
            r#"{"type":"auto","disable_parallel_tool_use":true}"#,
        ),
        (BodyFallback::without("parallel_tool_calls"), &["tool_choice"], r#"{"type":"any"}"#),
        (BodyFallback::without("top_p"), &["temperature", "top_p"], "0 null"),
        (
            BodyFallback::PlainRoles,
            &["system", "messages"],
            r#"[{"type":"text","text":"late"}] [{"role":"user","content":[{"type":"text","text":"u"}]},{"role":"assistant","content":[{"type":"text","text":"{\"tool\":\"look\",\"arguments\":{}}"}]},{"role":"user","content":[{"type":"text","text":"Result of look:\n2"}]}]"#,
        ),
        // The responses API is for models of chat completions.
        (BodyFallback::UseResponses, &["input"], "null"),
    ] {
        let found = members(fallback, names).replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        assert_eq!(found, expected, "{fallback:?}");
    }
    assert!(members(BodyFallback::PortableIds, &["messages"]).matches("a:1").next().is_none());
    assert!(
        !members(BodyFallback::without("cache_control"), &["system", "tools", "messages"])
            .contains("cache_control")
    );
}

/// Arguments that the server holds back until they are complete would be silence in the stream.
#[test]
fn claude_is_asked_for_arguments_as_they_are_generated() {
    let is_asked = |model: &str, form: BodyForm| {
        let request = ChatRequest { model: String::from(model), ..with_params(&json!({})) };
        let tools = request.encode_body(form).to_value()["tools"].take();
        tools.as_array().unwrap().iter().all(|tool| tool["eager_input_streaming"] == true)
    };
    let refused = BodyFallback::without("eager_input_streaming");
    let without = BodyForm { fallbacks: BodyFallbacks::default().with(refused), ..hosted() };
    let anthropic = BodyForm { server: Capabilities::of(Dialect::named("anthropic")), ..hosted() };
    let without = BodyForm { server: anthropic.server, ..without };
    for (model, form, expected) in [
        ("claude-opus-4-8", anthropic, true),
        ("claude-opus-4-8", without, false),
        ("claude-opus-4-8", local(), false),
        ("claude-opus-4-8", hosted(), false),
    ] {
        assert_eq!(is_asked(model, form), expected, "{model} {form:?}");
    }
}

/// The messages of a body, `*` after those with a mark.
fn marks(body: &Value) -> String {
    let is_marked = |value: &Value| value.to_string().contains(r#""cache_control":{"type":"ephemeral"}"#);
    let shown = |name: &str, value: &Value| format!("{name}{}", if is_marked(value) { "*" } else { "" });
    let messages = body["messages"].as_array().unwrap().iter();
    let messages = messages.map(|message| shown(message["role"].as_str().unwrap(), message));
    [shown("tools", &body["tools"]), shown("system", &body["system"])]
        .into_iter()
        .chain(messages)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn what_the_next_request_repeats_is_marked() {
    let turn = |number: u32| {
        let id = number.to_string();
        [reply("", &[(&id, "{}")], &json!([])), result(&id, "2")]
    };
    let mut request = ChatRequest { messages: Vec::new(), ..with_params(&json!({})) };
    let mut encoder = BodyEncoder::default();
    request.messages.extend([system("s"), user("u")].map(Arc::new));
    for expected in [
        "tools* system* user*",
        "tools* system* user* assistant user*",
        "tools* system* user assistant user* assistant user*",
        "tools* system* user assistant user assistant user* assistant user*",
    ] {
        // An encoder that keeps the last body marks the same messages.
        let body = encoder.encode(&request, hosted());
        assert_eq!(body, request.encode_body(hosted()));
        assert_eq!(marks(&body.to_value()), expected);
        let number = request.messages.len() as u32;
        request.messages.extend(turn(number).map(Arc::new));
    }
    request.params.insert(String::from("cache_control"), json!({ "type": "ephemeral", "ttl": "1h" }));
    assert!(!marks(&request.encode_body(hosted()).to_value()).contains('*'));
    request.params.clear();
    assert!(!marks(&request.encode_body(local()).to_value()).contains('*'));
}
