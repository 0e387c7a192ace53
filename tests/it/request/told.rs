//! What can be told of a request: times, counts, names.

use deftool::chat::{ChatEvent, Message, ReplyStatus};
use deftool::request::{Approval, BiosV1, Event, INTERRUPTED, Step};
use deftool::spec::OnFailure;
use deftool::tool::{ToolError, ToolErrorKind};
use serde_json::{Value, json};

use super::play::{play, says, tools};

/// A person's answer takes as long as it takes; the call begins with it.
#[test]
fn a_call_that_was_asked_about_is_timed_from_its_approval() {
    let tools = tools();
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    run.on_event(ChatEvent::Ended { reply: says("").call("ask", json!({})).reply }, &tools, 100);
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
fn the_call_that_was_cut_is_named() {
    let cut = says("")
        .call("look", json!({}))
        .truncated("get_weather", "{\"loc")
        .status(ReplyStatus::CallTruncated { is_over: true });
    assert!(play().run(&[cut]).failure().2.contains("a call of `get_weather`"));
    let first = says("")
        .truncated("get_weather", "{\"loc")
        .call("look", json!({}))
        .status(ReplyStatus::CallTruncated { is_over: true });
    assert!(play().run(&[first]).failure().2.contains("a call of `get_weather`"));
}

/// What was said before a call stands beside that call.
#[test]
fn an_interrupted_turn_leaves_its_own_words_only() {
    let broken = says("It is").status(ReplyStatus::Incomplete { cause: None });
    let played = play().run(&[says("I look.").call("look", json!({})), broken]);
    let content = format!("It is\n\n{INTERRUPTED}");
    assert_eq!(played.conversation.last(), Some(&Message::Assistant { content, tool_calls: Vec::new() }));
}

/// The text of a reply is read for calls only where it has no structured one, known or not.
#[test]
fn beside_a_structured_call_of_no_tool_text_stays_text() {
    let text = "<tool_call>{\"name\": \"finish\", \"arguments\": {}}</tool_call>";
    let played = play().run(&[says(text).call("nothing", json!({}))]);
    assert_eq!(played.failure().1, "unknown_tool");
    assert_eq!((played.signals().len(), played.outcome.text.as_str()), (0, text));
}

/// Where in a script it failed is for a person.
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
        let played = play.run(&[says("").call("look", json!({})), says("x")]);
        let Some(Message::Tool { content, .. }) = played.history().last() else { panic!("{played:?}") };
        let mut told = json!({"kind": "script", "message": "no luck"});
        if let Some(path) = path {
            told["path"] = json!(path);
        }
        assert_eq!(serde_json::from_str::<Value>(content).unwrap(), json!({"error": told}));
    }
}
