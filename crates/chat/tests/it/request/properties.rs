//! Invariants for random configurations, replies and tools.

use std::sync::Arc;

use deftool_chat::request::{
    Approval, BudgetUnit, Event, FailReason, Fallback, FinalState, OnFailure, Outcome, RunConfig,
};
use deftool_chat::{ChatRequest, ReplyStatus, Usage};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_test_support::step;
use proptest::prelude::*;
use serde_json::json;

use super::play::{Play, ScriptedReply, play, reply_with, weather};

fn words() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "<tool_call>",
        "</tool_call>",
        "{\"name\": \"look\", \"arguments\": {}}",
        "{\"tool\": \"look\", \"arguments\": {}}",
        "{\"tool\": \"finish\"}",
        "{\"tool\": \"nothing\", \"arguments\": {}}",
        "{\"name\": \"finish\"}",
        "\n",
        "\n\n",
        " ",
        "`",
        "```",
        "```json\n",
        "~~~",
        "\"",
        "“",
        "”",
        "<think>",
        "</think>",
        "> ",
        "    ",
        "word",
        "{",
        "}",
        "{\"tool\":",
        "<",
        "'",
        "é",
        "the same line of some length here\n",
    ]);
    prop::collection::vec(parts, 0..24).prop_map(|parts| parts.concat())
}

fn script() -> impl Strategy<Value = ScriptedReply> {
    let call = prop_oneof![
        4 => Just((0, "look", json!({}))),
        4 => Just((0, "get_weather", weather())),
        2 => Just((0, "ask", json!({}))),
        3 => Just((0, "finish", json!({"done": true}))),
        1 => Just((0, "get_weather", json!({"unit": 1}))),
        1 => Just((1, "look", json!({}))),
        1 => Just((1, "finish", json!({}))),
        1 => Just((0, "nothing", json!({}))),
    ];
    let status = prop_oneof![
        12 => Just(ReplyStatus::Complete),
        1 => Just(ReplyStatus::CallTruncated { is_over: true }),
        1 => Just(ReplyStatus::Incomplete { cause: None }),
    ];
    let is_paused = prop::bool::weighted(0.1);
    (words(), prop::collection::vec(call, 0..4), status, 1..40_usize, is_paused).prop_map(
        |(text, calls, status, size, is_paused)| {
            let script = calls.into_iter().fold(reply_with(&text), |script, (malformed, name, arguments)| {
                if malformed == 1 { script.malformed(name, "{oops") } else { script.call(name, arguments) }
            });
            let mut script = script.status(status).cut(size);
            if is_paused {
                script.reply.finish_reason = Some(String::from("pause_turn"));
            }
            script
        },
    )
}

fn config() -> impl Strategy<Value = RunConfig> {
    let fallback = prop::sample::select(vec![Fallback::Auto, Fallback::On, Fallback::Off]);
    let on_error = || prop::sample::select(vec![OnFailure::Fail, OnFailure::Report]);
    (0..4_u32, any::<(bool, bool)>(), fallback, on_error(), on_error(), any::<bool>(), any::<bool>())
        .prop_map(
            |(
                tool_budget,
                (by_call, together),
                fallback,
                on_invalid_arguments,
                on_tool_error,
                final_turn,
                parallel,
            )| {
                RunConfig {
                    tool_budget,
                    budget_unit: if by_call { BudgetUnit::Call } else { BudgetUnit::Iteration },
                    fallback,
                    on_invalid_arguments,
                    on_tool_error,
                    final_turn,
                    parallel: together,
                    parallel_tool_calls_supported: parallel,
                    ..RunConfig::default()
                }
            },
        )
}

fn random_play(config: &RunConfig, fails: u64) -> Play {
    let mut play = play().with(|it| *it = config.clone());
    play = play.answering(move |nth, _| {
        if fails >> (nth % 8) & 1 == 1 {
            Err(ToolError::new(ToolErrorKind::Script, "no"))
        } else {
            Ok(json!(nth))
        }
    });
    if fails & 2 == 0 {
        play.approval = Approval::Refused { reason: String::new() };
    }
    let mut picked = fails as usize;
    play.choose = Box::new(move |count| {
        picked = picked.rotate_left(3) ^ 5;
        picked % count
    });
    play
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400 / step(20) as u32))]

    #[test]
    fn invariants_hold_for_any_request(
        config in config(), replies in prop::collection::vec(script(), 1..6), fails in any::<u64>(),
    ) {
        let played = random_play(&config, fails & (fails >> 8)).run(&replies);
        let outcome = &played.outcome;
        prop_assert_eq!(outcome.state == FinalState::Failed, outcome.fail_reason.is_some());

        // The budget is never exceeded.
        let budget = config.tool_budget as usize;
        match config.budget_unit {
            BudgetUnit::Call => prop_assert!(played.executed.len() <= budget),
            // An empty reply is requested once more, which counts as a retry.
            BudgetUnit::Iteration => {
                let again = outcome.usage.map_or(0, |usage| usage.retries) as usize;
                prop_assert!(again <= 1 && played.requests.len() <= budget + 1 + again);
            }
        }
        prop_assert!(outcome.tool_iterations as usize <= budget);

        // Every structured exit call is a signal, and no other signals exist.
        let looped = outcome.fail_reason == Some(FailReason::RepeatedLineLoop);
        let exits: usize = (0..played.requests.len())
            .map(|turn| &replies[turn.min(replies.len() - 1)])
            .map(|script| script.reply.calls.iter().filter(|call| call.name == "finish").count())
            .sum();
        prop_assert!(outcome.signals.len() >= exits);
        if config.fallback == Fallback::Off && !looped {
            prop_assert_eq!(outcome.signals.len(), exits);
            prop_assert_eq!(&outcome.text, outcome.raw_text());
        }
        prop_assert!(is_subsequence(&outcome.text, outcome.raw_text()));
    }

    #[test]
    fn a_restored_request_continues_identically(
        config in config(), replies in prop::collection::vec(script(), 1..5), fails in any::<u64>(),
    ) {
        let plain = random_play(&config, fails & (fails >> 8)).run(&replies);
        let mut stored = random_play(&config, fails & (fails >> 8));
        stored.restore = true;
        let stored = stored.run(&replies);
        prop_assert_eq!(plain.outcome, stored.outcome);
        prop_assert_eq!(plain.events, stored.events);
        prop_assert_eq!(plain.requests, stored.requests);
        prop_assert_eq!(plain.executed, stored.executed);
        prop_assert_eq!(plain.conversation, stored.conversation);
    }

    #[test]
    fn a_request_restored_from_its_journal_continues_identically(
        config in config(), replies in prop::collection::vec(script(), 1..5), fails in any::<u64>(),
    ) {
        let plain = random_play(&config, fails & (fails >> 8)).run(&replies);
        let mut stored = random_play(&config, fails & (fails >> 8));
        stored.journaled = true;
        let stored = stored.run(&replies);
        prop_assert_eq!(plain.outcome, stored.outcome);
        prop_assert_eq!(plain.events, stored.events);
        prop_assert_eq!(plain.requests, stored.requests);
        prop_assert_eq!(plain.executed, stored.executed);
        prop_assert_eq!(plain.conversation, stored.conversation);
    }

    /// The driver of these tests checks that no call with an effect runs twice.
    #[test]
    fn a_request_continues_after_the_end_of_its_process(
        config in config(), replies in prop::collection::vec(script(), 1..5), fails in any::<u64>(), at in 0..30_usize,
    ) {
        let mut play = random_play(&config, fails & (fails >> 8));
        play.crash = Some(at);
        let played = play.run(&replies);
        let plain = random_play(&config, fails & (fails >> 8)).run(&replies);
        // A call that may not run again gets no result, and calls in parallel may run in another order.
        let is_interrupted = |event: &Event| {
            matches!(event, Event::ToolFinished { error: Some(error), .. } if error["kind"] == "interrupted")
        };
        if !config.parallel && !played.events.iter().any(is_interrupted) {
            prop_assert_eq!(without_times(plain.outcome), without_times(played.outcome));
            prop_assert_eq!(plain.conversation, played.conversation);
        }
    }

    #[test]
    fn the_split_of_the_text_does_not_affect_the_outcome(text in words(), sizes in (1..5_usize, 1..64_usize)) {
        for fallback in [Fallback::Auto, Fallback::On] {
            let ends: Vec<(Outcome, Vec<Arc<ChatRequest>>)> = [sizes.0, sizes.1, 1 << 20]
                .into_iter()
                .map(|size| play().with(|config| config.fallback = fallback).run(&[reply_with(&text).cut(size), reply_with("end")]))
                .map(|played| (played.outcome, played.requests))
                .collect();
            prop_assert_eq!(&ends[0], &ends[2]);
            prop_assert_eq!(&ends[1], &ends[2]);
        }
    }
}

/// Replies with every kind of call, and configurations that change what happens to them.
#[rustfmt::skip]
fn named() -> Vec<(RunConfig, Vec<ScriptedReply>)> {
    let mut replies = vec![
        ScriptedReply { reasoning: String::from("Hm."), ..reply_with("I look.").call("look", json!({"q": 1})) },
        reply_with("").call("ask", json!({})).call("get_weather", weather()).call("finish", json!({"n": 1})),
        reply_with("Again.\n<tool_call>{\"name\": \"look\", \"arguments\": {\"q\": 2}}</tool_call>"),
        reply_with("").call("get_weather", json!({"unit": 1})).malformed("look", "{"),
        reply_with("").call("nothing", json!({})).call("look", json!({"q": 3})),
        reply_with("Done.").call("finish", json!({"n": 2})),
    ];
    for (tokens, reply) in (1..).zip(&mut replies) {
        reply.reply.usage = Some(Usage { prompt_tokens: tokens, ..Usage::default() });
    }
    let configs: [fn(&mut RunConfig); 6] = [
        |_| {},
        |config| config.on_invalid_arguments = OnFailure::Report,
        |config| (config.on_invalid_arguments, config.on_tool_error) = (OnFailure::Report, OnFailure::Report),
        |config| (config.on_invalid_arguments, config.tool_budget) = (OnFailure::Report, 3),
        |config| (config.budget_unit, config.tool_budget, config.final_turn) = (BudgetUnit::Call, 4, true),
        |config| (config.fallback, config.parallel_tool_calls_supported) = (Fallback::On, false),
    ];
    configs.into_iter().map(|change| (play().with(change).config, replies.clone())).collect()
}

/// The cases that the random ones may miss: each crash of each.
#[test]
fn named_requests_continue_after_the_end_of_their_process() {
    for (nth, (config, replies)) in named().iter().enumerate() {
        for fails in [0, 2, 5, 255] {
            let plain = random_play(config, fails).run(replies);
            let mut stored = random_play(config, fails);
            stored.journaled = true;
            let stored = stored.run(replies);
            let how = format!("{nth}, {fails}");
            assert_eq!(
                (&plain.outcome, &plain.events, &plain.requests, &plain.executed, &plain.conversation),
                (&stored.outcome, &stored.events, &stored.requests, &stored.executed, &stored.conversation),
                "{how}"
            );
            for at in 0..plain.events.len() {
                let mut play = random_play(config, fails);
                play.crash = Some(at);
                let played = play.run(replies);
                let is_interrupted = |event: &Event| matches!(event, Event::ToolFinished { error: Some(error), .. } if error["kind"] == "interrupted");
                if !played.events.iter().any(is_interrupted) {
                    assert_eq!(
                        without_times(plain.outcome.clone()),
                        without_times(played.outcome),
                        "{how}, {at}"
                    );
                    assert_eq!(plain.conversation, played.conversation, "{how}, {at}");
                }
            }
        }
    }
}

fn without_times(mut outcome: Outcome) -> Outcome {
    outcome.signals.iter_mut().for_each(|signal| signal.emitted_at_ms = 0);
    outcome.first_token_ms = None;
    outcome
}

fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut whole = whole.chars();
    part.chars().all(|ch| whole.any(|other| other == ch))
}
