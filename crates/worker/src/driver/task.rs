//! The task of one request: what it publishes, what it records, and how it ends.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use deftool_chat::request::{Event, FailReason, Failure, FailureKind, JournalEntry, Run};
use deftool_chat::{BodyFallbacks, Capabilities};
use deftool_process::lock;
use deftool_record::{Durability, Line, ReplayCursor, RequestTrace, Stopped};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::record::RequestRecord;
use super::shared::Shared;
use crate::observer::{Observation, RequestObserver};
use crate::time::seconds;
use crate::transport::Outgoing;
use deftool_lang::tool::{AttachmentData, Toolbox};

/// The state of the task of one request.
pub(crate) struct RequestTask {
    pub(crate) shared: Arc<Shared>,
    pub(crate) record: Arc<RequestRecord>,
    pub(crate) observer: Option<Mutex<Box<dyn RequestObserver>>>,
    /// Position in the recorded request, in a replay.
    pub(crate) cursor: Option<Arc<ReplayCursor>>,
    pub(crate) cancel: CancellationToken,
    /// Seed of call ids and of the jitter of retry delays.
    pub(crate) id_seed: u64,
    /// The request variants that the server required when the request began.
    pub(crate) body_fallbacks: BodyFallbacks,
    /// Capabilities of the server.
    pub(crate) server: Capabilities,
    /// Generation of the tools of the current turn.
    pub(crate) generation: AtomicU64,
    pub(crate) trace: RequestTrace,
    /// The tools that a resumed request was checked against; its interrupted calls run with them.
    pub(crate) toolbox: Option<Toolbox>,
    /// The digests of the images and audio in the journal.
    pub(crate) journaled: Mutex<HashSet<String>>,
}

impl RequestTask {
    /// Publishes the events of the machine.
    pub(crate) fn publish(&self, run: &mut Run) {
        let reply = run.take_reply_state();
        let events = run.take_events();
        self.append(run, reply.map(JournalEntry::Reply), &events);
        if let (Some(cursor), Some(Event::Finished(outcome))) = (&self.cursor, events.last()) {
            cursor.on_end(outcome);
        }
        self.observe_events(&events);
        if run.outcome().is_some() {
            self.shared.release(run.request_id(), &self.record);
        }
        if !events.is_empty() {
            self.record.publish(events, run.status(), run.conversation());
        }
    }

    /// Publishes an event of the driver.
    pub(crate) fn publish_own(&self, run: &Run, event: Event) {
        let events = vec![event];
        self.append(run, None, &events);
        self.observe_events(&events);
        self.record.publish(events, run.status(), run.conversation());
    }

    /// Appends events to the recording and the journal, before their receiver may move the recording. In the journal,
    /// they follow the state of the reply that they end.
    fn append(&self, run: &Run, reply: Option<JournalEntry>, events: &[Event]) {
        let at_ms = self.record.clock.now_ms();
        if let Some(recorder) = self.record.recorder.get() {
            recorder.events(at_ms, events);
        }
        let journal = self.shared.config.journal.as_ref();
        if let Some(journal) = journal.filter(|_| !events.is_empty() && !self.record.is_suspended()) {
            let attachments = events.iter().flat_map(|event| match event {
                Event::ToolFinished { attachments, .. } => attachments.as_slice(),
                _ => &[],
            });
            let data = AttachmentData::unwritten(&mut lock(&self.journaled), attachments);
            let data = data.into_iter().map(JournalEntry::Attachment);
            let events = events.iter().cloned().map(JournalEntry::Event);
            let entries = data.chain(reply).chain(events).collect();
            journal.append(run.request_id(), at_ms, entries);
        }
    }

    fn observe_events(&self, events: &[Event]) {
        for event in events {
            self.observe(Observation::Event(event));
        }
    }

    /// Passes an observation to the observer, with the time of the last tick.
    pub(crate) fn observe(&self, observation: Observation<'_>) {
        if let Some(observer) = &self.observer {
            let suspended = self.record.is_suspended();
            let observation = if suspended { Observation::Suspended } else { observation };
            lock(observer).observe(self.record.clock.now_ms(), observation);
        }
    }

    /// Waits until the journal contains everything so far. Ends the request if it cannot be written, because the next step
    /// could happen a second time after a crash. Returns whether the request continues.
    pub(crate) async fn commit(&self, run: &mut Run, durability: Durability) -> bool {
        let Some(journal) = &self.shared.config.journal else { return true };
        if let Err(error) = journal.commit(run.request_id(), durability).await {
            self.fail(
                run,
                Failure::new(FailReason::UnknownError, FailureKind::JournalFailed, error.to_string()),
            );
        }
        run.outcome().is_none()
    }

    /// Advances the clock.
    pub(crate) fn tick(&self) {
        self.record.clock.tick(Instant::now());
    }

    /// Advances the clock and records a line.
    pub(crate) fn write(&self, line: impl FnOnce(u64) -> Line) {
        self.tick();
        if let Some(recorder) = self.record.recorder.get() {
            recorder.write(line(self.record.clock.now_ms()));
        }
    }

    /// Like [`RequestTask::write`], for a chunk of a body that was received at `now`.
    pub(crate) fn write_data(&self, bytes: &[u8], now: Instant) {
        self.record.clock.tick(now);
        if let Some(recorder) = self.record.recorder.get() {
            recorder.data(self.record.clock.now_ms(), bytes);
        }
    }

    /// Returns the recording line of a chat request.
    pub(crate) fn request_line(&self, run: &Run, outgoing: &Outgoing, at_ms: u64) -> Line {
        Line::Request {
            turn: outgoing.turn,
            attempt: outgoing.attempt,
            at_ms,
            tools: Some(run.turn().1.to_owned()),
            generation: Some(self.generation.load(Ordering::Relaxed)),
            body: outgoing.body.to_value(),
        }
    }

    /// Ends the request with a failure of a timer or the transport.
    pub(crate) fn fail(&self, run: &mut Run, failure: Failure) {
        self.stop(run, Some(failure));
    }

    /// Ends the request with the stop reason of its worker, or as canceled.
    pub(crate) fn end_canceled(&self, run: &mut Run) {
        self.stop(run, self.record.stop_reason());
    }

    pub(crate) fn total_timeout(&self, run: &mut Run) {
        self.stop(run, Some(self.total_failure()));
    }

    /// Ends the request. `None`: it was canceled.
    pub(crate) fn stop(&self, run: &mut Run, failure: Option<Failure>) {
        let failure = self.write_stop(failure, false);
        run.fail(failure, self.record.clock.now_ms());
    }

    /// Like [`RequestTask::stop`], while the request waits for its next attempt.
    pub(crate) fn stop_retry(&self, run: &mut Run, failure: Option<Failure>) {
        let failure = self.write_stop(failure, true);
        run.fail(failure, self.record.clock.now_ms());
    }

    /// Like [`RequestTask::stop`], for use while a reply is read. The caller then passes the end of the reply to the
    /// machine.
    pub(crate) fn close(&self, run: &mut Run, failure: Option<Failure>) {
        let failure = self.write_stop(failure, false);
        run.close(failure, self.record.clock.now_ms());
    }

    fn write_stop(&self, failure: Option<Failure>, in_retry: bool) -> Failure {
        self.write(|at_ms| Line::Stopped(Stopped { in_retry, ..Stopped::of(at_ms, failure.clone()) }));
        failure.unwrap_or_else(|| Failure::new(FailReason::Canceled, "", ""))
    }

    pub(crate) fn total_failure(&self) -> Failure {
        let limit = self.shared.config.timers.total.unwrap_or_default();
        let detail = format!("the request took longer than {} (the worker's :total)", seconds(limit));
        Failure::new(FailReason::UnknownError, FailureKind::TotalTimeout, detail)
    }
}
