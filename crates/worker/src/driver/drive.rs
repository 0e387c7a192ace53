//! The driver of one request: executes the steps of the request machine and reports the results to it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deftool_chat::request::{Event, FailReason, Failure, FailureKind, Run, Step};
use deftool_chat::{BodyEncoder, BodyForm};
use deftool_record::{Durability, Line, Stopped};
use futures_util::FutureExt;
use tokio::time::Instant;

use super::task::RequestTask;
use super::{calls, turn};
use crate::time::until;
use deftool_lang::tool::Toolbox;

/// Runs a request and frees its slot, even if the driver panics. `task` and `run` are boxed, because a future contains
/// its arguments twice.
pub(crate) async fn supervise(task: Box<RequestTask>, run: Box<Run>, id: String) {
    let shared = Arc::clone(&task.shared);
    let record = Arc::clone(&task.record);
    if let Err(panic) = AssertUnwindSafe(drive(task, run)).catch_unwind().await {
        let cause = calls::panic_message(panic.as_ref());
        let detail = format!(
            "internal error: the driver of this request failed; this is a bug in deftool: it panicked: {cause}"
        );
        shared.release(&id, &record);
        let failure = Failure::new(FailReason::UnknownError, FailureKind::Internal, detail);
        record.abandon(shared.config.journal.as_ref(), &id, failure);
    }
}

/// Drives `run` to its end.
async fn drive(task: Box<RequestTask>, mut run: Box<Run>) {
    let total = task.shared.config.timers.total.and_then(|limit| Instant::now().checked_add(limit));
    let api = task.shared.config.api;
    let mut form =
        BodyForm { api, server: task.server, fallbacks: task.body_fallbacks, ..BodyForm::default() };
    let mut encoder = BodyEncoder::default();
    // Published before anything can fail, so that `submitted` is always the first event.
    task.publish(&mut run);
    if !task.wait_for_slot(&mut run, total).await {
        return task.publish(&mut run);
    }
    let newest = |run: &Run| task.shared.toolbox(run.options());
    let mut toolbox = task.toolbox.clone().unwrap_or_else(|| newest(&run));
    loop {
        if run.begins_turn() {
            let newest = newest(&run);
            task.report_reload(&run, &toolbox, &newest);
            task.generation.store(newest.generation, Ordering::Relaxed);
            toolbox = newest;
        }
        let step = run.next_step(&toolbox.tools, task.shared.config.bios.as_ref());
        task.publish(&mut run);
        match step {
            Step::Finished => return,
            // Earlier turns and calls must be in the journal, so that they are not repeated after the process ends.
            Step::Stream(_) if !task.commit(&mut run, Durability::Process).await => {}
            Step::Stream(request) => {
                turn::stream(&task, &mut run, &toolbox, &request, &mut form, &mut encoder, total).await;
            }
            Step::AnswerCalls(calls) => {
                // Their arguments may be large.
                drop(calls);
                calls::answer(&task, &mut run, &toolbox, total).await;
            }
            Step::Wait => {
                let detail = "the request machine waits for a reply, but no request was sent";
                task.fail(&mut run, Failure::new(FailReason::UnknownError, FailureKind::Internal, detail));
            }
        }
        task.publish(&mut run);
    }
}

impl RequestTask {
    /// Waits for the request's slot. Returns `false` if the request ends first.
    async fn wait_for_slot(&self, run: &mut Run, total: Option<Instant>) -> bool {
        let recorded = self.cursor.as_ref().and_then(|cursor| cursor.stopped());
        if let Some(Stopped { at_ms, failure, in_queue: true, .. }) = recorded {
            self.record.clock.advance_to(at_ms);
            self.end_in_queue(run, failure);
            return false;
        }
        let failure = tokio::select! {
            biased;
            () = self.cancel.cancelled() => self.record.stop_reason(),
            () = until(total) => Some(self.total_failure()),
            () = self.record.slot() => return true,
        };
        self.end_in_queue(run, failure);
        false
    }

    fn end_in_queue(&self, run: &mut Run, failure: Option<Failure>) {
        let stopped = |at_ms| Stopped { in_queue: true, ..Stopped::of(at_ms, failure.clone()) };
        self.write(|at_ms| Line::Stopped(stopped(at_ms)));
        match failure {
            Some(failure) => run.fail(failure, self.record.clock.now_ms()),
            None => run.cancel(self.record.clock.now_ms()),
        }
    }

    /// Reports that the tools changed since the previous turn. A replay reports what the recording contains.
    fn report_reload(&self, run: &Run, before: &Toolbox, newest: &Toolbox) {
        let turn = run.turn().0 + 1;
        let reload = match &self.cursor {
            Some(cursor) => cursor.reload_before(turn),
            None if newest.generation == before.generation => None,
            None => Some((newest.generation, self.shared.tools.changes_since(before.generation))),
        };
        let Some((generation, detail)) = reload else { return };
        self.tick();
        self.publish_own(run, Event::Reloaded { generation, detail });
    }
}
