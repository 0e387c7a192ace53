//! The worker as its users see it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::config::WorkerConfig;
use super::drive::{Drive, drive};
use super::record::{EventStream, Record, Registry, ResultError, lock};
use super::replay::ReplayTransport;
use super::submit::{SubmitError, SubmitRequest, live_session, run_start};
use super::toolbox::ToolSource;
use super::transport::Transport;
use crate::request::{
    Approval, BiosProvider, BiosV1, FailReason, Failure, Outcome, RequestState, RequestStatus, Run, kind,
};
use crate::spec::Timers;

/// A limit that is none: a year.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Where a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// Takes requests.
    Ready,
    /// Takes none any more.
    Stopped,
}

/// A running worker. Cheap to clone; must be used inside a tokio runtime.
#[derive(Clone)]
pub struct Worker {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) config: WorkerConfig,
    pub(super) tools: Arc<dyn ToolSource>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) bios: Arc<dyn BiosProvider + Send + Sync>,
    pub(super) registry: Mutex<Registry>,
    replay: Option<Arc<ReplayTransport>>,
    stopped: CancellationToken,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.shared.config.run.worker).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker whose model is behind `transport`.
    pub fn start(config: WorkerConfig, tools: Arc<dyn ToolSource>, transport: Arc<dyn Transport>) -> Self {
        Self::build(config, tools, transport, None)
    }

    /// A worker whose model is a recording: its requests are the recorded ones again, one after the other, with their
    /// clock, ids and model.
    pub fn replay(
        mut config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        replay: Arc<ReplayTransport>,
    ) -> Self {
        if let Some(session) = replay.session() {
            config.llama_cpp = session.llama_cpp;
        }
        config.slots = 1;
        // What was waited for in vain is in the recording; how fast it is played must not matter.
        config.timers = Timers {
            headers: Some(FOR_EVER),
            stall: FOR_EVER,
            first_token: FOR_EVER,
            token_stall: FOR_EVER,
            total: None,
            ..config.timers
        };
        let transport: Arc<dyn Transport> = Arc::<ReplayTransport>::clone(&replay);
        Self::build(config, tools, transport, Some(replay))
    }

    fn build(
        config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        transport: Arc<dyn Transport>,
        replay: Option<Arc<ReplayTransport>>,
    ) -> Self {
        let shared = Shared {
            config,
            tools,
            transport,
            bios: Arc::new(BiosV1),
            registry: Mutex::default(),
            replay,
            stopped: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Takes a request, at once or not at all.
    ///
    /// # Errors
    /// When no slot is free, or the worker is stopped.
    pub fn submit(&self, request: SubmitRequest) -> Result<String, SubmitError> {
        let shared = &self.shared;
        if self.state() == WorkerState::Stopped {
            return Err(SubmitError::WorkerNotReady);
        }
        let SubmitRequest { messages, job_name, recorder } = request;
        let script = match &shared.replay {
            // A recording plays once: each request has the recorded id, and a clock that runs down.
            Some(replay) => Some(replay.peek().ok_or(SubmitError::NoSlotAvailable)?),
            None => None,
        };
        let session = match &script {
            Some(script) => {
                let mut session = script.session().clone();
                if !messages.is_empty() {
                    session.conversation = messages;
                }
                session
            }
            None => live_session(shared, messages, job_name),
        };
        let mut config = shared.config.run.clone();
        config.model.clone_from(&session.model);
        config.parallel_tool_calls_supported = session.parallel_tool_calls;
        let run = Run::new(config, run_start(&session));
        let cancel = shared.stopped.child_token();
        let record = Arc::new(Record::new(run.status(), cancel.clone()));
        let id = session.request_id.clone();
        let mut registry = lock(&shared.registry);
        if registry.get(&id).is_some() {
            return Err(SubmitError::NoSlotAvailable);
        }
        registry
            .admit(id.clone(), Arc::clone(&record), shared.config.slots)
            .ok_or(SubmitError::NoSlotAvailable)?;
        if let Some(replay) = &shared.replay {
            replay.advance();
        }
        drop(registry);
        let task = Drive {
            shared: Arc::clone(shared),
            record,
            clock: script.as_ref().map_or_else(|| Arc::new(Clock::live()), |script| script.clock()),
            recorder: recorder.map(|recorder| recorder.begin(&session)),
            script,
            cancel,
            id_seed: session.id_seed,
            generation: AtomicU64::new(0),
        };
        tokio::spawn(supervise(task, run, id.clone()));
        Ok(id)
    }

    /// Where a request stands; `None`: none of that id is remembered.
    pub fn request_status(&self, id: &str) -> Option<RequestStatus> {
        self.record(id).map(|record| record.status())
    }

    /// A request's events from `offset` on.
    pub fn events(&self, id: &str, offset: usize) -> Option<EventStream> {
        self.record(id).map(|record| EventStream::new(record, offset))
    }

    /// How a request ended.
    ///
    /// # Errors
    /// When it is not over, or not remembered.
    pub fn result(&self, id: &str) -> Result<Arc<Outcome>, ResultError> {
        let record = self.record(id).ok_or(ResultError::Unknown)?;
        record.outcome().ok_or(ResultError::NotReady)
    }

    /// As [`Worker::result`], and forgets the request.
    ///
    /// # Errors
    /// When it is not over, or not remembered.
    pub fn take_result(&self, id: &str) -> Result<Arc<Outcome>, ResultError> {
        let record = lock(&self.shared.registry).take(id)?;
        record.outcome().ok_or(ResultError::NotReady)
    }

    /// Waits for a request's end.
    ///
    /// # Errors
    /// When it is not remembered.
    pub async fn wait(&self, id: &str) -> Result<Arc<Outcome>, ResultError> {
        let record = self.record(id).ok_or(ResultError::Unknown)?;
        let mut events = EventStream::new(Arc::clone(&record), 0);
        while events.next().await.is_some() {}
        record.outcome().ok_or(ResultError::NotReady)
    }

    /// Gives a request up: its stream is disconnected, its tool stopped, its slot freed. False: not remembered.
    pub fn cancel(&self, id: &str) -> bool {
        self.record(id).map(|record| record.cancel.cancel()).is_some()
    }

    /// Answers a call that an `approval` event asks about. False: nobody asks about such a call, or it was answered.
    pub fn approve(&self, id: &str, call_id: &str, approval: Approval) -> bool {
        self.record(id).is_some_and(|record| record.approve(call_id, approval))
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        lock(&self.shared.registry).in_flight()
    }

    /// Whether it takes requests.
    pub fn state(&self) -> WorkerState {
        if self.shared.stopped.is_cancelled() { WorkerState::Stopped } else { WorkerState::Ready }
    }

    /// Takes no requests any more and cancels those in flight. Results stay.
    pub fn stop(&self) {
        self.shared.stopped.cancel();
        for record in lock(&self.shared.registry).all() {
            record.cancel.cancel();
        }
    }

    /// Fails every request whose reply is awaited with `worker_restarted`; one whose tool is running goes on.
    pub fn restart(&self) {
        let detail = "the worker was restarted";
        for record in lock(&self.shared.registry).all() {
            if record.status().state == RequestState::Running {
                record.stop_with(Failure::new(FailReason::WorkerRestarted, "", detail));
            }
        }
    }

    fn record(&self, id: &str) -> Option<Arc<Record>> {
        lock(&self.shared.registry).get(id)
    }
}

/// Runs a request and frees its slot, even if the driver itself fails.
async fn supervise(task: Drive, run: Run, id: String) {
    let shared = Arc::clone(&task.shared);
    let record = Arc::clone(&task.record);
    if let Err(error) = tokio::spawn(drive(task, run)).await {
        let detail = format!("the driver of this request failed; this is a bug in deftool: {error}");
        shared.release(&id, &record);
        record.abandon(Failure::new(FailReason::UnknownError, kind::INTERNAL, detail));
    }
}

impl Shared {
    /// Gives a request's slot back. Before its end is told: whoever hears of it may submit at once.
    pub(super) fn release(&self, id: &str, record: &Record) {
        lock(&self.registry).release(id, record, self.config.keep_results);
    }
}
