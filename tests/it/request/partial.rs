//! Replies of which a part is missing: lost events, calls that were cut off, calls that never came, and ends from outside
//! in the middle of a reply.

use deftool::chat::{ChatEvent, ReplyStatus};
use deftool::request::{
    BiosV1, Event, FailReason, Failure, FinalState, FinishReason, RequestState, Run, Step,
};
use serde_json::{Value, json};

use super::play::{Played, Script, assert_settled, play, restored, says, tools};

fn lost(mut script: Script) -> Script {
    script.reply.lost_frames = 1;
    script
}

fn finished_by(mut script: Script, reason: &str) -> Script {
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
        says("t").call("look", json!({})),
        says("t").call("look", json!({})).call("finish", json!({})),
        says("t").call("nothing", json!({})),
        says(written),
        finished_by(says("t"), "tool_calls"),
    ] {
        let played = play().run(&[lost(script.clone())]);
        let (reason, kind, detail) = played.failure();
        assert_eq!((reason, kind), (FailReason::ToolParseError, "lost_frame"), "{script:?}");
        assert!(detail.contains("could not be decoded"), "{detail}");
        assert!(played.executed.is_empty() && !played.outcome.text.is_empty(), "{played:?}");
        let exits = script.reply.calls.iter().filter(|call| call.name == "finish").count();
        assert_eq!(played.outcome.signals.len(), exits);
    }
    for script in [says("t"), says("").call("finish", json!({}))] {
        let played = play().run(&[lost(script.clone())]);
        assert_eq!(played.outcome.state, FinalState::Completed, "{script:?}");
    }
}

/// The same for calls written as text, cut or malformed: the last call of each reply is broken.
#[test]
fn a_broken_exit_call_in_text_is_a_signal() {
    let look = "<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>\n";
    for (written, arguments) in [
        ("<tool_call>{\"name\": \"finish\", \"arguments\": {\"n\": ", "{\"n\":"),
        ("<tool_call>{\"name\": \"finish\", \"arguments\": {'n': 1}}</tool_call>", "{'n': 1}}"),
        ("<tool_call>{\"name\": \"finish\"", ""),
        ("<tool_call><function=finish><parameter=n>1", "<parameter=n>1"),
        ("[TOOL_CALLS]finish{\"n\": [", "{\"n\": ["),
        ("<start_function_call>call:finish{n:<escape>a", "n:<escape>a"),
    ] {
        for before in ["", look] {
            let played = play().run(&[says(&format!("{before}{written}")), says("done")]);
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
    // A whole exit call is recorded beside a broken call of another tool, which fails the reply.
    let both = "<tool_call>[{\"name\": \"finish\", \"arguments\": {}}, {\"name\": \"look\", \"argum";
    let played = play().run(&[says(both)]);
    assert_eq!((played.failure().1, played.outcome.signals.len()), ("malformed_call", 1), "{played:?}");
}

#[test]
fn a_cut_exit_call_is_a_signal_and_changes_nothing_else() {
    let over = ReplyStatus::CallTruncated { is_over: true };
    let open = ReplyStatus::CallTruncated { is_over: false };
    for status in [&over, &open] {
        let cut = says("t").call("look", json!({})).truncated("finish", "{\"n\": ").status(status.clone());
        let played = play().run(&[cut, says("done")]);
        assert_eq!(played.executed(), ["look"]);
        assert_eq!(played.outcome.state, FinalState::Completed);
        let signal = serde_json::to_value(&played.outcome.signals[0]).unwrap();
        assert_eq!(
            signal,
            json!({"tool_name": "finish", "arguments": "{\"n\": ", "arguments_error": "EOF", "emitted_at_ms": 10})
        );
    }
    let only = says("t").truncated("finish", "{\"n\": ");
    let played = play().run(&[finished_by(only.clone().status(over.clone()), "length")]);
    assert_eq!(
        (played.outcome.state, played.outcome.finish_reason, played.outcome.signals.len()),
        (FinalState::Completed, FinishReason::MaxTokens, 1)
    );
    // Nothing said that the reply was over.
    let played = play().run(&[only.status(open)]);
    assert_eq!((played.failure().1, played.outcome.signals.len()), ("stream_incomplete", 1));
    // A cut normal call is not made, whatever else there is.
    let normal = says("t").truncated("look", "{").truncated("finish", "{").status(over);
    let played = play().run(&[normal]);
    assert_eq!((played.failure().1, played.outcome.signals.len()), ("call_truncated", 1));
    assert!(played.failure().2.contains("`look`"), "{:?}", played.failure());
}

#[test]
fn a_reported_call_that_never_came_is_a_failure_without_text_and_a_warning_with_it() {
    for reason in ["tool_calls", "function_call"] {
        let played = play().run(&[finished_by(says(" \n"), reason)]);
        let (reason_of_failure, kind, detail) = played.failure();
        assert_eq!((reason_of_failure, kind), (FailReason::UnknownError, "missing_tool_call"), "{detail}");
        let played = play().run(&[finished_by(says("text"), reason)]);
        assert_eq!(played.outcome.state, FinalState::Completed);
        assert_eq!(warnings(&played), ["the server reported a tool call and sent none"]);
        let played = play().run(&[finished_by(says("").call("finish", json!({})), reason)]);
        assert_eq!((played.outcome.state, warnings(&played).len()), (FinalState::Completed, 0));
    }
}

#[test]
fn a_content_filter_is_kept_as_the_finish_reason() {
    let played = play().run(&[finished_by(says("Once"), "content_filter")]);
    let outcome = serde_json::to_value(&played.outcome).unwrap();
    assert_eq!(
        (&outcome["state"], &outcome["finish_reason"]),
        (&json!("completed"), &json!("content_filter"))
    );
    assert_eq!(warnings(&played), ["the server's content filter ended the reply"]);
}

fn streaming(text: &str) -> Run {
    let mut run = play().start();
    let Step::Stream(_) = run.next_step(&tools(), &BiosV1) else { panic!("a turn begins") };
    run.on_event(ChatEvent::Text { text: text.to_owned() }, &tools(), 5);
    run
}

#[test]
fn a_request_that_is_closed_records_the_exit_calls_that_came() {
    let stall = || Failure::new(FailReason::StallTimeout, "stall_timeout", "no byte");
    let status = ReplyStatus::Incomplete { cause: Some(String::from("not read any further")) };
    let came = says("").call("finish", json!({"n": 1})).call("look", json!({})).status(status);
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
    assert_eq!(outcome.fail_reason, Some(FailReason::StallTimeout), "the first failure counts");
    assert_eq!(outcome.text, "half");
    let signals: Vec<&Value> = outcome.signals.iter().map(|signal| &signal.arguments).collect();
    assert_eq!(signals, [&json!({"n": 1})]);
    run.take_events();
    assert_settled(&mut run, &tools);

    // Where no reply is coming there is nothing to wait for, and a driver that is lost need not hand anything in.
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
fn written_exit_calls_of_a_closed_reply_are_recorded_too() {
    let call = "<tool_call>\n{\"name\": \"finish\", \"arguments\": {\"n\": 1}}\n</tool_call>\n";
    let loops = "the same line, again and again\n".repeat(40);
    let played = play().run(&[says(&format!("{call}{loops}")).cut(20)]);
    assert_eq!(played.failure().0, FailReason::RepeatedLineLoop);
    assert_eq!(played.signals(), [("finish", &json!({"n": 1}))]);
    assert!(!played.outcome.text.contains("tool_call"), "{}", played.outcome.text);
}
