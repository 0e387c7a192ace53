//! The worker's API as the simulation uses it, in one place.
//!
//! Faults are injected here, to prove that the invariant checks can fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use deftool_chat::Message;
use deftool_chat::request::{
    Approval, Event, FailReason, FinalState, FinishReason, Outcome, RequestState, RequestStatus,
};
use deftool_record::Recorder;
use deftool_worker::{
    EventStream, Origin, RequestStream, ResultError, SubmitError, SubmitRequest, ToolSource, Transport,
    Worker, WorkerConfig,
};
use futures_util::FutureExt;

use super::faults::Fault;
use super::plan::CasePlan;
use super::submission::RequestOptions;

/// The reason why a request was rejected.
#[derive(Debug)]
pub(super) enum Rejection {
    NoSlot,
    NotReady,
    UnknownTool,
    ReservedParam,
    /// An unexpected reason.
    Other(String),
}

/// A worker, with an optional injected fault.
#[derive(Clone)]
pub(super) struct WorkerFacade {
    worker: Worker,
    fault: Option<Fault>,
    /// The number of status calls.
    status_calls: Arc<AtomicUsize>,
}

impl WorkerFacade {
    pub(super) fn start(
        config: WorkerConfig,
        source: Arc<dyn ToolSource>,
        transport: Arc<dyn Transport>,
        fault: Option<Fault>,
    ) -> Self {
        Self { worker: Worker::start(config, source, transport), fault, status_calls: Arc::default() }
    }

    /// Submits a request. Returns its id and its first reader.
    pub(super) fn submit(
        &self,
        plan: &CasePlan,
        messages: Vec<Message>,
        origin: Origin,
        recorder: Option<Arc<Recorder>>,
    ) -> Result<(String, Reader), Rejection> {
        let job_name = format!("case {}", plan.number);
        let RequestOptions { system_prompt, model, params, tools } = plan.options.clone();
        let origin = Some(origin);
        let request = SubmitRequest {
            messages,
            system_prompt,
            model,
            params,
            tools,
            job_name,
            recorder,
            origin,
            ..SubmitRequest::default()
        };
        let submitted = if plan.streams {
            self.worker.stream(request).map(|stream| (stream.id().to_owned(), Source::Request(stream)))
        } else {
            self.worker.submit(request).map(|id| {
                let events = self.worker.events(&id, 0).expect("the request is remembered");
                (id, Source::Events(events))
            })
        };
        submitted.map(|(id, source)| (id, Reader::new(source, self.fault))).map_err(|error| match error {
            SubmitError::NoSlotAvailable => Rejection::NoSlot,
            SubmitError::WorkerNotReady(_) => Rejection::NotReady,
            SubmitError::UnknownTool(_) => Rejection::UnknownTool,
            SubmitError::ReservedParam(_) => Rejection::ReservedParam,
            _ => Rejection::Other(error.to_string()),
        })
    }

    pub(super) fn status(&self, id: &str) -> Option<RequestStatus> {
        let mut status = self.worker.request_status(id);
        let status_calls = self.status_calls.fetch_add(1, Ordering::Relaxed);
        match (self.fault, &mut status) {
            (Some(Fault::ShrinkText), Some(status)) if status_calls % 7 == 6 => status.text_chars /= 2,
            (Some(Fault::ChangeAfterEnd), Some(status)) if is_over(status.state) => {
                status.last_progress_ms += status_calls as u64;
            }
            (Some(Fault::ReportRunning), Some(status)) if status.state == RequestState::ToolRunning => {
                status.state = RequestState::Running;
            }
            (Some(Fault::KeepEveryResult), status @ None) => {
                *status = Some(RequestStatus {
                    state: RequestState::Completed,
                    text_chars: 0,
                    last_progress_ms: 0,
                    budget_left: 0,
                    tool_iterations: 0,
                    running_tool: None,
                    usage: None,
                });
            }
            _ => {}
        }
        status
    }

    pub(super) fn in_flight(&self) -> usize {
        let leaked = self.fault == Some(Fault::LeakSlot) && self.status_calls.load(Ordering::Relaxed) > 20;
        self.worker.in_flight() + usize::from(leaked)
    }

    pub(super) fn queued(&self) -> usize {
        self.worker.queued()
    }

    /// Returns the conversation of a request so far, to continue it.
    pub(super) fn conversation(&self, id: &str) -> Option<Vec<Message>> {
        self.worker.conversation(id)
    }

    pub(super) async fn is_ready(&self) -> bool {
        self.worker.ready().await.is_ok()
    }

    /// Returns the number of draining slots.
    pub(super) fn draining(&self) -> usize {
        if self.fault == Some(Fault::HideDrains) { 0 } else { self.worker.draining() }
    }

    pub(super) async fn drained(&self) {
        self.worker.drained().await;
    }

    pub(super) fn events(&self, id: &str, offset: usize) -> Option<Reader> {
        let stream = self.worker.events(id, offset)?;
        Some(Reader::new(Source::Events(stream), self.fault.filter(|_| offset == 0)))
    }

    pub(super) fn take_result(&self, id: &str) -> Result<Arc<Outcome>, ResultError> {
        self.worker.take_result(id)
    }

    pub(super) fn wait(&self, id: &str) -> impl Future<Output = Result<Arc<Outcome>, ResultError>> + use<> {
        self.worker.wait(id)
    }

    pub(super) fn cancel(&self, id: &str) -> bool {
        self.worker.cancel(id)
    }

    pub(super) fn approve(&self, id: &str, call: &str, approval: Approval) -> bool {
        self.worker.approve(id, call, approval)
    }

    pub(super) fn restart(&self) {
        self.worker.restart();
    }

    pub(super) fn stop(&self) {
        self.worker.stop();
    }
}

pub(super) fn is_over(state: RequestState) -> bool {
    match state {
        RequestState::Running | RequestState::ToolRunning => false,
        RequestState::Completed | RequestState::Failed | RequestState::Canceled => true,
    }
}

/// The events of one request.
pub(super) struct Reader {
    source: Source,
    fault: Option<Fault>,
    /// Events that a fault inserts.
    waiting: Vec<Arc<Event>>,
    /// Whether a one-time fault was injected.
    is_done: AtomicBool,
}

enum Source {
    Events(EventStream),
    /// Cancels the request when it is dropped.
    Request(RequestStream),
}

impl Reader {
    fn new(source: Source, fault: Option<Fault>) -> Self {
        Self { source, fault, waiting: Vec::new(), is_done: AtomicBool::new(false) }
    }

    /// Waits for the next event.
    pub(super) async fn next(&mut self) -> Option<Arc<Event>> {
        if let Some(event) = self.waiting.pop() {
            return Some(event);
        }
        loop {
            let event = match &mut self.source {
                Source::Events(events) => events.next().await,
                Source::Request(stream) => stream.next().await,
            }?;
            let Some(fault) = self.fault else { return Some(event) };
            if fault == Fault::EndLate && matches!(&*event, Event::Finished(_)) {
                tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
            }
            if let Some(event) = self.tamper(fault, event) {
                return Some(event);
            }
        }
    }

    /// Returns the next event, if it is available.
    pub(super) fn next_now(&mut self) -> Poll<Option<Arc<Event>>> {
        if self.fault == Some(Fault::EndLate) {
            return Poll::Pending;
        }
        self.next().now_or_never().map_or(Poll::Pending, Poll::Ready)
    }

    fn tamper(&mut self, fault: Fault, event: Arc<Event>) -> Option<Arc<Event>> {
        let once = || !self.is_done.swap(true, Ordering::Relaxed);
        match (fault, &*event) {
            (Fault::LoseText, Event::Text { .. }) if once() => return None,
            (Fault::LoseSignal, Event::Finished(outcome)) => {
                let mut outcome = Outcome::clone(outcome);
                outcome.signals.pop();
                return Some(Arc::new(Event::Finished(Arc::new(outcome))));
            }
            (Fault::LateRetry, Event::Text { .. }) if once() => {
                let late = Event::Retry { attempt: 2, delay_ms: 0, detail: String::from("late") };
                self.waiting.push(Arc::new(late));
            }
            (Fault::Overspend, Event::Budget { left, unit }) => {
                return Some(Arc::new(Event::Budget { left: left.saturating_sub(1), unit: *unit }));
            }
            (Fault::EndTwice, Event::Finished(_)) if once() => self.waiting.push(Arc::clone(&event)),
            (Fault::ReportRestartAsCancel, Event::Finished(outcome))
                if outcome.fail_reason == Some(FailReason::WorkerRestarted) =>
            {
                let mut outcome = Outcome::clone(outcome);
                outcome.state = FinalState::Canceled;
                outcome.finish_reason = FinishReason::Canceled;
                outcome.fail_reason = Some(FailReason::Canceled);
                return Some(Arc::new(Event::Finished(Arc::new(outcome))));
            }
            (Fault::ReportFailure, Event::Finished(outcome)) if outcome.state == FinalState::Completed => {
                let mut outcome = Outcome::clone(outcome);
                outcome.state = FinalState::Failed;
                outcome.finish_reason = FinishReason::Failed;
                outcome.fail_reason = Some(FailReason::UnknownError);
                return Some(Arc::new(Event::Finished(Arc::new(outcome))));
            }
            _ => {}
        }
        Some(event)
    }
}
