//! The calls of one reply, being answered: tools that run, people that are asked.
//!
//! Which calls, in which order and with what result is the request machine's; here are their futures and time limits.
//! A call that is given up is dropped, which stops what it started.

use std::any::Any;
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
use super::toolbox::Toolbox;
use crate::request::{Approval, PendingCall, Run};
use crate::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};

/// A runner that does not stop a call itself is given up this long after the call's limit.
const TOOL_GRACE: Duration = Duration::from_secs(1);

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
    needs_approval: bool,
    answer: BoxFuture<'static, Answer>,
}

/// What came of it.
enum Answer {
    Approval(Approval),
    Tool { started_ms: u64, result: Result<Value, ToolError> },
}

/// Answers the calls that `run` names, until it names none.
pub(super) async fn answer(task: &Drive, run: &mut Run, toolbox: &Toolbox, total: Option<Instant>) {
    let mut open: Vec<OpenCall> = Vec::new();
    loop {
        let pending = run.pending_calls();
        if pending.is_empty() {
            return;
        }
        let is_listed = |call: &OpenCall| {
            pending
                .iter()
                .any(|listed| listed.call.id == call.id && listed.needs_approval == call.needs_approval)
        };
        open.retain(is_listed);
        for listed in pending {
            if open.iter().any(|call| call.id == listed.call.id) {
                continue;
            }
            if let Some(Stopped { at_ms, failure }) = task.clock.stopped_in_tool() {
                task.clock.reach(at_ms);
                return task.stop(run, failure);
            }
            open.push(begin(task, run, toolbox, listed));
        }
        let (id, answer) = tokio::select! {
            biased;
            () = task.cancel.cancelled() => return task.give_up(run),
            () = until(total) => return task.total_timeout(run),
            answered = next_answer(&mut open) => answered,
        };
        match answer {
            Answer::Approval(approval) => {
                task.clock.tick();
                run.on_approval(&id, approval, task.clock.now_ms());
            }
            Answer::Tool { started_ms, result } => {
                task.clock.tool_finished();
                task.write(|finished_ms| Line::Tool { started_ms, finished_ms });
                run.on_tool_result(&id, result, task.clock.now_ms());
            }
        }
        task.publish(run);
    }
}

/// The first call that is answered. There are few: an emission's.
async fn next_answer(open: &mut Vec<OpenCall>) -> (String, Answer) {
    poll_fn(|context| {
        for index in 0..open.len() {
            let Some(call) = open.get_mut(index) else { break };
            if let Poll::Ready(answer) = call.answer.poll_unpin(context) {
                return Poll::Ready((open.remove(index).id, answer));
            }
        }
        Poll::Pending
    })
    .await
}

fn begin(task: &Drive, run: &Run, toolbox: &Toolbox, listed: PendingCall) -> OpenCall {
    let PendingCall { call, timeout, needs_approval } = listed;
    let id = call.id.clone();
    let answer = if needs_approval {
        ask(task, id.clone())
    } else {
        let limit = timeout.unwrap_or(task.shared.config.timers.tool);
        let context = CallContext {
            request_id: run.request_id().to_owned(),
            job_name: run.job_name().to_owned(),
            worker: run.config().worker.clone(),
            timeout: Some(limit),
            meter: None,
        };
        task.clock.tick();
        call_tool(toolbox, call, context, limit, task.clock.now_ms())
    };
    OpenCall { id, needs_approval, answer }
}

fn ask(task: &Drive, id: String) -> BoxFuture<'static, Answer> {
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
    started_ms: u64,
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
        Answer::Tool { started_ms, result }
    }
    .boxed()
}

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it said nothing")
}
