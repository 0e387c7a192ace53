//! The calls of one reply, being answered: tools that run, people that are asked.
//!
//! Which calls, in which order and with what result is the request machine's; here are their futures and time limits.
//! A call that is given up is dropped, which stops what it started, and before the end of its request is told.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use super::drive::{Drive, seconds, until};
use super::recording::{Line, Stopped};
use super::replay::{CallPlan, Next, Script};
use super::toolbox::Toolbox;
use crate::request::{Approval, FailReason, Failure, PendingCall, Run, kind};
use crate::script::MAX_GRACE;
use crate::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};

/// A runner that does not stop a call itself is given up this long after the call's limit: later than scripts are, which
/// say where they were stopped.
const TOOL_GRACE: Duration = Duration::from_secs(1);
const _: () = assert!(TOOL_GRACE.as_millis() > MAX_GRACE.as_millis());

/// What a worker does where a call needs a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approvals {
    /// Tells it by an `approval` event and waits for [`super::Worker::approve`].
    #[default]
    Ask,
    /// Makes the call.
    Allow,
    /// Refuses it.
    Refuse,
}

/// One call on its way to an answer.
struct OpenCall {
    id: String,
    name: String,
    needs_approval: bool,
    answer: BoxFuture<'static, Answer>,
    /// Its answer, where another one's turn comes first.
    ready: Option<Answer>,
    /// The recorded call was given up, and so is this one: there will be no answer.
    is_given_up: bool,
}

/// What came of it.
enum Answer {
    Approval(Approval),
    Tool(Result<Value, ToolError>),
}

/// Answers the calls that `run` names, until it names none.
pub(super) async fn answer(task: &Drive, run: &mut Run, toolbox: &Toolbox, total: Option<Instant>) {
    let mut open: Vec<OpenCall> = Vec::new();
    loop {
        let listed: HashMap<&str, bool> = run.open_calls().collect();
        open.retain(|call| listed.get(call.id.as_str()) == Some(&call.needs_approval));
        let is_over = listed.is_empty();
        // What was given up is gone before its end is told.
        task.publish(run);
        if is_over {
            return;
        }
        if let Some(Next::Stop(Stopped { at_ms, failure, .. })) =
            task.script.as_ref().map(|script| script.next_answer())
        {
            task.clock.reach(at_ms);
            return task.stop(run, failure);
        }
        let begun: HashSet<&str> = open.iter().map(|call| call.id.as_str()).collect();
        let listed = run.open_calls().filter(|(id, _)| !begun.contains(id));
        let listed = listed.filter_map(|(id, _)| run.pending_call(id));
        let new: Vec<OpenCall> = listed.map(|listed| begin(task, run, toolbox, listed)).collect();
        open.extend(new);
        if open.iter().all(|call| call.is_given_up) {
            return end_given_up(task, run);
        }
        let (call, answer) = tokio::select! {
            biased;
            () = task.cancel.cancelled() => return task.give_up(run),
            () = until(total) => return task.total_timeout(run),
            answered = next_answer(&mut open, task.script.as_deref()) => answered,
        };
        match answer {
            Answer::Approval(approval) => {
                if let Some(script) = &task.script {
                    script.approved(&call.id, &call.name);
                }
                task.write(|at_ms| {
                    let OpenCall { id, name, .. } = &call;
                    Line::Approval { at_ms, id: id.clone(), name: name.clone(), answer: approval.clone() }
                });
                run.on_approval(&call.id, approval, task.clock.now_ms());
            }
            Answer::Tool(result) => {
                if let Some(script) = &task.script {
                    script.finished(&call.id, &result);
                }
                task.write(|at_ms| {
                    let OpenCall { id, name, .. } = &call;
                    let (result, error) = match result.clone() {
                        Ok(value) => (Some(value), None),
                        Err(error) => (None, Some(error)),
                    };
                    Line::ToolFinished { at_ms, id: id.clone(), name: name.clone(), result, error }
                });
                run.on_tool_result(&call.id, result, task.clock.now_ms());
            }
        }
    }
}

/// Only calls are left to which the recording has no answer: it was stopped before, or has other ones.
fn end_given_up(task: &Drive, run: &mut Run) {
    if let Some(Stopped { at_ms, failure, .. }) = task.script.as_ref().and_then(|script| script.stopped()) {
        task.clock.reach(at_ms);
        return task.stop(run, failure);
    }
    let detail = "the recorded calls were given up before they gave anything";
    task.fail(run, Failure::new(FailReason::UnknownError, kind::REPLAY_DIFFERS, detail));
}

/// The call that is answered next: the first that is, in a replay the one that was. There are few: an emission's.
async fn next_answer(open: &mut Vec<OpenCall>, script: Option<&Script>) -> (OpenCall, Answer) {
    poll_fn(|context| {
        for call in open.iter_mut().filter(|call| call.ready.is_none()) {
            if let Poll::Ready(answer) = call.answer.poll_unpin(context) {
                call.ready = Some(answer);
                if script.is_none() {
                    break;
                }
            }
        }
        let recorded = script.and_then(|script| match script.next_answer() {
            Next::Of { id, is_approval } => {
                let is_it = |call: &OpenCall| call.id == id && call.needs_approval == is_approval;
                open.iter().position(|call| is_it(call) && !call.is_given_up)
            }
            Next::Any | Next::Stop(_) => None,
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

fn begin(task: &Drive, run: &Run, toolbox: &Toolbox, listed: PendingCall) -> OpenCall {
    let PendingCall { call, timeout, needs_approval } = listed;
    let (id, name) = (call.id.clone(), call.name.clone());
    let mut is_given_up = false;
    let answer = if needs_approval {
        ask(task, &id)
    } else {
        let limit = timeout.unwrap_or(task.shared.config.timers.tool);
        let context = CallContext {
            request_id: run.request_id().to_owned(),
            job_name: run.job_name().to_owned(),
            worker: run.config().worker.clone(),
            timeout: Some(limit),
            meter: None,
        };
        task.write(|at_ms| {
            let ToolCall { id, name, arguments } = call.clone();
            Line::ToolStarted { at_ms, id, name, arguments: Value::Object(arguments) }
        });
        let allows = task.shared.config.approvals == Approvals::Allow;
        match task.script.as_ref().map_or(CallPlan::Run, |script| script.begin_call(&call, allows)) {
            CallPlan::Run => call_tool(toolbox, call, context, limit),
            CallPlan::Give(result, wait) => after(wait, Answer::Tool(result)),
            CallPlan::Never => {
                is_given_up = true;
                std::future::pending().boxed()
            }
        }
    };
    OpenCall { id, name, needs_approval, answer, ready: None, is_given_up }
}

fn after(wait: Option<Duration>, answer: Answer) -> BoxFuture<'static, Answer> {
    async move {
        if let Some(wait) = wait {
            tokio::time::sleep(wait).await;
        }
        answer
    }
    .boxed()
}

fn ask(task: &Drive, id: &str) -> BoxFuture<'static, Answer> {
    if let Some(script) = &task.script {
        let (approval, wait) = script.approval(id);
        return after(wait, Answer::Approval(approval));
    }
    let id = id.to_owned();
    let record = Arc::clone(&task.record);
    let approvals = task.shared.config.approvals;
    async move {
        Answer::Approval(match approvals {
            Approvals::Allow => Approval::Allowed,
            Approvals::Refuse => Approval::Refused { reason: String::from("nobody can be asked") },
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
        // A runner that panics fails its call, not the driver.
        let calling = AssertUnwindSafe(async { runner.run(call, context).await }).catch_unwind();
        let result = match tokio::time::timeout(limit.saturating_add(TOOL_GRACE), calling).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                let message = format!("the tool's runner panicked: {}", panic_message(panic.as_ref()));
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

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it said nothing")
}
