//! Exit calls in streams: invalid arguments, the time of each signal, and replies that end after one.

use std::sync::Arc;

use deftool_chat::request::{BiosV1, FailReason, FinalState, Run, Signal};
use deftool_chat::{Api, StreamDecoder, TransportEnd};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use serde_json::{Value, json};

use super::play::{definition, play};

const DONE: &str = "data: [DONE]\n\n";

/// The exit tool `submit`, which needs a number, and the normal tool `look`.
fn tools() -> ToolSet {
    let submit = json!({
        "type": "object",
        "properties": {"total": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["total"]
    });
    let entry = |kind, name: &str, parameters: &Value| {
        Arc::new(ToolEntry::new(kind, definition(name, parameters), None).unwrap())
    };
    ToolSet::new([
        entry(ToolKind::Exit, "submit", &submit),
        entry(ToolKind::Normal, "look", &json!({"type": "object"})),
    ])
}

/// Plays the body of one reply, in reads with their times. The body ends at 100.
fn stream(api: Api, reads: &[(u64, String)]) -> Run {
    let tools = tools();
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    let mut decoder = StreamDecoder::new(api, tools.iter().map(|tool| tool.name.clone()));
    let mut events = Vec::new();
    for (at_ms, read) in reads {
        decoder.feed(read.as_bytes(), &mut events);
        events.drain(..).for_each(|event| run.on_event(event, &tools, *at_ms));
    }
    decoder.finish(TransportEnd::Clean, &mut events);
    events.drain(..).for_each(|event| run.on_event(event, &tools, 100));
    run
}

fn delta(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn text(text: &str) -> String {
    delta(&json!({"content": text}))
}

fn call(index: usize, name: &str, arguments: &str) -> String {
    let function = json!({"name": name, "arguments": arguments});
    delta(&json!({"tool_calls": [{"index": index, "function": function}]}))
}

fn signals(run: &Run) -> Vec<(&Value, Option<&str>)> {
    run.signals().iter().map(|signal| (&signal.arguments, signal.arguments_error.as_deref())).collect()
}

#[test]
fn invalid_exit_arguments_are_marked_and_do_not_affect_the_outcome() {
    for (arguments, error) in [
        (json!({"total": 5}), None),
        (json!({"total": "five"}), Some("submit.total: ")),
        (json!({"total": "five", "note": 1}), Some("submit.note: ")),
        (json!({}), Some("submit")),
    ] {
        let structured = [call(0, "submit", &arguments.to_string()), DONE.to_owned()].concat();
        let written = json!({"name": "submit", "arguments": arguments});
        let written = [text(&format!("<tool_call>{written}</tool_call>")), DONE.to_owned()].concat();
        for body in [structured, written] {
            let run = stream(Api::ChatCompletions, &[(10, body)]);
            let [(recorded, found)] = signals(&run)[..] else { panic!("{:?}", run.signals()) };
            assert_eq!(recorded, &arguments);
            assert_eq!(found.is_some(), error.is_some(), "{arguments}: {found:?}");
            assert!(found.unwrap_or_default().contains(error.unwrap_or_default()), "{arguments}: {found:?}");
            assert_eq!(run.outcome().unwrap().state, FinalState::Completed, "{arguments}");
        }
    }
    let malformed = [call(0, "submit", "{\"total\": oops}"), DONE.to_owned()].concat();
    let run = stream(Api::ChatCompletions, &[(10, malformed)]);
    assert_eq!(signals(&run)[0].0, &json!("{\"total\": oops}"));
    assert!(signals(&run)[0].1.is_some());
    // A recording without the member is readable.
    let old = json!({"tool_name": "submit", "arguments": {"total": "five"}, "emitted_at_ms": 1});
    assert_eq!(serde_json::from_value::<Signal>(old).unwrap().arguments_error, None);
}

#[test]
fn a_signal_has_the_time_when_its_call_was_complete() {
    let emitted = |api, reads: &[(u64, String)]| {
        let run = stream(api, reads);
        run.signals().iter().map(|signal| signal.emitted_at_ms).collect::<Vec<u64>>()
    };
    let chat = |reads: &[(u64, String)]| emitted(Api::ChatCompletions, reads);
    let end = || (90, DONE.to_owned());
    // Two calls, the second in pieces, then text.
    let second = delta(&json!({"tool_calls": [{"index": 1, "function": {"arguments": "l\": 2}"}}]}));
    let reads = [
        (10, call(0, "submit", "{\"total\": 1}")),
        (20, call(1, "submit", "{\"tota")),
        (30, second),
        (60, text("More.")),
        end(),
    ];
    assert_eq!(chat(&reads), [10, 30]);
    // A repetition of the name does not change the time.
    let name = delta(&json!({"tool_calls": [{"index": 0, "function": {"name": "submit", "arguments": ""}}]}));
    assert_eq!(chat(&[(10, call(0, "submit", "{\"total\": 1}")), (50, name), end()]), [10]);
    // A repeated call is dropped. The next one keeps its own time.
    let with_id = |index: usize, id: &str, arguments: &str| {
        let function = json!({"name": "submit", "arguments": arguments});
        delta(&json!({"tool_calls": [{"index": index, "id": id, "function": function}]}))
    };
    let reads = [
        (10, with_id(0, "a", "{\"total\": 1}")),
        (20, with_id(1, "a", "{\"total\": 1}")),
        (30, with_id(2, "b", "{\"total\": 2}")),
        end(),
    ];
    assert_eq!(chat(&reads), [10, 30]);
    // Calls written as text, the second in pieces.
    let written = "<tool_call>{\"name\": \"submit\", \"arguments\": {\"total\": 1}}</tool_call>";
    let (begin, rest) = written.split_at(30);
    let reads = [(10, text(written)), (20, text(begin)), (40, text(rest)), (60, text("\n")), end()];
    assert_eq!(chat(&reads), [10, 40]);
    // llama.cpp repeats all items at the end.
    let event = |event: Value| format!("data: {event}\n\n");
    let item = |arguments: &str| json!({"type": "function_call", "call_id": "c", "name": "submit", "arguments": arguments});
    let whole = "{\"total\": 1}";
    let reads = [
        (10, event(json!({"type": "response.output_item.added", "item": item("")}))),
        (20, event(json!({"type": "response.function_call_arguments.delta", "delta": whole}))),
        (60, event(json!({"type": "response.output_text.delta", "delta": "More."}))),
        (80, event(json!({"type": "response.output_item.done", "item": item(whole)}))),
        (90, event(json!({"type": "response.completed", "response": {"output": [item(whole)]}}))),
    ];
    assert_eq!(emitted(Api::Responses, &reads), [20]);
}

#[test]
fn a_call_does_not_end_a_reply() {
    let exit = || call(0, "submit", "{\"total\": 1}");
    for body in [
        [text("Half"), exit(), text(" an answer")].concat(),
        [text("Half"), exit()].concat(),
        [text("Half"), call(1, "look", "{}"), exit()].concat(),
    ] {
        let run = stream(Api::ChatCompletions, &[(10, body.clone())]);
        let outcome = run.outcome().unwrap();
        assert_eq!(
            (outcome.fail_reason, outcome.kind.as_deref()),
            (Some(FailReason::UnknownError), Some("stream_incomplete")),
            "{body}"
        );
        assert!(outcome.text.starts_with("Half"), "{body}");
        assert_eq!(signals(&run), [(&json!({"total": 1}), None)], "{body}");
        let run = stream(Api::ChatCompletions, &[(10, body.clone() + DONE)]);
        let is_calling = body.contains("look");
        assert_eq!(run.outcome().is_none(), is_calling, "{body}");
        assert!(is_calling || run.outcome().unwrap().state == FinalState::Completed, "{body}");
    }
}
