//! The driver of one request: executes the steps of the request machine and reports the results to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deftool_chat::request::{Event, FailReason, Failure, Outcome, Run, Step, kind};
use deftool_chat::{BodyFallbacks, BodyForm, Capabilities};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::handle::Shared;
use super::record::RequestRecord;
use super::recording::{Line, RequestRecorder, Stopped};
use super::replay::ReplayCursor;
use super::toolbox::Toolbox;
use super::transport::Outgoing;
use super::{calls, turn};

/// The state of the task of one request.
pub(super) struct Drive {
    pub(super) shared: Arc<Shared>,
    pub(super) record: Arc<RequestRecord>,
    pub(super) clock: Arc<Clock>,
    pub(super) recorder: Option<RequestRecorder>,
    /// Position in the recorded request, in a replay.
    pub(super) cursor: Option<Arc<ReplayCursor>>,
    pub(super) cancel: CancellationToken,
    /// Seed of call ids and of the jitter of retry delays.
    pub(super) id_seed: u64,
    /// The request variants that the server required when the request began.
    pub(super) body_fallbacks: BodyFallbacks,
    /// Capabilities of the server.
    pub(super) server: Capabilities,
    /// Generation of the tools of the current turn.
    pub(super) generation: AtomicU64,
}

/// Drives `run` to its end.
pub(super) async fn drive(task: Drive, mut run: Run) {
    let total = task.shared.config.timers.total.and_then(|limit| Instant::now().checked_add(limit));
    let api = task.shared.config.api;
    let mut form = BodyForm { api, stream: true, server: task.server, fallbacks: task.body_fallbacks };
    // Published before anything can fail, so that `submitted` is always the first event.
    task.publish(&mut run);
    if !task.wait_for_slot(&mut run, total).await {
        return task.publish(&mut run);
    }
    let mut toolbox = task.toolbox(&run);
    loop {
        if run.begins_turn() {
            let newest = task.toolbox(&run);
            task.report_reload(&run, &toolbox, &newest);
            task.generation.store(newest.generation, Ordering::Relaxed);
            toolbox = newest;
        }
        let step = run.next_step(&toolbox.tools, task.shared.config.bios.as_ref());
        task.publish(&mut run);
        match step {
            Step::Finished => return,
            Step::Stream(request) => {
                turn::stream(&task, &mut run, &toolbox, request, &mut form, total).await;
            }
            Step::AnswerCalls(_) => calls::answer(&task, &mut run, &toolbox, total).await,
            Step::Wait => {
                let detail = "the request machine waits for a reply, but no request was sent";
                task.fail(&mut run, Failure::new(FailReason::UnknownError, kind::INTERNAL, detail));
            }
        }
        task.publish(&mut run);
    }
}

impl Drive {
    /// Returns the URL for messages.
    pub(super) fn url(&self) -> &str {
        self.shared.transport.url(self.shared.config.api)
    }

    /// Waits for the request's slot. Returns `false` if the request ended before.
    async fn wait_for_slot(&self, run: &mut Run, total: Option<Instant>) -> bool {
        let recorded = self.cursor.as_ref().and_then(|cursor| cursor.stopped());
        if let Some(Stopped { at_ms, failure, in_queue: true }) = recorded {
            self.clock.reach(at_ms);
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
        let stopped = |at_ms| Stopped { at_ms, failure: failure.clone(), in_queue: true };
        self.write(|at_ms| Line::Stopped(stopped(at_ms)));
        match failure {
            Some(failure) => run.fail(failure, self.clock.now_ms()),
            None => run.cancel(self.clock.now_ms()),
        }
    }

    /// Returns the newest tools, limited to those that the request may call.
    fn toolbox(&self, run: &Run) -> Toolbox {
        let mut toolbox = self.shared.tools.current();
        if let Some(names) = &run.options().tools {
            toolbox.tools = toolbox.tools.only(names);
        }
        toolbox
    }

    /// Publishes the events of the machine.
    pub(super) fn publish(&self, run: &mut Run) {
        let events = run.take_events();
        if let Some(Event::Finished(outcome)) = events.last() {
            // Before the event is published: its receiver may move the recording.
            self.end(outcome);
        }
        if run.outcome().is_some() {
            self.shared.release(run.request_id(), &self.record);
        }
        if !events.is_empty() {
            self.record.publish(events, run.status(), run.conversation());
        }
    }

    /// Publishes an event of the driver.
    pub(super) fn publish_own(&self, run: &Run, event: Event) {
        self.record.publish(vec![event], run.status(), run.conversation());
    }

    /// Advances the clock and records a line.
    pub(super) fn write(&self, line: impl FnOnce(u64) -> Line) {
        self.clock.tick();
        if let Some(recorder) = &self.recorder {
            recorder.write(line(self.clock.now_ms()));
        }
    }

    /// Like [`Drive::write`], for a chunk of a body.
    pub(super) fn write_data(&self, bytes: &[u8]) {
        self.clock.tick();
        if let Some(recorder) = &self.recorder {
            recorder.data(self.clock.now_ms(), bytes);
        }
    }

    /// Returns the recording line of a chat request.
    pub(super) fn request_line(&self, run: &Run, outgoing: &Outgoing, at_ms: u64) -> Line {
        Line::Request {
            turn: outgoing.turn,
            attempt: outgoing.attempt,
            at_ms,
            tools: Some(run.turn().1.to_owned()),
            generation: Some(self.generation.load(Ordering::Relaxed)),
            body: outgoing.body.clone(),
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
        self.write(|at_ms| {
            let tools = newest.tools.digest().to_owned();
            Line::Reloaded { at_ms, turn, generation, tools, detail: detail.clone() }
        });
        self.publish_own(run, Event::Reloaded { generation, detail });
    }

    /// Passes the outcome to the recorder and to the replay.
    fn end(&self, outcome: &Outcome) {
        if let Some(cursor) = &self.cursor {
            cursor.ended(outcome);
        }
        self.write(|at_ms| Line::Finished {
            at_ms,
            outcome: serde_json::to_value(outcome).unwrap_or_default(),
        });
    }

    /// Ends the request with a failure of a timer or the transport.
    pub(super) fn fail(&self, run: &mut Run, failure: Failure) {
        self.stop(run, Some(failure));
    }

    /// Ends the request with the stop reason of its worker, or as canceled.
    pub(super) fn end_canceled(&self, run: &mut Run) {
        self.stop(run, self.record.stop_reason());
    }

    pub(super) fn total_timeout(&self, run: &mut Run) {
        self.stop(run, Some(self.total_failure()));
    }

    /// Ends the request. `None`: it was canceled.
    pub(super) fn stop(&self, run: &mut Run, failure: Option<Failure>) {
        let failure = self.write_stop(failure);
        run.fail(failure, self.clock.now_ms());
    }

    /// Like [`Drive::stop`], while a reply is read. The caller then passes the end of the reply to the machine.
    pub(super) fn close(&self, run: &mut Run, failure: Option<Failure>) {
        let failure = self.write_stop(failure);
        run.close(failure, self.clock.now_ms());
    }

    fn write_stop(&self, failure: Option<Failure>) -> Failure {
        self.write(|at_ms| Line::Stopped(Stopped::of(at_ms, failure.clone())));
        failure.unwrap_or_else(|| Failure::new(FailReason::Canceled, "", ""))
    }

    pub(super) fn total_failure(&self) -> Failure {
        let limit = self.shared.config.timers.total.unwrap_or_default();
        let detail = format!("the request took longer than {} (the worker's :total)", seconds(limit));
        Failure::new(FailReason::UnknownError, kind::TOTAL_TIMEOUT, detail)
    }
}

/// Sleeps until the deadline; `None`: never returns.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Formats a time limit: `30 s`, `0.2 s`.
pub(super) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}
