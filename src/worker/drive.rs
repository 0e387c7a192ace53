//! One request: asks the machine, does it, tells the machine.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::handle::Shared;
use super::record::Record;
use super::recording::{Line, Recorder, Stopped};
use super::toolbox::Toolbox;
use super::turn;
use crate::chat::BodyForm;
use crate::request::{Event, FailReason, Failure, Run, Step, kind};
use crate::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};

/// A runner that does not stop a call itself is given up this long after the call's limit.
const TOOL_GRACE: Duration = Duration::from_secs(1);

/// What the task of one request holds.
pub(super) struct Drive {
    pub(super) shared: Arc<Shared>,
    pub(super) record: Arc<Record>,
    pub(super) clock: Arc<Clock>,
    pub(super) recorder: Option<Arc<Recorder>>,
    pub(super) cancel: CancellationToken,
    /// Where the jitter of waits comes from.
    pub(super) id_seed: u64,
}

/// Drives `run` to its end.
pub(super) async fn drive(task: Drive, mut run: Run) {
    let total = task.shared.config.timers.total.and_then(|limit| Instant::now().checked_add(limit));
    let mut form = BodyForm::default();
    let mut toolbox = task.shared.tools.current();
    task.publish(&mut run);
    loop {
        if run.begins_turn() {
            let newest = task.shared.tools.current();
            if newest.generation != toolbox.generation {
                let detail = task.shared.tools.changes_since(toolbox.generation);
                task.publish_own(&run, Event::Reloaded { generation: newest.generation, detail });
            }
            toolbox = newest;
        }
        let step = run.next_step(&toolbox.tools, task.shared.bios.as_ref());
        task.publish(&mut run);
        match step {
            Step::Finished => return,
            Step::Stream(request) => {
                turn::stream(&task, &mut run, &toolbox, request, &mut form, total).await;
            }
            Step::CallTool { call, timeout } => {
                task.call_tool(&mut run, &toolbox, call, timeout, total).await;
            }
            Step::Wait => {
                let detail = "the request machine waits for a reply that nobody asked for";
                task.fail(&mut run, Failure::new(FailReason::UnknownError, kind::INTERNAL, detail));
            }
        }
        task.publish(&mut run);
    }
}

impl Drive {
    /// Passes on what the machine said.
    pub(super) fn publish(&self, run: &mut Run) {
        let events = run.take_events();
        if run.outcome().is_some() {
            self.shared.release(run.request_id(), &self.record);
        }
        if !events.is_empty() {
            self.record.publish(events, run.status());
        }
    }

    /// Passes on what only the driver knows.
    pub(super) fn publish_own(&self, run: &Run, event: Event) {
        self.record.publish(vec![event], run.status());
    }

    /// Something happened: the clock ticks, and it is recorded.
    pub(super) fn write(&self, line: impl FnOnce(u64) -> Line) {
        self.clock.tick();
        if let Some(recorder) = &self.recorder {
            recorder.write(&line(self.clock.now_ms()));
        }
    }

    /// As [`Drive::write`], of a piece of a body.
    pub(super) fn write_data(&self, bytes: &[u8]) {
        self.clock.tick();
        if let Some(recorder) = &self.recorder {
            recorder.data(self.clock.now_ms(), bytes);
        }
    }

    /// Ends the request by a failure of the driver's own: a timer, the transport.
    pub(super) fn fail(&self, run: &mut Run, failure: Failure) {
        self.write(|at_ms| Line::Stopped(Stopped { at_ms, failure: Some(failure.clone()) }));
        run.fail(failure, self.clock.now_ms());
    }

    /// Ends the request because its submitter gave it up.
    pub(super) fn give_up(&self, run: &mut Run) {
        self.write(|at_ms| Line::Stopped(Stopped { at_ms, failure: None }));
        run.cancel(self.clock.now_ms());
    }

    pub(super) fn total_timeout(&self, run: &mut Run) {
        let limit = self.shared.config.timers.total.unwrap_or_default();
        let detail = format!("the request took longer than {} (the worker's :total)", seconds(limit));
        self.fail(run, Failure::new(FailReason::UnknownError, kind::TOTAL_TIMEOUT, detail));
    }

    /// Ends the request where the recorded one was ended.
    pub(super) fn stop(&self, run: &mut Run, failure: Option<Failure>) {
        match failure {
            Some(failure) => self.fail(run, failure),
            None => self.give_up(run),
        }
    }

    async fn call_tool(
        &self,
        run: &mut Run,
        toolbox: &Toolbox,
        call: ToolCall,
        timeout: Option<Duration>,
        total: Option<Instant>,
    ) {
        if let Some(Stopped { at_ms, failure }) = self.clock.stopped_in_tool() {
            self.clock.reach(at_ms);
            return self.stop(run, failure);
        }
        let limit = timeout.unwrap_or(self.shared.config.timers.tool);
        let context = CallContext {
            request_id: run.request_id().to_owned(),
            job_name: run.job_name().to_owned(),
            worker: run.config().worker.clone(),
            timeout: Some(limit),
            meter: None,
        };
        let id = call.id.clone();
        self.clock.tick();
        let started_ms = self.clock.now_ms();
        // A runner that panics fails its call, not the driver.
        let calling = AssertUnwindSafe(async { toolbox.runner.run(call, context).await }).catch_unwind();
        let result: Result<Value, ToolError> = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return self.give_up(run),
            () = until(total) => return self.total_timeout(run),
            result = tokio::time::timeout(limit.saturating_add(TOOL_GRACE), calling) => match result {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => Err(ToolError::new(ToolErrorKind::Internal, describe_panic(panic.as_ref()))),
                Err(_) => {
                    let message = format!("no result within {}", seconds(limit));
                    Err(ToolError::new(ToolErrorKind::Timeout, message))
                }
            }
        };
        self.clock.tool_finished();
        self.write(|finished_ms| Line::Tool { started_ms, finished_ms });
        run.on_tool_result(&id, result, self.clock.now_ms());
    }
}

fn describe_panic(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it said nothing");
    format!("the tool's runner panicked: {said}")
}

/// Sleeps until then, or for ever.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A limit as a person writes it: `30 s`, `0.2 s`.
pub(super) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}
