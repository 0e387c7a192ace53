//! Reported times, counts and names.

use deftool_chat::request::{Approval, BiosV1, Event, FinalState, INTERRUPTED, Step};
use deftool_chat::{ChatEvent, Message, MessageToolCall, ReplyStatus, ServerError, ServerErrorKind};
use deftool_lang::spec::OnFailure;
use deftool_lang::tool::{ToolError, ToolErrorKind};
use serde_json::{Value, json};

use super::play::{Play, Played, play, reply_with, tools};

/// The wait for the user's answer does not count: the call begins after the answer.
#[test]
fn the_duration_of_an_approved_call_starts_at_its_approval() {
    let tools = tools();
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    run.on_event(ChatEvent::Ended { reply: reply_with("").call("ask", json!({})).reply }, &tools, 100);
    let Step::AnswerCalls(calls) = run.next_step(&tools, &BiosV1) else { panic!() };
    let id = &calls[0].call.id;
    run.on_approval(id, Approval::Allowed, 5_000);
    run.on_tool_result(id, Ok(Value::Null.into()), 5_030);
    let finished = run.take_events().into_iter().find_map(|event| match event {
        Event::ToolFinished { elapsed_ms, .. } => Some(elapsed_ms),
        _ => None,
    });
    assert_eq!(finished, Some(30));
}

#[test]
fn text_is_counted_in_characters() {
    let tools = tools();
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    run.on_event(ChatEvent::Text { text: String::from("é日本") }, &tools, 1);
    assert_eq!(run.status().text_chars, 3);
}

#[test]
fn the_call_that_was_cut_off_is_named() {
    let cut = reply_with("")
        .call("look", json!({}))
        .truncated("get_weather", "{\"loc")
        .status(ReplyStatus::CallTruncated { is_over: true });
    assert!(play().run(&[cut]).failure().2.contains("a call of `get_weather`"));
    let first = reply_with("")
        .truncated("get_weather", "{\"loc")
        .call("look", json!({}))
        .status(ReplyStatus::CallTruncated { is_over: true });
    assert!(play().run(&[first]).failure().2.contains("a call of `get_weather`"));
}

/// Text before a call is stored with that call.
#[test]
fn an_interrupted_turn_only_keeps_its_own_text() {
    let broken = reply_with("It is").status(ReplyStatus::Incomplete { cause: None });
    let played = play().run(&[reply_with("I look.").call("look", json!({})), broken]);
    let content = format!("It is\n\n{INTERRUPTED}");
    let Some(Message::Assistant { content: last, tool_calls, .. }) = played.conversation.last() else {
        panic!()
    };
    assert_eq!((last, tool_calls.as_slice()), (&content, &[][..]));
}

/// Text is only searched for calls if the reply has no structured call, known or unknown.
#[test]
fn text_with_a_structured_unknown_call_is_not_searched_for_calls() {
    let text = "<tool_call>{\"name\": \"finish\", \"arguments\": {}}</tool_call>";
    let played = play().run(&[reply_with(text).call("nothing", json!({}))]);
    assert_eq!(played.failure().1, "unknown_tool");
    assert_eq!((played.signals().len(), played.outcome.text.as_str()), (0, text));
}

/// The position in the script (`details`) is only for the user.
#[test]
fn a_reported_error_reaches_the_model_without_its_details() {
    for path in [None, Some(String::from(".items[2]"))] {
        let error = ToolError {
            path: path.clone(),
            details: Some(String::from("scripts/look.lua:2")),
            ..ToolError::new(ToolErrorKind::Script, "no luck")
        };
        let play = play()
            .with(|config| config.on_tool_error = OnFailure::Report)
            .answering(move |_, _| Err(error.clone()));
        let played = play.run(&[reply_with("").call("look", json!({})), reply_with("x")]);
        let Some(Message::Tool { content, .. }) = played.history().last() else { panic!("{played:?}") };
        let mut expected = json!({"kind": "script", "message": "no luck"});
        if let Some(path) = path {
            expected["path"] = json!(path);
        }
        assert_eq!(serde_json::from_str::<Value>(content).unwrap(), json!({"error": expected}));
    }
}

fn reports() -> Play {
    play().with(|config| config.on_invalid_arguments = OnFailure::Report)
}

/// Returns the calls and the results of the last request, as `name arguments` and the error.
fn reported(played: &Played) -> (String, Vec<String>, Vec<Value>) {
    let (mut text, mut calls, mut results) = (String::new(), Vec::new(), Vec::new());
    for message in played.history() {
        match message {
            Message::Assistant { content, tool_calls, .. } => {
                text.push_str(content);
                let shown =
                    |call: &MessageToolCall| format!("{} {}", call.function.name, call.function.arguments);
                calls.extend(tool_calls.iter().map(shown));
            }
            Message::Tool { content, .. } => results.push(serde_json::from_str(content).unwrap()),
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    (text, calls, results)
}

/// The history shows what the model wrote, and the answer says how to correct it.
#[test]
fn every_call_that_the_model_can_correct_is_reported() {
    let done = || reply_with("done");
    for (reply, text, calls, errors) in [
        (
            reply_with("I look.").call("get_wether", json!({"a": 1})).call("look", json!({})),
            "I look.",
            vec!["get_wether {\"a\":1}", "look {}"],
            vec!["unknown_tool: unknown tool `get_wether`; did you mean `get_weather`?", ""],
        ),
        (
            reply_with("").call("zebra", json!({})),
            "",
            vec!["zebra {}"],
            vec!["unknown_tool: unknown tool `zebra`; known tools: ask, get_weather, look, finish"],
        ),
        // Servers reject such names in a conversation.
        (
            reply_with("").call("a.b c", json!({})),
            "",
            vec!["a_b_c {}"],
            vec!["unknown_tool: unknown tool `a.b c`; known tools: "],
        ),
        (
            reply_with("").call("", json!({"q": 1})),
            "",
            vec!["unnamed_call {\"q\":1}"],
            vec!["unknown_tool: the call has no tool name"],
        ),
        (
            reply_with("").malformed("look", "{oops"),
            "",
            vec!["look {}"],
            vec!["invalid_arguments: look: the arguments are not a JSON object: EOF; received: {oops"],
        ),
        (
            reply_with("A\n<tool_call>{\"name\": \"zebra\", \"arguments\": {\"q\": 1}}</tool_call>"),
            "A\n",
            vec!["zebra {\"q\":1}"],
            vec!["unknown_tool: unknown tool `zebra`"],
        ),
        (
            reply_with("<tool_call>{\"name\": \"look\", \"arguments\": {oops}}</tool_call>"),
            "<tool_call>{\"name\": \"look\", \"arguments\": {oops}}</tool_call>",
            vec!["look {}"],
            vec!["invalid_arguments: a call written as text is malformed"],
        ),
        (
            reply_with("<tool_call>{\"arguments\": {}}</tool_call>"),
            "<tool_call>{\"arguments\": {}}</tool_call>",
            vec!["unnamed_call {}"],
            vec!["invalid_arguments: a call written as text is malformed (missing tool name)"],
        ),
        (
            reply_with(
                "<tool_call>{\"name\": \"look\"}</tool_call>\n<tool_call>{name: look}</tool_call>\n<tool_call>{\"name\": \"ask\"}</tool_call>",
            ),
            "\n<tool_call>{name: look}</tool_call>\n",
            vec!["look {}", "unnamed_call {}", "ask {}"],
            vec!["", "invalid_arguments: a call written as text is malformed", ""],
        ),
    ] {
        for journaled in [false, true] {
            let played = Play { journaled, ..reports() }.run(&[reply.clone(), done()]);
            assert_eq!(played.outcome.state, FinalState::Completed, "{reply:?}");
            let (shown, made, results) = reported(&played);
            assert_eq!((shown.as_str(), made), (text, calls.iter().map(ToString::to_string).collect()));
            assert_eq!(results.len(), errors.len());
            for (result, expected) in results.iter().zip(&errors) {
                let error = &result["error"];
                let found = format!(
                    "{}: {}",
                    error["kind"].as_str().unwrap_or_default(),
                    error["message"].as_str().unwrap_or_default()
                );
                assert!(found.starts_with(expected) || (expected.is_empty() && error.is_null()), "{found}");
            }
            assert_eq!(played.executed.len(), errors.iter().filter(|error| error.is_empty()).count());
        }
    }
}

/// The model cannot correct what the server or the token limit did.
#[test]
fn cut_and_lost_calls_fail_even_if_errors_are_reported() {
    let cut = reply_with("").truncated("look", "{").status(ReplyStatus::CallTruncated { is_over: true });
    assert_eq!(reports().run(&[cut]).failure().1, "call_truncated");
    let mut lost = reply_with("").call("zebra", json!({}));
    lost.reply.lost_frames = 1;
    assert_eq!(reports().run(&[lost]).failure().1, "lost_frame");
}

/// A server that could not parse the call returns its text in an error.
#[test]
fn an_unreadable_failed_generation_is_reported() {
    let text = "<tool_call>{\"name\": \"look\", \"arguments\": {oops}}</tool_call>";
    let error = ServerError {
        code: Some(400),
        failed_generation: Some(text.to_owned()),
        ..ServerError::new(ServerErrorKind::Http, "tool_use_failed")
    };
    let failed = reply_with("").status(ReplyStatus::ServerError { error });
    let played = reports().run(&[failed, reply_with("done")]);
    assert_eq!(reported(&played).0, text);
    assert_eq!(played.outcome.state, FinalState::Completed);
}
