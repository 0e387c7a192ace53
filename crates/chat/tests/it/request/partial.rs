//! Incomplete replies: lost events, calls that are cut off or missing, and failures from outside during a reply.

use deftool_chat::request::{
    BiosV1, Event, FailReason, Failure, FinalState, FinishReason, RequestState, Run, Step,
};
use deftool_chat::{ChatEvent, Message, ReplyStatus};
use serde_json::{Value, json};

use super::play::{Played, ScriptedReply, assert_final, play, reply_with, restored, tools};

fn lost(mut script: ScriptedReply) -> ScriptedReply {
    script.reply.lost_frames = 1;
    script
}

fn finished_by(mut script: ScriptedReply, reason: &str) -> ScriptedReply {
    script.reply.finish_reason = Some(reason.to_owned());
    script
}

fn warnings(played: &Played) -> Vec<&str> {
    played
        .events
        .iter()
        .filter_map(
            |event| if let Event::Warning { message } = event { Some(message.as_str()) } else { None },
        )
        .collect()
}

#[test]
fn no_call_runs_after_a_lost_event() {
    let written = "<tool_call>\n{\"name\": \"look\", \"arguments\": {}}\n</tool_call>";
    for script in [
        reply_with("t").call("look", json!({})),
        reply_with("t").call("look", json!({})).call("finish", json!({})),
        reply_with("t").call("nothing", json!({})),
        reply_with(written),
        finished_by(reply_with("t"), "tool_calls"),
    ] {
        let played = play().run(&[lost(script.clone())]);
        let (reason, kind, detail) = played.failure();
        assert_eq!((reason, kind), (FailReason::ToolParseError, "lost_frame"), "{script:?}");
        assert!(detail.contains("could not be decoded"), "{detail}");
        assert!(played.executed.is_empty() && !played.outcome.text.is_empty(), "{played:?}");
        let exits = script.reply.calls.iter().filter(|call| call.name == "finish").count();
        assert_eq!(played.outcome.signals.len(), exits);
    }
    for script in [reply_with("t"), reply_with("").call("finish", json!({}))] {
        let played = play().run(&[lost(script.clone())]);
        assert_eq!(played.outcome.state, FinalState::Completed, "{script:?}");
    }
}

/// The same for calls written as text. The last call of each reply is truncated or malformed.
#[test]
fn an_invalid_exit_call_in_text_is_a_signal() {
    let look = "<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>\n";
    for (written, arguments) in [
        ("<tool_call>{\"name\": \"finish\", \"arguments\": {\"n\": ", "{\"n\":"),
        ("<tool_call>{\"name\": \"finish\", \"arguments\": {n: 1}}</tool_call>", "{n: 1}}"),
        ("<tool_call>{\"name\": \"finish\"", ""),
        ("<tool_call><function=finish><parameter=n>1", "<parameter=n>1"),
        ("[TOOL_CALLS]finish{\"n\": [", "{\"n\": ["),
        ("<start_function_call>call:finish{n:<escape>a", "{n:<escape>a"),
    ] {
        for before in ["", look] {
            let played = play().run(&[reply_with(&format!("{before}{written}")), reply_with("done")]);
            assert_eq!(played.outcome.state, FinalState::Completed, "{before}{written}: {played:?}");
            assert_eq!(played.executed().len(), usize::from(!before.is_empty()), "{before}{written}");
            let [signal] = played.outcome.signals.as_slice() else { panic!("{written}: {played:?}") };
            assert_eq!(
                (signal.tool_name.as_str(), &signal.arguments),
                ("finish", &json!(arguments)),
                "{written}"
            );
            assert!(
                signal.arguments_error.as_deref().is_some_and(|why| why.starts_with("the call ")),
                "{signal:?}"
            );
            assert!(played.outcome.text.contains(written), "{played:?}");
        }
    }
    // A complete exit call is recorded although an invalid call of another tool fails the reply.
    let both = "<tool_call>[{\"name\": \"finish\", \"arguments\": {}}, {\"name\": \"look\", \"argum";
    let played = play().run(&[reply_with(both)]);
    assert_eq!((played.failure().1, played.outcome.signals.len()), ("malformed_call", 1), "{played:?}");
}

#[test]
fn an_exit_call_that_is_cut_off_is_a_signal_and_has_no_other_effect() {
    let at_end = ReplyStatus::CallTruncated { is_over: true };
    let open = ReplyStatus::CallTruncated { is_over: false };
    let cut = reply_with("t").call("look", json!({})).truncated("finish", "{\"n\": ");
    let played = play().run(&[cut.clone().status(at_end.clone()), reply_with("done")]);
    assert_eq!(played.executed(), ["look"]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    let signal = serde_json::to_value(&played.outcome.signals[0]).unwrap();
    assert_eq!(
        signal,
        json!({"tool_name": "finish", "arguments": "{\"n\": ", "arguments_error": "EOF", "emitted_at_ms": 10})
    );
    // The end of the reply was not reported.
    let played = play().run(&[cut.status(open.clone())]);
    assert_eq!((played.failure().1, played.outcome.signals.len()), ("stream_incomplete", 1));
    assert!(played.executed().is_empty());
    let only = reply_with("t").truncated("finish", "{\"n\": ");
    let played = play().run(&[finished_by(only.clone().status(at_end.clone()), "length")]);
    assert_eq!(
        (played.outcome.state, played.outcome.finish_reason, played.outcome.signals.len()),
        (FinalState::Completed, FinishReason::MaxTokens, 1)
    );
    let played = play().run(&[only.status(open)]);
    assert_eq!((played.failure().1, played.outcome.signals.len()), ("stream_incomplete", 1));
    // A normal call that is cut off is not executed, even if the reply has other calls.
    let normal = reply_with("t").truncated("look", "{").truncated("finish", "{").status(at_end);
    let played = play().run(&[normal]);
    assert_eq!((played.failure().1, played.outcome.signals.len()), ("call_truncated", 1));
    assert!(played.failure().2.contains("`look`"), "{:?}", played.failure());
}

#[test]
fn a_missing_reported_call_fails_without_text_and_warns_with_text() {
    for reason in ["tool_calls", "function_call"] {
        let empty = || finished_by(reply_with(" \n"), reason);
        let played = play().run(&[empty(), empty()]);
        let (reason_of_failure, kind, detail) = played.failure();
        assert_eq!((reason_of_failure, kind), (FailReason::UnknownError, "missing_tool_call"), "{detail}");
        let played = play().run(&[finished_by(reply_with("text"), reason)]);
        assert_eq!(played.outcome.state, FinalState::Completed);
        assert_eq!(warnings(&played), ["the server reported a tool call but did not send one"]);
        let played = play().run(&[finished_by(reply_with("").call("finish", json!({})), reason)]);
        assert_eq!((played.outcome.state, warnings(&played).len()), (FinalState::Completed, 0));
    }
}

/// Anthropic documents empty replies after results; other servers send them under load.
#[test]
fn an_empty_reply_is_requested_once_more() {
    let empty = |reason: &str| finished_by(reply_with(" \n"), reason);
    let thought = || ScriptedReply { reasoning: String::from("Hm."), ..reply_with("") };
    let call = || reply_with("").call("look", json!({}));
    let signal = || reply_with("").call("finish", json!({}));
    let asked = "the reply contains neither text nor a call; it is requested once more";
    let twice = "the model answered with neither text nor a call, twice";
    for (replies, end, warned) in [
        (vec![empty("stop"), reply_with("done")], "done", &[asked][..]),
        (vec![empty("tool_calls"), reply_with("done")], "done", &[asked]),
        (vec![thought(), reply_with("done")], "done", &[asked]),
        (vec![empty("stop"), empty("stop")], "empty_stream", &[asked]),
        (vec![thought(), thought()], "", &[asked, twice]),
        (vec![thought(), empty("tool_calls")], "missing_tool_call", &[asked]),
        (vec![empty("stop"), empty("tool_calls")], "missing_tool_call", &[asked]),
        (vec![call(), empty("stop"), reply_with("done")], "done", &[asked]),
        (vec![call(), empty("stop"), call(), empty("stop"), reply_with("done")], "done", &[asked, asked]),
        (vec![call(), empty("stop"), empty("tool_calls")], "", &[asked, twice]),
        (vec![call(), thought(), thought()], "", &[asked, twice]),
        (vec![signal()], "", &[]),
        (vec![call(), signal()], "", &[]),
        // Not the end of an answer.
        (vec![empty("length")], "", &[]),
    ] {
        let turns = replies.len();
        let played = play().run(&replies);
        let outcome = &played.outcome;
        let found = outcome.kind.clone().unwrap_or_else(|| outcome.text.trim().to_owned());
        assert_eq!((found.as_str(), warnings(&played).as_slice()), (end, warned));
        assert_eq!(played.requests.len(), turns, "{end}");
        let is_sent = |message: &Message| match message {
            Message::Assistant { content, tool_calls, .. } => !content.is_empty() || !tool_calls.is_empty(),
            _ => true,
        };
        assert!(played.last_messages.iter().all(is_sent), "{:?}", played.last_messages);
    }
}

/// Some servers send the text of a call beside the call; others parse only the first of two.
#[test]
fn a_call_written_beside_tool_calls_is_not_made_and_warns_unless_it_repeats_one() {
    for (written, expected) in [
        ("<tool_call>{\"name\": \"look\", \"arguments\": {\"n\": 1}}</tool_call>", 0),
        ("<tool_call>{\"name\": \"look\", \"arguments\": {\"n\": 2}}</tool_call>", 1),
        ("<tool_call>{\"name\": \"get_weather\", \"arguments\": {</tool_call>", 1),
        ("<tool_call>{\"name\": \"look\", \"arguments\": {</tool_call>", 0),
    ] {
        let reply = reply_with(written).call("look", json!({"n": 1}));
        let played = play().run(&[reply, reply_with("done")]);
        assert_eq!(played.executed(), ["look"], "{written}");
        assert_eq!(warnings(&played).len(), expected, "{written}: {:?}", warnings(&played));
        assert!(played.outcome.text.contains("<tool_call>"), "{written}");
    }
}

#[test]
fn a_content_filter_is_kept_as_the_finish_reason() {
    let played = play().run(&[finished_by(reply_with("Once"), "content_filter")]);
    let outcome = serde_json::to_value(&played.outcome).unwrap();
    assert_eq!(
        (&outcome["state"], &outcome["finish_reason"]),
        (&json!("completed"), &json!("content_filter"))
    );
    assert_eq!(warnings(&played), ["the server's content filter ended the reply"]);
}

/// Calls, complete or cut off, and calls written as text. Signals are recorded.
#[test]
fn calls_of_a_filtered_reply_are_not_made() {
    let written = "<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>";
    for (reply, signals) in [
        (reply_with("Once").call("look", json!({})), 0),
        (reply_with("Once").call("look", json!({})).call("finish", json!({})), 1),
        (reply_with("Once").call("unknown", json!({})), 0),
        (
            reply_with("Once")
                .truncated("look", "{\"n\":")
                .status(ReplyStatus::CallTruncated { is_over: true }),
            0,
        ),
        (reply_with(written), 0),
        (reply_with(written).call("look", json!({})), 0),
    ] {
        let played = play().run(&[finished_by(reply, "refusal")]);
        let outcome = &played.outcome;
        assert_eq!(
            (outcome.state, outcome.finish_reason),
            (FinalState::Completed, FinishReason::ContentFilter)
        );
        assert_eq!((played.executed().len(), outcome.signals.len()), (0, signals));
        assert_eq!(warnings(&played), ["the server's content filter ended the reply: `refusal`"]);
    }
}

fn streaming(text: &str) -> Run {
    let mut run = play().start();
    let Step::Stream(_) = run.next_step(&tools(), &BiosV1) else { panic!("expected a turn") };
    run.on_event(ChatEvent::Text { text: text.to_owned() }, &tools(), 5);
    run
}

#[test]
fn a_closed_request_records_received_exit_calls() {
    let stall = || Failure::new(FailReason::StallTimeout, "stall_timeout", "no byte");
    let status = ReplyStatus::Incomplete { cause: Some(String::from("not read any further")) };
    let came = reply_with("").call("finish", json!({"n": 1})).call("look", json!({})).status(status);
    let tools = tools();
    let mut run = streaming("half");
    run.close(stall(), 7);
    assert!(run.is_closing() && run.outcome().is_none());
    assert_eq!(run.status().state, RequestState::Running);
    assert_eq!(run.next_step(&tools, &BiosV1), Step::Wait);
    let mut run = restored(&run);
    run.on_event(ChatEvent::Text { text: String::from(" late") }, &tools, 8);
    run.close(Failure::new(FailReason::Canceled, "", ""), 8);
    run.on_event(ChatEvent::Ended { reply: came.reply }, &tools, 9);
    let outcome = run.outcome().unwrap().clone();
    assert_eq!(outcome.fail_reason, Some(FailReason::StallTimeout), "the first failure is kept");
    assert_eq!(outcome.text, "half");
    let signals: Vec<&Value> = outcome.signals.iter().map(|signal| &signal.arguments).collect();
    assert_eq!(signals, [&json!({"n": 1})]);
    run.take_events();
    assert_final(&mut run, &tools);

    // If no reply is being received, the request fails immediately. A driver that lost the server need not pass the
    // end.
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    run.close(stall(), 7);
    assert_eq!(run.outcome().unwrap().fail_reason, Some(FailReason::StallTimeout));
    let mut run = streaming("half");
    run.close(stall(), 7);
    run.fail(Failure::new(FailReason::UnknownError, "internal", "lost"), 8);
    assert_eq!(run.outcome().unwrap().fail_reason, Some(FailReason::StallTimeout));
}

#[test]
fn exit_calls_written_as_text_in_a_closed_reply_are_recorded() {
    let call = "<tool_call>\n{\"name\": \"finish\", \"arguments\": {\"n\": 1}}\n</tool_call>\n";
    let call = format!("{call}<|im_end|>\n<|im_start|>user\n");
    let loops = "the same line, again and again\n".repeat(40);
    let played = play().run(&[reply_with(&format!("{call}{loops}")).cut(20)]);
    assert_eq!(played.failure().0, FailReason::RepeatedLineLoop);
    assert_eq!(played.signals(), [("finish", &json!({"n": 1}))]);
    assert!(!played.outcome.text.contains("tool_call"), "{}", played.outcome.text);
}
