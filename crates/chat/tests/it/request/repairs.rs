//! Repairs of calls: the same for structured calls, calls written as text and calls of exit tools.

use std::sync::Arc;

use deftool_chat::request::{BiosV1, Event, Step};
use deftool_chat::{ChatEvent, Message, RawArguments, RawCall, Reply};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use serde_json::{Value, json};

use super::play::{Play, definition, play, reply_with};

fn tools() -> ToolSet {
    let parameters = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "flag": {"type": "boolean"},
            "text": {"type": "string"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "filter": {"type": "object"}
        },
        "additionalProperties": false
    });
    let entry =
        |kind, name: &str| Arc::new(ToolEntry::new(kind, definition(name, &parameters), None).unwrap());
    ToolSet::new([entry(ToolKind::Normal, "put"), entry(ToolKind::Exit, "finish")])
}

/// What a reply with one call leads to.
#[derive(Debug, PartialEq)]
enum Taken {
    /// The call runs, or is a signal, with these arguments.
    Accepted(Value),
    /// The request fails with this kind.
    Failed(String),
}

/// Runs one reply. Returns also `path: kind` of each repair, and whether the events name the call that they belong to.
fn take(text: &str, call: Option<RawCall>) -> (Taken, Vec<String>) {
    let tools = tools();
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    run.on_event(ChatEvent::Text { text: text.to_owned() }, &tools, 1);
    let reply = Reply { calls: call.into_iter().collect(), ..reply_with("").reply };
    run.on_event(ChatEvent::Ended { reply }, &tools, 2);
    let step = run.next_step(&tools, &BiosV1);
    let events = run.take_events();
    let called = events.iter().find_map(|event| match event {
        Event::ToolCall { id, name, arguments } => Some((id.clone(), name.clone(), Arc::clone(arguments))),
        _ => None,
    });
    let repairs = events.iter().filter_map(|event| match event {
        Event::ArgumentsRepaired { id, name, path, kind } => {
            assert_eq!(*id, called.as_ref().map(|(id, ..)| id.clone()));
            assert!(["put", "finish"].contains(&name.as_str()));
            Some(format!("{path}: {}", kind.as_str()))
        }
        _ => None,
    });
    let repairs = repairs.collect();
    let taken = match (step, run.signals()) {
        (Step::AnswerCalls(calls), _) => {
            let (id, name, arguments) = called.unwrap();
            let call = &calls[0].call;
            assert_eq!((&call.id, &call.name, &*call.arguments), (&id, &name, &*arguments));
            Taken::Accepted(arguments.as_ref().clone())
        }
        (_, [signal]) if signal.arguments_error.is_none() => Taken::Accepted(signal.arguments.clone()),
        _ => Taken::Failed(run.outcome().unwrap().kind.clone().unwrap_or_default()),
    };
    (taken, repairs)
}

/// Returns a structured call. `arguments`: the text that the server sent.
fn structured(name: &str, arguments: &str) -> RawCall {
    let arguments = match serde_json::from_str(arguments) {
        Ok(value) => RawArguments::Object { value },
        Err(error) => {
            let (text, error) = (arguments.to_owned(), error.to_string());
            RawArguments::Malformed { text, error, truncated: false }
        }
    };
    let (name, id) = (name.to_owned(), Some(String::from("call_0")));
    RawCall {
        index: 0,
        id,
        name,
        arguments,
        written: None,
        opaque: serde_json::Map::new(),
        repairs: Vec::new(),
    }
}

#[test]
fn damage_is_repaired_in_structured_and_written_calls_and_in_signals() {
    for (arguments, meant, repairs) in [
        (r#"{"n": "5"}"#, json!({"n": 5}), vec![".n: integer_as_string"]),
        (r#"{"flag": "true"}"#, json!({"flag": true}), vec![".flag: boolean_as_string"]),
        (r#"{"filter": "{\"a\": [1]}"}"#, json!({"filter": {"a": [1]}}), vec![".filter: encoded_value"]),
        (r#"{"list": "[1, 2]"}"#, json!({"list": [1, 2]}), vec![".list: encoded_value"]),
        (r#"{"list": [1, "2"]}"#, json!({"list": [1, 2]}), vec![".list[1]: integer_as_string"]),
        (r#"{"n": 1, "text": null}"#, json!({"n": 1}), vec![".text: null_for_absent"]),
        ("{\"text\": \"a\nb\tc\"}", json!({"text": "a\nb\tc"}), vec![": control_characters"]),
        (
            "{\"text\": \"a\nb\", \"n\": \"-1\"}",
            json!({"text": "a\nb", "n": -1}),
            vec![": control_characters", ".n: integer_as_string"],
        ),
        (r#"{"text": "5"}"#, json!({"text": "5"}), vec![]),
    ] {
        let expected = (Taken::Accepted(meant), repairs.into_iter().map(str::to_owned).collect());
        for tool in ["put", "finish"] {
            assert_eq!(take("", Some(structured(tool, arguments))), expected, "structured: {arguments}");
            let written =
                format!("<tool_call>{{\"name\": \"{tool}\", \"arguments\": {arguments}}}</tool_call>");
            assert_eq!(take(&written, None), expected, "written: {arguments}");
        }
    }
}

#[test]
fn arguments_that_are_encoded_twice_are_repaired() {
    let expected = (Taken::Accepted(json!({"n": 5})), vec![String::from(": encoded_twice")]);
    let twice = r#""{\"n\": 5}""#;
    assert_eq!(take("", Some(structured("put", twice))), expected);
    for written in [
        format!("<|tool_call_begin|>functions.put:0<|tool_call_argument_begin|>{twice}<|tool_call_end|>"),
        format!("[TOOL_CALLS]put[ARGS]{twice}"),
    ] {
        assert_eq!(take(&written, None), expected, "{written}");
    }
    // Usual in JSON: the arguments are a string in the API of OpenAI.
    let written = format!("<tool_call>{{\"name\": \"put\", \"arguments\": {twice}}}</tool_call>");
    assert_eq!(take(&written, None), (expected.0, Vec::new()));
}

#[test]
fn a_control_token_after_the_name_is_removed() {
    let expected = (Taken::Accepted(json!({"n": 5})), vec![String::from(": control_token_in_name")]);
    for name in ["put<|channel|>commentary", "finish<|channel|>commentary"] {
        assert_eq!(take("", Some(structured(name, r#"{"n": 5}"#))), expected, "{name}");
        let written = format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": {{\"n\": 5}}}}</tool_call>");
        assert_eq!(take(&written, None), expected, "{name}");
    }
    let unknown = (Taken::Failed(String::from("unknown_tool")), Vec::new());
    assert_eq!(take("", Some(structured("putt<|channel|>commentary", r#"{"n": 5}"#))), unknown);
}

#[test]
fn uncertain_arguments_are_invalid_and_not_changed() {
    for arguments in [
        r#"{"n": "05"}"#,
        r#"{"n": "5", "unknown": 1}"#,
        r#"{"flag": "yes"}"#,
        r#"{"list": "1, 2"}"#,
        "{\"n\": 1, \"text\": \"a\n}",
        r#""\"{}\"""#,
    ] {
        let (taken, repairs) = take("", Some(structured("put", arguments)));
        assert_eq!(
            (taken, repairs.len()),
            (Taken::Failed(String::from("invalid_arguments")), 0),
            "{arguments}"
        );
    }
}

/// The tool, the events and the journal get the repaired arguments. The conversation keeps what the model wrote.
#[test]
fn the_history_keeps_the_arguments_of_the_model() {
    for (journaled, restore) in [(false, false), (true, false), (false, true)] {
        let written = json!({"location": "Paris", "unit": null});
        let call = reply_with("").call("get_weather", written.clone());
        let played = Play { restore, journaled, ..play() }.run(&[call, reply_with("18")]);
        let called = played.events.iter().find_map(|event| match event {
            Event::ToolCall { arguments, .. } => Some(arguments.as_ref()),
            _ => None,
        });
        assert_eq!(called, Some(&json!({"location": "Paris"})));
        let sent = played.history().iter().find_map(|message| match message {
            Message::Assistant { tool_calls, .. } => tool_calls.first(),
            _ => None,
        });
        assert_eq!(sent.unwrap().function.arguments, written.to_string(), "journaled {journaled}");
    }
}
