//! The size of results for the model.

use deftool_chat::Message;
use deftool_chat::request::{Event, OnFailure, StringResults, cut_result};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use serde_json::{Value, json};

use super::play::{Play, play, reply_with, weather};

#[test]
fn a_text_is_cut_at_the_end_of_a_line_or_between_characters() {
    for (text, limit, expected) in [
        ("", 0, ""),
        ("abcd", 4, "abcd"),
        ("abcde", 4, "abcd\n[cut: 4 B of 5 B]"),
        ("aé", 2, "a\n[cut: 1 B of 3 B]"),
        ("éa", 1, "[cut: 0 B of 3 B]"),
        ("aé\nb", 3, "aé\n[cut: 3 B of 5 B]"),
        ("one\ntwo\nthree", 9, "one\ntwo\n[cut: 7 B of 13 B]"),
        ("one\ntwo\nthree", 7, "one\ntwo\n[cut: 7 B of 13 B]"),
        ("one\ntwo\nthrée", 11, "one\ntwo\n[cut: 7 B of 14 B]"),
        // The last line is longer than half of it.
        ("a\nbcdefghij", 8, "a\nbcdefg\n[cut: 8 B of 11 B]"),
        ("abcd\n\n\n", 4, "abcd\n[cut: 4 B of 7 B]"),
        ("abcd\nefghij", 8, "abcd\n[cut: 4 B of 11 B]"),
        ("abcd\nef\nxyz", 7, "abcd\nef\n[cut: 7 B of 11 B]"),
    ] {
        assert_eq!(cut_result(text.to_owned(), limit), expected, "{text:?} at {limit}");
    }
}

#[test]
fn the_last_line_has_both_sizes_which_differ() {
    for (size, limit, expected) in [
        (1_024, 1_023, "[cut: 1023 B of 1 KiB]"),
        (65_537, 65_536, "[cut: 64 KiB of 64.1 KiB]"),
        (3_355_443, 65_536, "[cut: 64 KiB of 3.2 MiB]"),
        (1_048_577, 1_048_000, "[cut: 1023.4 KiB of 1.1 MiB]"),
        (2_000_000, u64::from(u32::MAX), "x"),
    ] {
        let text = cut_result("x".repeat(size), limit);
        let (kept, line) = text.rsplit_once('\n').unwrap_or((&text, "x"));
        assert_eq!((kept.len() as u64, line), (limit.min(size as u64), expected));
    }
}

/// Returns the result of a call in the next request.
fn sent(play: Play, tool: &str) -> String {
    let arguments = if tool == "get_weather" { weather() } else { json!({}) };
    let played = play.run(&[reply_with("").call(tool, arguments), reply_with("x")]);
    match played.history().last() {
        Some(Message::Tool { content, .. }) => content.clone(),
        other => panic!("{other:?}"),
    }
}

/// The worker sends 50 bytes. `get_weather` has a limit of 1,000 bytes of its own.
#[test]
fn a_result_is_cut_at_the_limit_of_its_tool_or_worker() {
    use StringResults::{Json, Raw};
    let a = |count: usize| "a".repeat(count);
    for (tool, strings, result, expected) in [
        ("look", Json, json!(a(48)), format!("\"{}\"", a(48))),
        // With its quotes, it is longer.
        ("look", Json, json!(a(49)), a(49)),
        ("look", Json, json!(a(51)), format!("{}\n[cut: 50 B of 51 B]", a(50))),
        (
            "look",
            Json,
            json!(["b\n".repeat(20), "c"]),
            format!("[\"{}\n[cut: 50 B of 68 B]", "b\\n".repeat(16)),
        ),
        ("look", Raw, json!(a(50)), a(50)),
        ("look", Raw, json!("b\n".repeat(30)), format!("{}b\n[cut: 49 B of 60 B]", "b\n".repeat(24))),
        ("look", Raw, json!(["é".repeat(30)]), format!("[\"{}\n[cut: 50 B of 64 B]", "é".repeat(24))),
        ("look", Raw, json!({"text": a(100)}), format!("{{\"text\":\"{}\n[cut: 50 B of 111 B]", a(41))),
        ("get_weather", Json, json!(a(998)), format!("\"{}\"", a(998))),
        ("get_weather", Raw, json!(a(1_001)), format!("{}\n[cut: 1000 B of 1001 B]", a(1_000))),
    ] {
        for (restore, journaled) in [(false, false), (true, false), (false, true)] {
            let result = result.clone();
            let play = play().with(|config| (config.max_result, config.string_results) = (50, strings));
            let play = play.answering(move |_, _| Ok(result.clone()));
            assert_eq!(sent(Play { restore, journaled, ..play }, tool), expected, "{tool} {strings:?}");
        }
    }
}

#[test]
fn the_message_of_an_error_is_cut() {
    for (kind, handling) in
        [(ToolErrorKind::ErrorResult, OnFailure::Fail), (ToolErrorKind::Script, OnFailure::Report)]
    {
        let play = play().with(|config| (config.max_result, config.on_tool_error) = (50, handling));
        let content = sent(play.answering(move |_, _| Err(ToolError::new(kind, "e".repeat(60)))), "look");
        let message = format!("{}\n[cut: 50 B of 60 B]", "e".repeat(50));
        let content: Value = serde_json::from_str(&content).unwrap();
        assert_eq!(content, json!({"error": {"kind": kind, "message": message}}));
    }
    // The error that ends the request.
    let play = play().with(|config| config.max_result = 50);
    let play = play.answering(|_, _| Err(ToolError::new(ToolErrorKind::Script, "e".repeat(60))));
    let played = play.run(&[reply_with("").call("look", json!({}))]);
    let Some(Message::Tool { content, .. }) = played.conversation.last() else { panic!("{played:?}") };
    assert!(content.contains("e\\n[cut: 50 B of 66 B]"), "{content}");
}

#[test]
fn events_calls_and_signals_are_never_cut() {
    let long = json!({"text": "a".repeat(200)});
    let result = long.clone();
    let play = play().with(|config| config.max_result = 50).answering(move |_, _| Ok(result.clone()));
    let played =
        play.run(&[reply_with("").call("look", long.clone()), reply_with("x").call("finish", long.clone())]);
    let results: Vec<&Value> = played
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ToolFinished { result, .. } => result.as_ref(),
            _ => None,
        })
        .collect();
    assert_eq!(results, [&long]);
    assert_eq!(played.signals(), [("finish", &long)]);
    let calls = serde_json::to_string(&played.messages(1)).unwrap();
    assert!(calls.contains(&serde_json::to_string(&long.to_string()).unwrap()), "{calls}");
}
