//! Budget, signals, failures, external ends.

use deftool_chat::request::{
    BiosV1, BudgetUnit, Event, FailReason, Failure, FinalState, FinishReason, OnFailure, RequestOptions,
    RequestState, Run, RunStart, Step,
};
use deftool_chat::{ChatEvent, ChatRequest, Message, ReplyStatus, ServerError, ServerErrorKind, Usage};
use deftool_lang::schema::ToolSet;
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_test_support::step;
use serde_json::{Value, json};

use super::play::{assert_final, plain, play, reply_with, tools, user, weather};

#[test]
fn a_plain_answer_completes() {
    let played = play().run(&[reply_with("Hello.")]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert_eq!(played.outcome.finish_reason, FinishReason::Stop);
    assert_eq!(played.outcome.text, "Hello.");
    let finished = serde_json::to_value(played.events.last().unwrap()).unwrap();
    assert_eq!(
        finished,
        json!({"type": "finished", "state": "completed", "finish_reason": "stop", "text": "Hello.", "signals": [],
               "first_token_ms": 10, "tool_iterations": 0})
    );
}

#[test]
fn the_finished_event_of_a_failure_has_all_members() {
    let mut script =
        reply_with("Half").call("finish", json!({"a": 1})).status(ReplyStatus::Incomplete { cause: None });
    script.reply.usage = Some(Usage { prompt_tokens: 3, completion_tokens: 4, ..Usage::default() });
    let played = play().run(&[script]);
    assert_eq!(
        serde_json::to_value(played.events.last().unwrap()).unwrap(),
        json!({"type": "finished", "state": "failed", "finish_reason": "failed", "fail_reason": "unknown_error",
               "kind": "stream_incomplete",
               "detail": "the stream ended before the server reported the end of the reply",
               "text": "Half", "signals": [{"tool_name": "finish", "arguments": {"a": 1}, "emitted_at_ms": 10}],
               "usage": {"prompt_tokens": 3, "completion_tokens": 4}, "first_token_ms": 10, "tool_iterations": 0})
    );
}

#[test]
fn a_call_runs_and_its_result_is_sent_to_the_model() {
    let played =
        play().run(&[reply_with("I look. ").call("get_weather", weather()), reply_with("18 degrees.")]);
    assert_eq!(played.outcome.text, "I look. 18 degrees.");
    assert_eq!(played.outcome.tool_iterations, 1);
    let [
        ..,
        Message::Assistant { content, tool_calls, .. },
        Message::Tool { tool_call_id, content: result, .. },
    ] = played.history()
    else {
        panic!("{:?}", played.history())
    };
    assert_eq!(content, "I look. ");
    assert_eq!(tool_calls[0].function.arguments, r#"{"location":"Paris"}"#);
    assert_eq!(&tool_calls[0].id, tool_call_id);
    assert_eq!(result, r#"{"temperature":18}"#);
    let kinds: Vec<String> = played
        .events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        [
            "submitted",
            "turn_started",
            "text",
            "tool_call",
            "tool_started",
            "tool_finished",
            "budget",
            "turn_started",
            "text",
            "finished"
        ]
    );
}

#[test]
fn exit_calls_are_signals_in_any_order_and_not_in_the_history() {
    let played = play().run(&[
        reply_with("")
            .call("finish", json!({"n": 1}))
            .call("look", json!({}))
            .malformed("finish", "{\"n\": ")
            .call("get_weather", weather()),
        reply_with("done"),
    ]);
    assert_eq!(played.signals(), [("finish", &json!({"n": 1})), ("finish", &json!("{\"n\": "))]);
    assert_eq!(played.executed(), ["look", "get_weather"]);
    assert_eq!(played.outcome.state, FinalState::Completed);
}

#[test]
fn a_reply_with_only_exit_calls_completes_and_is_free() {
    let played =
        play().with(|config| config.tool_budget = 0).run(&[reply_with("ok").call("finish", json!({}))]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert_eq!(played.outcome.signals.len(), 1);
    assert_eq!(played.requests.len(), 1);
}

#[test]
fn signals_are_recorded_before_the_reply_fails() {
    for failing in [
        reply_with("t").call("nothing", json!({})).call("finish", json!({})),
        reply_with("t").call("get_weather", json!({})).call("finish", json!({})),
        reply_with("t")
            .truncated("look", "{")
            .call("finish", json!({}))
            .status(ReplyStatus::CallTruncated { is_over: true }),
        reply_with("t").call("finish", json!({})).status(ReplyStatus::Incomplete { cause: None }),
        reply_with(&"the same line, again and again\nt\n".repeat(40)).call("finish", json!({})),
    ] {
        let played = play().run(std::slice::from_ref(&failing));
        assert_eq!(played.outcome.state, FinalState::Failed, "{failing:?}");
        assert_eq!(played.outcome.signals.len(), 1, "{failing:?}");
        assert!(played.outcome.text.contains('t'), "output is kept");
    }
    // A call that the server could not parse is returned as text, and that text repeats itself.
    let looping = ServerError {
        failed_generation: Some("the same line, again and again\n".repeat(40)),
        ..ServerError::new(ServerErrorKind::Server, "it does not parse")
    };
    let failing =
        reply_with("t").call("finish", json!({})).status(ReplyStatus::ServerError { error: looping });
    let played = play().run(&[failing]);
    assert_eq!(played.failure().1, "server_error");
    assert_eq!(played.outcome.signals.len(), 1);
    assert!(played.outcome.text.contains("again and again"));
}

#[test]
fn an_unknown_name_fails_before_anything_runs() {
    let played = play().run(&[reply_with("hm").call("look", json!({})).call("nothing", json!({}))]);
    assert_eq!(
        played.failure(),
        (FailReason::ToolParseError, "unknown_tool", "the model called an unknown tool: `nothing`")
    );
    assert!(played.executed.is_empty());
    assert_eq!(played.outcome.text, "hm");
}

#[test]
fn every_violation_of_every_call_is_reported_and_nothing_runs() {
    let played = play().run(&[reply_with("")
        .call("look", json!({}))
        .call("get_weather", json!({"unit": "kelvin", "x": 1}))
        .malformed("look", "{oops")]);
    let (reason, kind, detail) = played.failure();
    assert_eq!((reason, kind), (FailReason::ToolParseError, "invalid_arguments"));
    assert_eq!(detail.lines().count(), 4, "{detail}");
    for part in [
        "get_weather.unit: ",
        "get_weather: ",
        "location",
        "'x'",
        "look: the arguments are not a JSON object",
    ] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
    assert!(played.executed.is_empty());
}

#[test]
fn replies_use_up_the_budget_and_then_fail() {
    let played = play()
        .with(|config| config.tool_budget = 2)
        .run(&[reply_with("a").call("look", json!({})).call("look", json!({})).call("look", json!({}))]);
    let detail = "tool budget exhausted: 2 iterations (the worker's :tool-budget)";
    assert_eq!(played.failure(), (FailReason::ToolExecutionError, "budget_exhausted", detail));
    assert_eq!(played.executed.len(), 6);
    assert_eq!(played.outcome.tool_iterations, 2);
    assert_eq!(played.outcome.text, "aaa");
}

#[test]
fn an_exhausted_budget_is_reported_before_invalid_arguments() {
    let played =
        play().with(|config| config.tool_budget = 0).run(&[reply_with("").call("get_weather", json!({}))]);
    assert_eq!(played.failure().1, "budget_exhausted");
}

#[test]
fn a_budget_of_calls_runs_at_most_the_remaining_number() {
    let played = play()
        .with(|config| (config.tool_budget, config.budget_unit) = (3, BudgetUnit::Call))
        .run(&[reply_with("").call("look", json!({})).call("look", json!({}))]);
    assert_eq!(played.executed.len(), 3);
    assert_eq!(played.failure().1, "budget_exhausted");
    let left: Vec<u32> = played
        .events
        .iter()
        .filter_map(|event| if let Event::Budget { left, .. } = event { Some(*left) } else { None })
        .collect();
    assert_eq!(left, [2, 1, 0]);
}

#[test]
fn a_budget_of_calls_validates_all_of_them_first() {
    let played = play()
        .with(|config| (config.tool_budget, config.budget_unit) = (1, BudgetUnit::Call))
        .run(&[reply_with("").call("look", json!({})).call("get_weather", json!({}))]);
    assert_eq!(played.failure().1, "invalid_arguments");
    assert!(played.executed.is_empty());
}

#[test]
fn a_final_turn_offers_exit_tools_only() {
    let names = |request: &ChatRequest| -> Vec<String> {
        request.tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let once = play().with(|config| (config.tool_budget, config.final_turn) = (1, true));
    let played =
        once.run(&[reply_with("").call("look", json!({})), reply_with("so").call("finish", json!({}))]);
    assert_eq!(names(&played.requests[0]), ["ask", "get_weather", "look", "finish"]);
    assert_eq!(names(&played.requests[1]), ["finish"]);
    assert_eq!(played.outcome.state, FinalState::Completed);

    let again = play().with(|config| (config.tool_budget, config.final_turn) = (1, true));
    let played = again.run(&[reply_with("").call("look", json!({}))]);
    assert_eq!(played.failure().1, "budget_exhausted");
    let without = play().with(|config| config.tool_budget = 1).run(&[reply_with("").call("look", json!({}))]);
    assert_eq!(names(&without.requests[1]).len(), 4);
}

#[test]
fn a_failed_tool_fails_the_request_with_its_kind() {
    for kind in
        [ToolErrorKind::Timeout, ToolErrorKind::Script, ToolErrorKind::Unserialisable, ToolErrorKind::Failure]
    {
        let played =
            play()
                .answering(move |nth, _| {
                    if nth == 1 { Ok(Value::Null) } else { Err(ToolError::new(kind, "boom").at(".x")) }
                })
                .run(&[reply_with("text")
                    .call("look", json!({}))
                    .call("look", json!({}))
                    .call("look", json!({}))]);
        assert_eq!(played.failure(), (FailReason::ToolExecutionError, kind.as_str(), "look.x: boom"));
        assert_eq!(played.executed.len(), 2);
        assert_eq!(played.outcome.text, "text");
        assert!(played.events.iter().any(|event| matches!(event, Event::ToolFinished { ok: false, .. })));
    }
}

#[test]
fn a_reported_tool_error_is_the_result_and_costs_an_iteration() {
    let played = play()
        .with(|config| config.on_tool_error = OnFailure::Report)
        .answering(|_, _| {
            Err(ToolError::new(ToolErrorKind::Script, "a.lua:3: boom").with_details("traceback"))
        })
        .run(&[reply_with("").call("look", json!({})), reply_with("sorry")]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert_eq!(played.outcome.tool_iterations, 1);
    let Some(Message::Tool { content, .. }) = played.history().last() else { panic!() };
    assert_eq!(content, r#"{"error":{"kind":"script","message":"a.lua:3: boom"}}"#);
}

#[test]
fn reported_arguments_are_returned_with_the_results_of_other_calls() {
    let played = play().with(|config| config.on_invalid_arguments = OnFailure::Report).run(&[
        reply_with("")
            .malformed("look", "{oops")
            .call("look", json!({}))
            .call("get_weather", json!({"unit": "kelvin", "location": "Paris"})),
        reply_with("sorry"),
    ]);
    assert_eq!(played.executed(), ["look"]);
    let results: Vec<&str> = played
        .history()
        .iter()
        .filter_map(
            |message| if let Message::Tool { content, .. } = message { Some(content.as_str()) } else { None },
        )
        .collect();
    assert_eq!(results.len(), 3);
    assert!(
        results[0].contains("not a JSON object") && results[2].contains("get_weather.unit"),
        "{results:?}"
    );
    assert_eq!(results[1], r#"{"temperature":18}"#);
    assert_eq!(played.outcome.tool_iterations, 1);
}

#[test]
fn reported_errors_stop_when_the_budget_is_exhausted() {
    let played = play()
        .with(|config| (config.on_invalid_arguments, config.tool_budget) = (OnFailure::Report, 4))
        .run(&[reply_with("").malformed("look", "{")]);
    assert_eq!(played.failure().1, "budget_exhausted");
    assert_eq!(played.outcome.tool_iterations, 4);
}

#[test]
fn many_reported_calls_do_not_recurse() {
    let mut script = reply_with("");
    for _ in 0..20_000 / step(10) {
        script = script.malformed("look", "{");
    }
    let played = play()
        .with(|config| (config.on_invalid_arguments, config.tool_budget) = (OnFailure::Report, 1))
        .run(&[script, reply_with("ok")]);
    assert_eq!(played.outcome.state, FinalState::Completed);
}

#[test]
fn incomplete_replies_fail() {
    let error = |kind, message: &str| ReplyStatus::ServerError {
        error: ServerError { code: Some(400), ..ServerError::new(kind, message) },
    };
    let cases = [
        (ReplyStatus::Incomplete { cause: None }, FailReason::UnknownError, "stream_incomplete"),
        (ReplyStatus::Empty, FailReason::UnknownError, "empty_stream"),
        (error(ServerErrorKind::ContextOverflow, "too long"), FailReason::UnknownError, "context_overflow"),
        (error(ServerErrorKind::Server, "oops"), FailReason::UnknownError, "server_error"),
        (error(ServerErrorKind::Http, "oops"), FailReason::UnknownError, "http_error"),
        (error(ServerErrorKind::Unauthorized, "no key"), FailReason::UnknownError, "unauthorized"),
    ];
    for (status, reason, kind) in cases {
        let played = play().run(&[reply_with("kept").status(status)]);
        assert_eq!((played.failure().0, played.failure().1), (reason, kind));
        assert!(!played.failure().2.is_empty());
        assert_eq!(played.outcome.text, "kept");
    }
}

#[test]
fn finish_reasons() {
    let mut long = reply_with("and so");
    long.reply.finish_reason = Some(String::from("length"));
    assert_eq!(play().run(&[long]).outcome.finish_reason, FinishReason::MaxTokens);
    let mut other = reply_with("and so");
    other.reply.finish_reason = Some(String::from("max_tokens"));
    assert_eq!(play().run(&[other]).outcome.finish_reason, FinishReason::MaxTokens);
    let mut none = reply_with("x");
    none.reply.finish_reason = None;
    assert_eq!(play().run(&[none]).outcome.finish_reason, FinishReason::Stop);
}

#[test]
fn a_reply_with_only_reasoning_completes_with_empty_text() {
    let mut script = reply_with("");
    script.reasoning = String::from("hm <tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>");
    let played = play().run(&[script.clone()]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert_eq!(played.outcome.text, "");
    // Such a reply is requested once more.
    assert_eq!(played.outcome.reasoning, Some(script.reasoning.repeat(2)));
    assert!(played.executed.is_empty());
}

#[test]
fn usage_is_summed_over_turns() {
    let mut script = reply_with("").call("look", json!({}));
    script.reply.usage = Some(Usage { prompt_tokens: 10, completion_tokens: 2, ..Usage::default() });
    let mut last = reply_with("x");
    let details = Usage { cached_tokens: Some(8), reasoning_tokens: Some(1), ..Usage::default() };
    last.reply.usage = Some(Usage { prompt_tokens: 20, completion_tokens: 3, ..details });
    assert_eq!(
        play().run(&[script, last]).outcome.usage,
        Some(Usage { prompt_tokens: 30, completion_tokens: 5, ..details })
    );
}

/// What a complete reply with text ends as.
#[test]
fn finish_reasons_of_all_servers_have_a_meaning() {
    for (reason, expected, warnings) in [
        ("stop", FinishReason::Stop, 0),
        ("STOP", FinishReason::Stop, 0),
        ("eos", FinishReason::Stop, 0),
        ("length", FinishReason::MaxTokens, 0),
        ("MAX_TOKENS", FinishReason::MaxTokens, 0),
        ("model_length", FinishReason::MaxTokens, 0),
        ("model_context_window_exceeded", FinishReason::MaxTokens, 1),
        ("content_filter", FinishReason::ContentFilter, 1),
        ("SAFETY", FinishReason::ContentFilter, 1),
        ("content_filter: RECITATION", FinishReason::ContentFilter, 1),
        ("sensitive", FinishReason::ContentFilter, 1),
        ("refusal", FinishReason::ContentFilter, 1),
        ("surprise", FinishReason::Stop, 1),
    ] {
        let mut script = reply_with("Half");
        script.reply.finish_reason = Some(String::from(reason));
        let played = play().run(&[script]);
        assert_eq!((played.outcome.state, played.outcome.finish_reason), (FinalState::Completed, expected));
        let warned: Vec<&str> = played
            .events
            .iter()
            .filter_map(
                |event| if let Event::Warning { message } = event { Some(message.as_str()) } else { None },
            )
            .collect();
        assert_eq!(warned.len(), warnings, "{reason}: {warned:?}");
        assert!(
            expected != FinishReason::Stop || warned.iter().all(|message| message.contains("`surprise`"))
        );
    }
}

// External ends.

#[test]
fn cancel_at_any_step_keeps_the_text() {
    let tools = tools();
    let directive = "<tool_call>{\"name\": \"look\"";
    for steps in 0..4 {
        let mut run = play().start();
        let mut expected = String::new();
        if steps > 0 {
            run.next_step(&tools, &BiosV1);
        }
        if steps > 1 {
            run.on_event(ChatEvent::Text { text: format!("abc {directive}") }, &tools, 5);
            assert_eq!(run.text(), "abc ");
            expected = format!("abc {directive}");
        }
        if steps > 2 {
            run.on_event(ChatEvent::Ended { reply: reply_with("").call("look", json!({})).reply }, &tools, 6);
            assert_eq!(run.status().state, RequestState::ToolRunning);
            assert_eq!(run.status().running_tool.as_deref(), Some("look"));
        }
        run.cancel(7);
        let outcome = run.outcome().unwrap().clone();
        assert_eq!((outcome.state, outcome.finish_reason), (FinalState::Canceled, FinishReason::Canceled));
        assert_eq!(outcome.fail_reason, Some(FailReason::Canceled));
        assert_eq!(outcome.text, expected);
        assert_eq!(run.status().state, RequestState::Canceled);
        run.take_events();
        assert_final(&mut run, &tools);
    }
}

/// Kimi's ids contain the name; small models write the whole call as its arguments.
#[test]
fn a_call_without_a_name_is_named_by_its_id_or_its_arguments() {
    let whole = json!({"name": "look", "arguments": {"n": 1}});
    for (id, arguments, expected) in [
        ("functions.look:0", json!({"n": 1}), Some(json!({"n": 1}))),
        ("functions_look_0", json!({"n": 1}), Some(json!({"n": 1}))),
        ("functions_get_weather_12", weather(), Some(weather())),
        ("call_1", whole.clone(), Some(json!({"n": 1}))),
        ("call_1", json!({"name": "unknown", "arguments": {}}), None),
        ("call_1", json!({"name": "look", "arguments": {}, "n": 1}), None),
        ("functions_unknown_0", json!({"n": 1}), None),
        ("functions_look_x", json!({"n": 1}), None),
    ] {
        let mut reply = reply_with("").call("", arguments);
        reply.reply.calls[0].id = Some(id.to_owned());
        let played = play().run(&[reply, reply_with("done")]);
        let called = played.events.iter().find_map(|event| match event {
            Event::ToolCall { arguments, .. } => Some((**arguments).clone()),
            _ => None,
        });
        assert_eq!(
            (called, played.executed().len()),
            (expected.clone(), usize::from(expected.is_some())),
            "{id}"
        );
    }
}

#[test]
fn the_first_failure_is_kept() {
    let tools = tools();
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    run.fail(Failure::new(FailReason::StallTimeout, "stall_timeout", "no byte for 300 s"), 120_000);
    run.fail(Failure::new(FailReason::ServerDied, "", ""), 120_001);
    run.cancel(120_002);
    let outcome = run.outcome().unwrap();
    assert_eq!(outcome.fail_reason, Some(FailReason::StallTimeout));
    assert_eq!(outcome.kind.as_deref(), Some("stall_timeout"));
}

#[test]
fn a_turn_is_pinned_to_its_tools() {
    let tools = tools();
    let newer = ToolSet::default();
    let mut run = play().start();
    let Step::Stream(request) = run.next_step(&tools, &BiosV1) else { panic!() };
    let Step::Stream(again) = run.next_step(&newer, &BiosV1) else { panic!() };
    assert_eq!(request, again);
    assert_eq!(run.turn(), (1, &**tools.digest()));
    run.on_event(ChatEvent::Ended { reply: reply_with("").call("look", json!({})).reply }, &tools, 1);
    let Step::AnswerCalls(calls) = run.next_step(&newer, &BiosV1) else { panic!() };
    let call = &calls[0].call;
    run.on_tool_result(&call.id, Ok(json!(1).into()), 2);
    let Step::Stream(request) = run.next_step(&newer, &BiosV1) else { panic!() };
    assert!(request.tools.is_empty(), "the next turn uses the newer set");
    run.on_event(ChatEvent::Text { text: String::from("x") }, &tools, 3);
    assert_eq!(run.outcome().unwrap().kind.as_deref(), Some("tool_set_changed"));
}

#[test]
fn durations_are_measured_from_the_start_of_each_call() {
    let tools = tools();
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    let reply =
        reply_with("").call("look", json!({})).call("look", json!({})).call("finish", json!({})).reply;
    run.on_event(ChatEvent::Ended { reply }, &tools, 100);
    for at in [130, 200, 150] {
        if let Step::AnswerCalls(calls) = run.next_step(&tools, &BiosV1) {
            let call = &calls[0].call;
            run.on_tool_result(&call.id, Ok(Value::Null.into()), at);
        }
    }
    let elapsed: Vec<u64> = run
        .take_events()
        .iter()
        .filter_map(
            |event| if let Event::ToolFinished { elapsed_ms, .. } = event { Some(*elapsed_ms) } else { None },
        )
        .collect();
    assert_eq!(elapsed, [30, 70]);
    assert_eq!(run.signals()[0].emitted_at_ms, 100);
    assert_eq!(run.status().last_progress_ms, 200);
    assert_eq!((run.status().budget_left, run.status().tool_iterations), (7, 1));
}

#[test]
fn invalid_and_duplicate_ids_are_replaced() {
    let mut first = reply_with("").call("look", json!({})).call("look", json!({})).call("look", json!({}));
    for (call, id) in first.reply.calls.iter_mut().zip([Some("abcDEF123"), Some("abcDEF123"), None]) {
        call.id = id.map(str::to_owned);
    }
    let played = play().run(&[first.clone(), first, reply_with("x")]);
    let ids: Vec<&str> = played.executed.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(ids[0], "abcDEF123");
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
}

#[test]
fn a_completed_conversation_can_be_continued() {
    let tools = tools();
    let mut run = play().start();
    run.next_step(&tools, &BiosV1);
    run.on_event(ChatEvent::Text { text: String::from("Hello.\n") }, &tools, 1);
    run.on_event(ChatEvent::Ended { reply: reply_with("").reply }, &tools, 2);
    let last =
        Message::Assistant { content: String::from("Hello.\n"), tool_calls: Vec::new(), received: None };
    assert_eq!(plain(run.conversation()), [user("What is the weather?"), last]);
}

/// The calls of the only reply are reported, the valid ones without an answer, and none runs.
#[test]
fn a_request_of_one_reply_ends_with_its_calls() {
    let tools = tools();
    let options = RequestOptions { one_reply: true, ..RequestOptions::default() };
    let start = RunStart { options, ..play().run_start() };
    let mut run = Run::new(play().config, start.clone());
    run.next_step(&tools, &BiosV1);
    let reply = reply_with("")
        .call("ask", json!({}))
        .call("get_weather", json!({"unit": "kelvin"}))
        .call("nothing", json!({}))
        .malformed("look", "{")
        .call("finish", json!({}));
    run.on_event(ChatEvent::Ended { reply: reply.reply }, &tools, 20);
    assert_eq!(run.next_step(&tools, &BiosV1), Step::Finished);
    let outcome = run.outcome().unwrap();
    assert_eq!((outcome.state, outcome.signals.len()), (FinalState::Completed, 1));
    let events = run.take_events();
    let called: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCall { name, .. } => Some(name.as_str()),
            Event::ToolStarted { .. } | Event::Approval { .. } => panic!("{event:?}"),
            _ => None,
        })
        .collect();
    assert_eq!(called, ["ask", "get_weather", "nothing", "look"]);
    let kinds: Vec<&Value> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolFinished { error, .. } => error.as_ref().map(|error| &error["kind"]),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["invalid_arguments", "unknown_tool", "invalid_arguments"]);
    let answered = run.conversation().iter().filter(|message| matches!(***message, Message::Tool { .. }));
    assert_eq!(answered.count(), 4, "the conversation can be continued");

    // A reply without calls ends it as any request.
    let mut run = Run::new(play().config, start);
    run.next_step(&tools, &BiosV1);
    run.on_event(ChatEvent::Text { text: String::from("Hm.") }, &tools, 10);
    run.on_event(ChatEvent::Ended { reply: reply_with("").reply }, &tools, 20);
    assert_eq!(run.outcome().map(|outcome| outcome.text.as_str()), Some("Hm."));
}
