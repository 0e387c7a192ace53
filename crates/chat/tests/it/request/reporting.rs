//! Reported times, counts and names.

use deftool_chat::request::{Approval, BiosV1, Event, INTERRUPTED, Step};
use deftool_chat::{ChatEvent, Message, ReplyStatus};
use deftool_lang::spec::OnFailure;
use deftool_lang::tool::{ToolError, ToolErrorKind};
use serde_json::{Value, json};

use super::play::{play, reply_with, tools};

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
    run.on_tool_result(id, Ok(Value::Null), 5_030);
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
    assert_eq!(
        played.conversation.last(),
        Some(&Message::Assistant { content, tool_calls: Vec::new(), received: None })
    );
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
