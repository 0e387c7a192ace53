//! Answers the calls of one reply: runs tools and requests approvals.
//!
//! The request machine selects the calls, their order and their results; this module manages their futures and time
//! limits. An abandoned call is dropped, which stops its work, before the end of its request is published.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use deftool_chat::request::{Approval, FailReason, Failure, FailureKind, PendingCall, Run};
use deftool_lang::spec::Effect;
use deftool_lang::text::fnv1a;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput};
use deftool_record::{CallPlan, Durability, NextAnswer, ReplayCursor, Stopped};
use deftool_script::MAX_GRACE;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::task::RequestTask;
use crate::config::Approvals;
use crate::observer::Observation;
use crate::time::{seconds, until};
use deftool_lang::tool::Toolbox;

/// Time between the limit of a call and the abandonment of its runner. Scripts stop earlier, with their own error
/// message.
const TOOL_GRACE: Duration = Duration::from_secs(1);
const _: () = assert!(TOOL_GRACE.as_millis() > MAX_GRACE.as_millis());

/// A call without an accepted answer.
struct OpenCall {
    id: String,
    name: String,
    needs_approval: bool,
    answer: BoxFuture<'static, Answer>,
    /// The answer, if it has arrived but another call must be answered first.
    ready: Option<Answer>,
    /// Whether the recorded call was abandoned. If so, this call has no answer either.
    is_abandoned: bool,
}

/// The answer to a call.
enum Answer {
    Approval(Approval),
    Tool(Result<ToolOutput, ToolError>),
}

/// Answers the open calls of `run` until none is left.
pub(super) async fn answer(task: &RequestTask, run: &mut Run, toolbox: &Toolbox, total: Option<Instant>) {
    let mut open: Vec<OpenCall> = Vec::new();
    loop {
        let listed: HashMap<&str, bool> = run.open_calls().collect();
        open.retain(|call| listed.get(call.id.as_str()) == Some(&call.needs_approval));
        let is_over = listed.is_empty();
        // Abandoned calls are dropped before the end of the request is published.
        task.publish(run);
        if is_over {
            return;
        }
        if let Some(NextAnswer::Stop(Stopped { at_ms, failure, .. })) =
            task.cursor.as_ref().map(|cursor| cursor.next_answer())
        {
            task.record.clock.advance_to(at_ms);
            return task.stop(run, failure);
        }
        let known: HashSet<&str> = open.iter().map(|call| call.id.as_str()).collect();
        let listed = run.open_calls().filter(|(id, _)| !known.contains(id));
        let listed = listed.filter_map(|(id, _)| run.pending_call(id));
        let listed: Vec<PendingCall> = listed.collect();
        let has_effect = listed.iter().any(|call| call.effect != Effect::Pure && !call.needs_approval);
        let durability = if has_effect { Durability::Machine } else { Durability::Process };
        if !listed.is_empty() && !task.commit(run, durability).await {
            continue;
        }
        let new: Vec<OpenCall> = listed.into_iter().map(|listed| begin(task, run, toolbox, listed)).collect();
        open.extend(new);
        if open.iter().all(|call| call.is_abandoned) {
            return end_abandoned(task, run);
        }
        let (call, answer) = tokio::select! {
            biased;
            () = task.cancel.cancelled() => return task.end_canceled(run),
            () = until(total) => return task.total_timeout(run),
            answered = next_answer(&mut open, task.cursor.as_deref()) => answered,
        };
        match answer {
            Answer::Approval(approval) => {
                if let Some(cursor) = &task.cursor {
                    cursor.on_approval(&call.id, &call.name);
                }
                task.tick();
                run.on_approval(&call.id, approval, task.record.clock.now_ms());
            }
            Answer::Tool(result) => {
                if let Some(cursor) = &task.cursor {
                    cursor.on_result(&call.id, &result);
                }
                task.tick();
                run.on_tool_result(&call.id, result, task.record.clock.now_ms());
            }
        }
    }
}

/// Ends the request when the recording has no answer to the remaining calls: the recorded request was stopped, or its
/// calls differ.
fn end_abandoned(task: &RequestTask, run: &mut Run) {
    if let Some(Stopped { at_ms, failure, .. }) = task.cursor.as_ref().and_then(|cursor| cursor.stopped()) {
        task.record.clock.advance_to(at_ms);
        return task.stop(run, failure);
    }
    let detail = "the recorded calls were abandoned before they returned a result";
    task.fail(run, Failure::new(FailReason::UnknownError, FailureKind::ReplayDiffers, detail));
}

/// Waits for the next answer: in a replay the next recorded answer, otherwise the first that arrives. Searches linearly
/// because the number of calls is small.
async fn next_answer(open: &mut Vec<OpenCall>, cursor: Option<&ReplayCursor>) -> (OpenCall, Answer) {
    poll_fn(|context| {
        for call in open.iter_mut().filter(|call| call.ready.is_none()) {
            if let Poll::Ready(answer) = call.answer.poll_unpin(context) {
                call.ready = Some(answer);
                if cursor.is_none() {
                    break;
                }
            }
        }
        let recorded = cursor.and_then(|cursor| match cursor.next_answer() {
            NextAnswer::Of { id, is_approval } => {
                let is_it = |call: &OpenCall| call.id == id && call.needs_approval == is_approval;
                open.iter().position(|call| is_it(call) && !call.is_abandoned)
            }
            NextAnswer::Any | NextAnswer::Stop(_) => None,
        });
        let first = || open.iter().position(|call| call.ready.is_some());
        let answered = recorded.or_else(first).and_then(|index| {
            let answer = open.get_mut(index)?.ready.take()?;
            Some((open.remove(index), answer))
        });
        answered.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Begins to answer a call.
fn begin(task: &RequestTask, run: &Run, toolbox: &Toolbox, listed: PendingCall) -> OpenCall {
    let PendingCall { call, timeout, needs_approval, effect } = listed;
    let (id, name) = (call.id.clone(), call.name.clone());
    let mut is_abandoned = false;
    let answer = if needs_approval {
        request_approval(task, &id)
    } else {
        let limit = timeout.unwrap_or(task.shared.config.timers.tool);
        let context = CallContext {
            request_id: run.request_id().to_owned(),
            call_id: id.clone(),
            job_name: run.job_name().to_owned(),
            worker: run.config().worker.clone(),
            idempotency_key: idempotency_key(run.request_id(), &id),
            effect,
            trace: task.trace.operation(),
            timeout: Some(limit),
            meter: None,
        };
        task.tick();
        task.observe(Observation::Calling { span: context.trace.as_ref(), call: &call });
        let allows = task.shared.config.approvals == Approvals::Allow;
        match task.cursor.as_ref().map_or(CallPlan::Run, |cursor| cursor.begin_call(&call, allows)) {
            CallPlan::Run => call_tool(toolbox, call, context, limit),
            CallPlan::Return(result) => std::future::ready(Answer::Tool(result)).boxed(),
            CallPlan::Never => {
                is_abandoned = true;
                std::future::pending().boxed()
            }
        }
    };
    OpenCall { id, name, needs_approval, answer, ready: None, is_abandoned }
}

/// Returns the idempotency key of a call. A server may send an id that is too long for a header: then its hash counts.
fn idempotency_key(request_id: &str, call_id: &str) -> String {
    const MAX_LENGTH: usize = 64;
    if call_id.len() <= MAX_LENGTH {
        return format!("{request_id}-{call_id}");
    }
    // Another version of deftool may run the call again.
    format!("{request_id}-{:016x}", fnv1a(call_id.bytes()))
}

fn request_approval(task: &RequestTask, id: &str) -> BoxFuture<'static, Answer> {
    if let Some(cursor) = &task.cursor {
        return std::future::ready(Answer::Approval(cursor.approval(id))).boxed();
    }
    let id = id.to_owned();
    let record = Arc::clone(&task.record);
    let approvals = task.shared.config.approvals;
    async move {
        Answer::Approval(match approvals {
            Approvals::Allow => Approval::Allowed,
            Approvals::Refuse => {
                Approval::Refused { reason: String::from("no user is available to confirm the call") }
            }
            Approvals::Ask => record.approval(&id).await,
        })
    }
    .boxed()
}

fn call_tool(
    toolbox: &Toolbox,
    call: ToolCall,
    context: CallContext,
    limit: Duration,
) -> BoxFuture<'static, Answer> {
    let runner = Arc::clone(&toolbox.runner);
    async move {
        // A panic of the runner fails the call, not the driver.
        let calling = AssertUnwindSafe(async { runner.run(call, context).await }).catch_unwind();
        let result = match tokio::time::timeout(limit.saturating_add(TOOL_GRACE), calling).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                let message = format!("the tool runner panicked: {}", panic_message(panic.as_ref()));
                Err(ToolError::new(ToolErrorKind::Internal, message))
            }
            Err(_) => {
                let message = format!("no result within {}", seconds(limit));
                Err(ToolError::new(ToolErrorKind::Timeout, message))
            }
        };
        Answer::Tool(result)
    }
    .boxed()
}

/// Returns the message of a panic.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no panic message")
}
