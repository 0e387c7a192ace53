//! The expected outcome of a request, derived from its script by a second, simpler implementation of the rules.

use std::time::Duration;

use deftool_chat::Capabilities;
use deftool_chat::request::{
    BudgetUnit, FailReason, Fallback, FinalState, OnFailure, Outcome, RunConfig, Signal,
};
use deftool_lang::spec::Timers;
use deftool_lang::tool::ToolErrorKind;
use deftool_worker::WorkerConfig;
use serde_json::Value;

use super::invariants::{Invariant, Violation};
use super::ledger::{Case, Exchange, Turn, event_limit, head_limit};
use super::script::{Form, Head, PROMPT_TOKENS, Part, ReplyContent, ReplyEnd, Tail, Written};
use super::tools::Generation;
use super::tracker::EventTracker;

const STALLS: [&str; 2] = ["stall_timeout/stall_timeout", "stall_timeout/first_token_timeout"];
/// The longest retry delay, including jitter.
const MAX_WAIT: Duration = Duration::from_secs(75);
const LOOP: &str = "repeated_line_loop/";

/// Returns `completed`, `canceled`, or the reason and kind of the failure.
pub(super) fn class_of(outcome: &Outcome) -> String {
    match outcome.state {
        FinalState::Completed => String::from("completed"),
        FinalState::Canceled => String::from("canceled"),
        FinalState::Failed => {
            let reason = outcome.fail_reason.map_or("", FailReason::as_str);
            format!("{reason}/{}", outcome.kind.as_deref().unwrap_or_default())
        }
    }
}

/// The outcomes that a script allows.
#[derive(Debug)]
enum Verdict {
    Anything,
    /// One of these.
    Classes(Vec<String>),
}

impl Verdict {
    fn class(class: &str) -> Self {
        Self::Classes(vec![class.to_owned()])
    }
}

/// Checks an outcome against the script of its request.
pub(super) fn check_outcome(
    case: &Case,
    tracker: &EventTracker,
    outcome: &Outcome,
    config: &WorkerConfig,
    now: Duration,
    may_be_lost: bool,
) -> Result<(), Violation> {
    let class = class_of(outcome);
    let violation = |invariant, how: String| {
        Err(Violation { invariant, how: format!("{}: {how}: {outcome:?}", case.id) })
    };
    if outcome.state == FinalState::Canceled && (case.restarted || !(case.canceled || case.stopped)) {
        return violation(Invariant::Restart, String::from("canceled without a cancel"));
    }
    if case.restarted && class != "worker_restarted/" {
        let last = case.turns.last().and_then(|turn| turn.exchanges.last());
        // The reply ended or a timer expired at the time of the restart, or the driver panicked.
        let is_excused = last.is_some_and(Exchange::is_ended)
            || (class.contains("timeout") && case.due.is_some_and(|(due, _)| now >= due))
            || class == "unknown_error/internal";
        if !is_excused {
            return violation(
                Invariant::Restart,
                String::from("it had an open exchange when the worker was restarted"),
            );
        }
    }
    let interrupted = match class.as_str() {
        "canceled" => true,
        "worker_restarted/" if case.restarted => true,
        "worker_restarted/" => {
            return violation(Invariant::Restart, String::from("restarted without a restart"));
        }
        "unknown_error/internal" if may_be_lost => true,
        "unknown_error/total_timeout" => {
            if config.timers.total.is_none_or(|total| now < total) {
                return violation(Invariant::Deadline, String::from("too early"));
            }
            true
        }
        _ => false,
    };
    if !interrupted
        && let Verdict::Classes(allowed) = verdict(case, tracker, config)
        && !allowed.contains(&class)
    {
        return violation(Invariant::Outcome, format!("{class}, but its script allows {allowed:?}"));
    }
    let cut =
        interrupted || class == LOOP || STALLS.contains(&class.as_str()) || class == "unknown_error/internal";
    check_text(case, outcome, config, cut)?;
    check_signals(case, outcome, config, cut)
}

fn verdict(case: &Case, tracker: &EventTracker, config: &WorkerConfig) -> Verdict {
    let Some(turn) = case.turns.last() else { return Verdict::Classes(Vec::new()) };
    let Some(exchange) = turn.exchanges.last() else { return Verdict::Classes(Vec::new()) };
    if !exchange.streams {
        return Verdict::class("unknown_error/empty_stream");
    }
    let script = &exchange.script;
    let limit = head_limit(&config.timers);
    match (&script.head, script.head_after) {
        (_, None) => return Verdict::class("headers_timeout/headers_timeout"),
        (_, Some(after)) if after == limit => return Verdict::Anything,
        (_, Some(after)) if after > limit => return Verdict::class("headers_timeout/headers_timeout"),
        (Head::Panics, _) => return Verdict::class("unknown_error/internal"),
        (Head::Broken, _) if may_try_hosted(exchange, None, config.server) => {
            return Verdict::Classes(Vec::new());
        }
        (Head::Broken, _) => return Verdict::class("unknown_error/stream_incomplete"),
        (Head::Unreachable, _) => return Verdict::class("connect_failed/connect_failed"),
        (Head::Refused, _) if may_try_again(exchange, None) => return Verdict::Classes(Vec::new()),
        (Head::Refused, _) => return Verdict::class("connect_failed/connect_failed"),
        (Head::Status { status, retry_after }, _) => {
            return of_status(case, tracker, config, *status, *retry_after);
        }
        (Head::Ok, Some(_)) => {}
    }
    let content = &script.content;
    let stalls = stalls(exchange, &config.timers);
    let mut classes: Vec<String> = Vec::new();
    if stalls != Stalls::Never {
        classes.extend(STALLS.map(str::to_owned));
        if content.loops {
            classes.push(LOOP.to_owned());
        }
    }
    if stalls == Stalls::Surely {
        return Verdict::Classes(classes);
    }
    if content.is_noise {
        return Verdict::Anything;
    }
    if content.loops {
        classes.push(LOOP.to_owned());
    }
    let is_second = case.turns.iter().rev().nth(1).is_some_and(is_empty);
    let own = match content.end {
        // It is requested once more, unless a limit ended it.
        ReplyEnd::Whole if is_empty(turn) && !is_second => Verdict::class("completed"),
        ReplyEnd::Whole if is_empty(turn) => Verdict::Classes(vec![
            String::from("completed"),
            String::from("unknown_error/empty_stream"),
            String::from("unknown_error/missing_tool_call"),
        ]),
        ReplyEnd::Whole => of_calls(content, turn, tracker, &config.run),
        ReplyEnd::Incomplete => Verdict::class("unknown_error/stream_incomplete"),
        ReplyEnd::Truncated => Verdict::class("tool_parse_error/call_truncated"),
        ReplyEnd::Unavailable if may_try_hosted(exchange, None, config.server) => {
            return Verdict::Classes(Vec::new());
        }
        ReplyEnd::ServerError | ReplyEnd::Unavailable => Verdict::class("unknown_error/server_error"),
        ReplyEnd::Overflow => Verdict::class("unknown_error/context_overflow"),
        ReplyEnd::Empty => Verdict::class("unknown_error/empty_stream"),
    };
    match own {
        Verdict::Classes(own) if !content.loops => Verdict::Classes([classes, own].concat()),
        Verdict::Classes(_) => Verdict::Classes(classes),
        Verdict::Anything => Verdict::Anything,
    }
}

fn of_status(
    case: &Case,
    tracker: &EventTracker,
    config: &WorkerConfig,
    status: u16,
    retry_after: Option<Duration>,
) -> Verdict {
    let again = Verdict::Classes(Vec::new());
    let (Some(turn), http) = (case.turns.last(), Verdict::class("unknown_error/http_error")) else {
        return again;
    };
    let Some(exchange) = turn.exchanges.last() else { return again };
    let has = |feature: &str| exchange.script.has(feature);
    let is_read = exchange.is_delivered();
    if exchange.next_body_fallback(&case.body_fallbacks).is_some() {
        return again;
    }
    if is_read && has("head: context overflow") {
        return Verdict::class("unknown_error/context_overflow");
    }
    if is_read && has("head: failed generation") {
        let content = &exchange.script.content;
        let calls = read_calls(content, &turn.generation, &config.run, false);
        let is_call = calls.iter().any(|call| is_call(call, &turn.generation, &config.run));
        return if is_call { of_calls(content, turn, tracker, &config.run) } else { http };
    }
    if status == 401 {
        return Verdict::class("unknown_error/unauthorized");
    }
    let is_retried = match status {
        408 | 409 | 429 | 503 => may_try_again(exchange, retry_after),
        500 | 502 => may_try_hosted(exchange, retry_after, config.server),
        _ => false,
    };
    if is_retried { again } else { http }
}

/// Whether an attempt is left, and the requested delay is within the limit. There are more attempts while a model is
/// loading.
fn may_try_again(exchange: &Exchange, retry_after: Option<Duration>) -> bool {
    let is_loading = exchange.reports_loading();
    let may = if is_loading { exchange.attempt < 130 } else { exchange.retries < 3 };
    may && retry_after.is_none_or(|wait| wait <= Duration::from_secs(60))
}

/// Like [`may_try_again`], for failures that are temporary only on hosted servers.
fn may_try_hosted(exchange: &Exchange, retry_after: Option<Duration>, server: Capabilities) -> bool {
    server.is_hosted() && exchange.retries < 2 && may_try_again(exchange, retry_after)
}

/// Whether the reply of a turn has neither text nor a call.
fn is_empty(turn: &Turn) -> bool {
    let streamed =
        turn.exchanges.iter().rev().find(|exchange| exchange.streams && exchange.script.head == Head::Ok);
    streamed.is_some_and(|exchange| {
        let ReplyContent { end, is_noise, calls, .. } = &exchange.script.content;
        let is_blank = calls.is_empty() && exchange.script.content.text().trim().is_empty();
        !is_noise && *end == ReplyEnd::Whole && is_blank
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stalls {
    Never,
    /// The limit is reached exactly.
    Perhaps,
    Surely,
}

/// Whether a stream is abandoned before its end.
fn stalls(exchange: &Exchange, timers: &Timers) -> Stalls {
    let script = &exchange.script;
    // The first token is expected within a time from the request.
    let mut since_event = script.head_after.unwrap_or_default();
    let (mut since_byte, mut any_token) = (Duration::ZERO, false);
    let mut worst = Stalls::Never;
    let mut wait = |time: Duration, byte: &mut Duration, event: &mut Duration, any_token: bool| {
        *byte += time;
        *event += time;
        let first = timers.first_token.unwrap_or_default();
        let limits = [(*byte, timers.stall), (*event, event_limit(timers))];
        for (since, limit) in if any_token { limits } else { [(*event, first); 2] } {
            if since > limit {
                worst = worst.max(Stalls::Surely);
            } else if since == limit {
                worst = worst.max(Stalls::Perhaps);
            }
        }
    };
    for frame in &script.frames {
        wait(frame.before, &mut since_byte, &mut since_event, any_token);
        if !frame.bytes.is_empty() {
            since_byte = Duration::ZERO;
        }
        any_token |= frame.is_token;
        if frame.is_token || frame.is_progress {
            since_event = Duration::ZERO;
        }
        if frame.is_finish || frame.is_last {
            return worst;
        }
    }
    if script.tail == Tail::Silence { Stalls::Surely } else { worst }
}

fn is_recognized(form: Form, fallback: Fallback) -> bool {
    match (form, fallback) {
        (_, Fallback::Off) | (Form::InCode | Form::InThought, _) => false,
        (Form::Tag | Form::BrokenTag, Fallback::Auto | Fallback::On) => true,
        (Form::Line | Form::Fence, Fallback::On) => true,
        (Form::Line | Form::Fence, Fallback::Auto) => false,
    }
}

/// Returns the calls written as text that are read, malformed or not: those of a reply that ends with one. The end of a
/// reply that is `cut` may not have been received.
fn read_calls<'c>(
    content: &'c ReplyContent,
    generation: &Generation,
    run: &RunConfig,
    cut: bool,
) -> Vec<&'c Written> {
    let read = |part: &'c Part| match part {
        Part::Written(call) if generation.set.is_empty() || call.is_quoted => None,
        Part::Written(call) => is_recognized(call.form, run.fallback).then_some(call),
        Part::Plain(_) => None,
    };
    let mut after = content.parts.iter().rev().take_while(|part| read(part).is_none());
    let ends_reply = after.all(|part| part.text().trim().is_empty());
    if ends_reply || cut { content.parts.iter().filter_map(read).collect() } else { Vec::new() }
}

/// Whether a call that is read is made. A call of an unknown tool is reported to the model, or fails.
fn is_call(written: &Written, generation: &Generation, run: &RunConfig) -> bool {
    written.form != Form::BrokenTag
        && (generation.set.get(&written.name).is_some() || run.on_invalid_arguments == OnFailure::Report)
}

/// Whether the text of a reply is searched for calls. It is not if there are structured calls.
fn reads_text(content: &ReplyContent, generation: &Generation) -> bool {
    content.calls.iter().all(|call| generation.is_exit(&call.name))
}

fn of_calls(content: &ReplyContent, turn: &Turn, tracker: &EventTracker, run: &RunConfig) -> Verdict {
    let generation = &turn.generation;
    let fails = run.on_invalid_arguments == OnFailure::Fail;
    let is_known = |name: &str| generation.set.get(name).is_some();
    if fails && content.calls.iter().any(|call| !is_known(&call.name)) {
        return Verdict::class("tool_parse_error/unknown_tool");
    }
    let structured: Vec<(&str, Option<&Value>)> = content
        .calls
        .iter()
        .filter(|call| !generation.is_exit(&call.name))
        .map(|call| (call.name.as_str(), call.arguments.as_ref()))
        .collect();
    let calls = if reads_text(content, generation) {
        let read = read_calls(content, generation, run, false);
        let fault = read.iter().find(|call| call.form == Form::BrokenTag || !is_known(&call.name));
        if let Some(fault) = fault.filter(|_| fails) {
            let is_broken = fault.form == Form::BrokenTag;
            let kind = if is_broken { "malformed_call" } else { "unknown_tool" };
            return Verdict::class(&format!("tool_parse_error/{kind}"));
        }
        read.into_iter()
            // The name of a broken call cannot be read.
            .filter(|call| call.form == Form::BrokenTag || !generation.is_exit(&call.name))
            .map(|call| (call.name.as_str(), Some(&call.arguments).filter(|_| call.form != Form::BrokenTag)))
            .collect()
    } else {
        structured
    };
    if calls.is_empty() {
        return Verdict::class("completed");
    }
    let left = tracker.turns.last().map_or(0, |(_, left)| *left) as usize;
    if left == 0 {
        return Verdict::class("tool_execution_error/budget_exhausted");
    }
    let is_valid = |(name, arguments): &(&str, Option<&Value>)| {
        arguments.is_some_and(|arguments| generation.accepts(name, arguments))
    };
    if fails && !calls.iter().all(is_valid) {
        return Verdict::class("tool_parse_error/invalid_arguments");
    }
    let failed: Vec<String> = turn
        .call_ends
        .iter()
        .flatten()
        .map(|kind| format!("tool_execution_error/{}", ToolErrorKind::as_str(*kind)))
        .collect();
    if run.on_tool_error == OnFailure::Fail && !failed.is_empty() {
        return Verdict::Classes(failed);
    }
    if run.budget_unit == BudgetUnit::Call && calls.len() > left {
        return Verdict::class("tool_execution_error/budget_exhausted");
    }
    // Another turn must follow.
    Verdict::Classes(Vec::new())
}

/// Returns the last stream of each turn.
fn replies(case: &Case) -> Vec<(&Turn, &Exchange)> {
    let streamed = |turn: &'_ Turn| turn.exchanges.iter().rposition(|exchange| exchange.streams);
    case.turns.iter().filter_map(|turn| Some((turn, turn.exchanges.get(streamed(turn)?)?))).collect()
}

/// Checks the wait before an attempt: as long as the server requested, otherwise about half a second, doubled with each
/// attempt.
pub(super) fn check_wait(
    case: &Case,
    turn: u32,
    attempt: u32,
    wait: Duration,
    server: Capabilities,
) -> Result<(), Violation> {
    let tries = case.turns.get(turn as usize - 1).map_or(&[][..], |turn| &turn.exchanges);
    let Some(exchange) = tries.iter().find(|exchange| exchange.attempt + 1 == attempt) else { return Ok(()) };
    let first = Duration::from_millis(if exchange.script.head == Head::Refused { 250 } else { 500 });
    // It is reported in whole milliseconds.
    let most = wait + Duration::from_millis(1);
    let doubled =
        if exchange.retries == 0 { most >= first * 3 / 4 && wait <= first * 5 / 4 } else { wait <= MAX_WAIT };
    let holds = match exchange.script.head {
        // A body fallback is sent immediately.
        Head::Status { .. } if exchange.script.refused.is_some() && wait.is_zero() => true,
        Head::Status { status: 408 | 409 | 429 | 503, retry_after } => {
            may_try_again(exchange, retry_after) && retry_after.map_or(doubled, |asked| wait == asked)
        }
        Head::Status { status: 500 | 502, retry_after } => {
            may_try_hosted(exchange, retry_after, server)
                && retry_after.map_or(doubled, |asked| wait == asked)
        }
        Head::Broken => may_try_hosted(exchange, None, server) && doubled,
        Head::Refused => may_try_again(exchange, None) && doubled,
        Head::Ok => {
            exchange.script.content.end == ReplyEnd::Unavailable
                && may_try_hosted(exchange, None, server)
                && doubled
        }
        Head::Status { .. } | Head::Unreachable | Head::Panics => false,
    };
    if holds {
        return Ok(());
    }
    let how = format!("{}: {wait:?} before attempt {attempt} after {:?}", case.id, exchange.script.head);
    Err(Violation { invariant: Invariant::Retry, how })
}

/// Checks that the received text is kept, and that only complete calls are removed from it.
fn check_text(case: &Case, outcome: &Outcome, config: &WorkerConfig, cut: bool) -> Result<(), Violation> {
    let violation = |invariant, how: String| Err(Violation { invariant, how: format!("{}: {how}", case.id) });
    let replies = replies(case);
    if replies.iter().any(|(_, exchange)| exchange.script.content.is_noise) {
        return Ok(());
    }
    // If the driver panicked, only its events are left.
    if outcome.kind.as_deref() == Some("internal") && outcome.fail_reason == Some(FailReason::UnknownError) {
        return Ok(());
    }
    let mut rest = outcome.raw_text();
    let mut parts: Vec<(&str, Leaves)> = Vec::new();
    for (index, (turn, exchange)) in replies.iter().enumerate() {
        let is_last = index + 1 == replies.len();
        let content = &exchange.script.content;
        let whole = content.text();
        let is_silent = exchange.script.head != Head::Ok && !exchange.is_delivered();
        let least = match (is_last, cut) {
            (false, _) => whole.len(),
            (true, true) if content.loops => 0,
            (true, true) => exchange.text,
            (true, false) if is_silent || content.loops => 0,
            (true, false) if exchange.is_delivered() => whole.len(),
            (true, false) => exchange.text,
        };
        let came = common(rest, &whole);
        if came < least || (is_last && came < rest.len()) {
            let how = format!(
                "{least} bytes of {whole:?} were received, but {rest:?} of {:?} was kept",
                outcome.raw_text()
            );
            return violation(Invariant::RawText, how);
        }
        rest = &rest[came..];
        let succeeded = !is_last || outcome.state == FinalState::Completed;
        let mut left = came;
        let read = read_calls(content, &turn.generation, &config.run, cut && is_last);
        let is_made = |call: &Written| {
            read.iter().any(|read| std::ptr::eq(*read, call)) && is_call(call, &turn.generation, &config.run)
        };
        for part in &content.parts {
            let text = part.text();
            let is_whole = text.len() <= left;
            let text = &text[..text.len().min(left)];
            left -= text.len();
            let leaves = match part {
                Part::Written(written) if is_made(written) => {
                    match (succeeded, reads_text(content, &turn.generation)) {
                        // In a truncated reply, a call may lack only its closing tag.
                        _ if !is_whole && (!cut || !text.contains("}}")) => Leaves::No,
                        // The request may have ended before the structured calls arrived.
                        (false, false) if !exchange.is_delivered() => Leaves::Perhaps,
                        (_, false) => Leaves::No,
                        (true, true) => Leaves::Yes,
                        (false, true) => Leaves::Perhaps,
                    }
                }
                Part::Written(_) | Part::Plain(_) => Leaves::No,
            };
            parts.push((text, leaves));
        }
    }
    if is_without(&outcome.text, &parts) {
        return Ok(());
    }
    violation(Invariant::Text, format!("{:?} is the text of {parts:?}", outcome.text))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Yes,
    No,
    Perhaps,
}

/// Returns the length of the common prefix, in bytes.
fn common(a: &str, b: &str) -> usize {
    let same = |(a, b): &(char, char)| a == b;
    a.chars().zip(b.chars()).take_while(same).map(|(a, _)| a.len_utf8()).sum()
}

/// Whether `text` consists of the parts without the removed ones.
fn is_without(text: &str, parts: &[(&str, Leaves)]) -> bool {
    let Some(((part, leaves), rest)) = parts.split_first() else { return text.is_empty() };
    let stays = || text.strip_prefix(part).is_some_and(|text| is_without(text, rest));
    match leaves {
        Leaves::Yes => is_without(text, rest),
        Leaves::No => stays(),
        Leaves::Perhaps => stays() || is_without(text, rest),
    }
}

/// A signal: the tool, its arguments, and whether they are valid.
type SignalContent<'s> = (&'s str, Value, bool);

/// Whether the signals are those of the complete replies, followed by signals of the last, truncated reply. The last
/// exit call may itself be truncated.
fn are_in_order(signals: &[SignalContent<'_>], expected: &[SignalContent<'_>], certain: usize) -> bool {
    let Some((complete, rest)) = signals.split_at_checked(certain) else { return false };
    let is_cut = |part: &Value, whole: &Value| match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::String(part), whole) => whole.to_string().starts_with(part.as_str()),
        _ => false,
    };
    let mut last = expected[certain..].iter();
    complete == &expected[..certain]
        && rest.iter().all(|signal| {
            let (name, arguments, is_valid) = signal;
            last.any(|whole| {
                signal == whole || (*name == whole.0 && !is_valid && is_cut(arguments, &whole.1))
            })
        })
}

/// Checks that the signals are the exit calls of the replies, in order: structured calls, then calls written as text.
fn check_signals(case: &Case, outcome: &Outcome, config: &WorkerConfig, cut: bool) -> Result<(), Violation> {
    let replies = replies(case);
    let mut expected: Vec<SignalContent<'_>> = Vec::new();
    let (mut certain, mut usages, mut certain_usages) = (0, 0, 0);
    for (index, (turn, exchange)) in replies.iter().enumerate() {
        // The last reply of an interrupted request may be complete or not.
        (certain, certain_usages) = (expected.len(), usages);
        if !exchange.is_content_complete() && !cut {
            continue;
        }
        if exchange.script.content.end != ReplyEnd::Empty {
            usages += exchange.usages;
        }
        let content = &exchange.script.content;
        if content.is_noise {
            return Ok(());
        }
        let generation = &turn.generation;
        for call in content.calls.iter().filter(|call| generation.is_exit(&call.name)) {
            let is_valid =
                call.arguments.as_ref().is_some_and(|arguments| generation.accepts(&call.name, arguments));
            let arguments = call.arguments.clone().unwrap_or_else(|| Value::String(call.text.clone()));
            expected.push((&call.name, arguments, is_valid));
        }
        let is_last = index + 1 == replies.len();
        let lacks_calls = cut && is_last && !exchange.is_delivered();
        if (reads_text(content, generation) || lacks_calls) && (cut || !content.loops) {
            let read = read_calls(content, generation, &config.run, cut && is_last).into_iter();
            for call in
                read.filter(|call| is_call(call, generation, &config.run) && generation.is_exit(&call.name))
            {
                let is_valid = generation.accepts(&call.name, &call.arguments);
                expected.push((&call.name, call.arguments.clone(), is_valid));
            }
        }
    }
    let signals: Vec<SignalContent<'_>> = outcome
        .signals
        .iter()
        .map(|Signal { tool_name, arguments, arguments_error, .. }| {
            (tool_name.as_str(), arguments.clone(), arguments_error.is_none())
        })
        .collect();
    let tokens = outcome.usage.map_or(0, |usage| usage.prompt_tokens);
    let whole = signals == expected && tokens == usages * PROMPT_TOKENS;
    let known = [usages, certain_usages].map(|usages| usages * PROMPT_TOKENS);
    if whole || (cut && are_in_order(&signals, &expected, certain) && known.contains(&tokens)) {
        return Ok(());
    }
    let how = format!(
        "{}: {signals:?} and {tokens} tokens, but the script has {expected:?} and {usages} token counts",
        case.id
    );
    Err(Violation { invariant: Invariant::Signals, how })
}
