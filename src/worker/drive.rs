//! One request: asks the machine, does it, tells the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::handle::Shared;
use super::record::Record;
use super::recording::{Line, RequestRecorder, Stopped};
use super::replay::Script;
use super::toolbox::Toolbox;
use super::transport::Outgoing;
use super::{calls, turn};
use crate::chat::{BodyForm, Capabilities, Swaps};
use crate::request::{Event, FailReason, Failure, Outcome, Run, Step, kind};

/// What the task of one request holds.
pub(super) struct Drive {
    pub(super) shared: Arc<Shared>,
    pub(super) record: Arc<Record>,
    pub(super) clock: Arc<Clock>,
    pub(super) recorder: Option<RequestRecorder>,
    /// The recorded request, in a replay.
    pub(super) script: Option<Arc<Script>>,
    pub(super) cancel: CancellationToken,
    /// Where the jitter of waits comes from.
    pub(super) id_seed: u64,
    /// What the server had refused when the request began.
    pub(super) swaps: Swaps,
    /// What is known of the server.
    pub(super) server: Capabilities,
    /// The generation of the tools of the current turn.
    pub(super) generation: AtomicU64,
}

/// Drives `run` to its end.
pub(super) async fn drive(task: Drive, mut run: Run) {
    let total = task.shared.config.timers.total.and_then(|limit| Instant::now().checked_add(limit));
    let api = task.shared.config.api;
    let mut form = BodyForm { api, stream: true, server: task.server, swaps: task.swaps };
    // Before anything that is not ours may fail: `submitted` is the first event whatever happens.
    task.publish(&mut run);
    if !task.wait_for_slot(&mut run, total).await {
        return task.publish(&mut run);
    }
    let mut toolbox = task.toolbox(&run);
    loop {
        if run.begins_turn() {
            let newest = task.toolbox(&run);
            task.tell_reload(&run, &toolbox, &newest);
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
                let detail = "the request machine waits for a reply that nobody asked for";
                task.fail(&mut run, Failure::new(FailReason::UnknownError, kind::INTERNAL, detail));
            }
        }
        task.publish(&mut run);
    }
}

impl Drive {
    /// Where requests go, as messages name it.
    pub(super) fn url(&self) -> &str {
        self.shared.transport.url(self.shared.config.api)
    }

    /// Waits for the request's slot; false: it was over before.
    async fn wait_for_slot(&self, run: &mut Run, total: Option<Instant>) -> bool {
        let recorded = self.script.as_ref().and_then(|script| script.stopped());
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

    /// The newest tools, those of them that the request may call.
    fn toolbox(&self, run: &Run) -> Toolbox {
        let mut toolbox = self.shared.tools.current();
        if let Some(names) = &run.options().tools {
            toolbox.tools = toolbox.tools.only(names);
        }
        toolbox
    }

    /// Passes on what the machine said.
    pub(super) fn publish(&self, run: &mut Run) {
        let events = run.take_events();
        if let Some(Event::Finished(outcome)) = events.last() {
            // Before it is told: whoever hears of it may take the recording away.
            self.end(outcome);
        }
        if run.outcome().is_some() {
            self.shared.release(run.request_id(), &self.record);
        }
        if !events.is_empty() {
            self.record.publish(events, run.status(), run.conversation());
        }
    }

    /// Passes on what only the driver knows.
    pub(super) fn publish_own(&self, run: &Run, event: Event) {
        self.record.publish(vec![event], run.status(), run.conversation());
    }

    /// Something happened: the clock ticks, and it is recorded.
    pub(super) fn write(&self, line: impl FnOnce(u64) -> Line) {
        self.clock.tick();
        if let Some(recorder) = &self.recorder {
            recorder.write(line(self.clock.now_ms()));
        }
    }

    /// As [`Drive::write`], of a piece of a body.
    pub(super) fn write_data(&self, bytes: &[u8]) {
        self.clock.tick();
        if let Some(recorder) = &self.recorder {
            recorder.data(self.clock.now_ms(), bytes);
        }
    }

    /// What is recorded of a chat request.
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

    /// The turn that begins has other tools than the one before. A replay tells what the recording tells.
    fn tell_reload(&self, run: &Run, before: &Toolbox, newest: &Toolbox) {
        let turn = run.turn().0 + 1;
        let reload = match &self.script {
            Some(script) => script.reload_before(turn),
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

    /// Tells the recording, or the replay, how the request ended.
    fn end(&self, outcome: &Outcome) {
        if let Some(script) = &self.script {
            script.ended(outcome);
        }
        self.write(|at_ms| Line::Finished {
            at_ms,
            outcome: serde_json::to_value(outcome).unwrap_or_default(),
        });
    }

    /// Ends the request by a failure of the driver's own: a timer, the transport.
    pub(super) fn fail(&self, run: &mut Run, failure: Failure) {
        self.stop(run, Some(failure));
    }

    /// Ends the request because its submitter gave it up, or for the reason that its worker has.
    pub(super) fn give_up(&self, run: &mut Run) {
        self.stop(run, self.record.stop_reason());
    }

    pub(super) fn total_timeout(&self, run: &mut Run) {
        self.stop(run, Some(self.total_failure()));
    }

    /// Ends the request. `None`: its submitter canceled it.
    pub(super) fn stop(&self, run: &mut Run, failure: Option<Failure>) {
        let failure = self.write_stop(failure);
        run.fail(failure, self.clock.now_ms());
    }

    /// As [`Drive::stop`], while the reply is read: the caller then passes on the end of the reply.
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
