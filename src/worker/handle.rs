//! The worker as its users see it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::calls::panic_message;
use super::clock::Clock;
use super::config::WorkerConfig;
use super::drive::{Drive, drive};
use super::record::{EventStream, Record, ResultError, lock};
use super::registry::{Limits, Registry};
use super::replay::ReplayTransport;
use super::server::{
    Condition, Dependents, NotReady, Order, Server, ServerOptions, WorkerState, WorkerStatus,
};
use super::submit::{SubmitError, SubmitRequest, live_session, run_start};
use super::toolbox::ToolSource;
use super::transport::Transport;
use crate::chat::{Message, Swaps};
use crate::request::{Approval, FailReason, Failure, Outcome, RequestStatus, Run, kind};
use crate::spec::Timers;

/// A limit that is none: a year.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// As many of a server's last lines a status shows.
const SHOWN_LINES: usize = 50;
/// How long a managed server may keep its headers back where nobody says otherwise: it queues and reads prompts first.
const MANAGED_HEADERS: Duration = Duration::from_secs(600);

/// A running worker. Cheap to clone; must be used inside a tokio runtime.
#[derive(Clone)]
pub struct Worker {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) config: WorkerConfig,
    pub(super) tools: Arc<dyn ToolSource>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) registry: Mutex<Registry>,
    /// How requests are written that the server takes.
    pub(super) learned: Mutex<Swaps>,
    /// Told where a slot that was kept back is not any more.
    pub(super) drained: Notify,
    replay: Option<Arc<ReplayTransport>>,
    pub(super) stopped: CancellationToken,
    condition: Arc<watch::Sender<Condition>>,
    /// The server, where it is managed.
    server: Option<Server>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.shared.config.run.worker).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker whose model is behind `transport`. It is taken at its word, that is ready at once; [`Worker::ready`] asks.
    pub fn start(config: WorkerConfig, tools: Arc<dyn ToolSource>, transport: Arc<dyn Transport>) -> Self {
        Self::build(config, tools, transport, None, None)
    }

    /// A worker that starts its server and looks after it. It takes requests once that is ready: [`Worker::ready`] waits.
    /// The server ends with the last handle of the worker, and with this process, however that ends.
    pub fn start_managed(
        mut config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        options: ServerOptions,
    ) -> Self {
        config.timers.headers.get_or_insert(MANAGED_HEADERS);
        let (server, seed) = Server::new(options);
        let transport: Arc<dyn Transport> = Arc::<super::server::Route>::clone(server.route());
        let worker = Self::build(config, tools, transport, None, Some(server));
        let condition = Arc::clone(&worker.shared.condition);
        tokio::spawn(seed.keep(condition, Box::new(Hung(Arc::downgrade(&worker.shared)))));
        worker
    }

    /// A worker whose model is a recording: its requests are the recorded ones again, one after the other, with their
    /// clock, ids and model.
    pub fn replay(
        mut config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        replay: Arc<ReplayTransport>,
    ) -> Self {
        if let Some(session) = replay.session() {
            config.server = session.server;
            config.api = session.api;
        }
        (config.slots, config.queue) = (1, 0);
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
        Self::build(config, tools, transport, Some(replay), None)
    }

    fn build(
        config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        transport: Arc<dyn Transport>,
        replay: Option<Arc<ReplayTransport>>,
        server: Option<Server>,
    ) -> Self {
        let condition = if let Some(server) = &server {
            Condition::new(WorkerState::Running, Some(server.is_starting()))
        } else {
            Condition::new(WorkerState::Ready, None)
        };
        let WorkerConfig { slots, queue, keep_results, .. } = config;
        let shared = Shared {
            config,
            tools,
            transport,
            registry: Mutex::new(Registry::new(Limits { slots, queue, keep_results })),
            learned: Mutex::default(),
            drained: Notify::new(),
            replay,
            stopped: CancellationToken::new(),
            condition: Arc::new(watch::Sender::new(condition)),
            server,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Takes a request, at once or not at all: into a slot, or where the worker has a queue, into that.
    ///
    /// # Errors
    /// When no slot and no place in the queue is free, the worker is not ready, or the request asks for what it does not have.
    pub fn submit(&self, request: SubmitRequest) -> Result<String, SubmitError> {
        let shared = &self.shared;
        shared.is_ready().map_err(SubmitError::WorkerNotReady)?;
        let config = shared.present_config();
        request.check(|| shared.tools.current().tools)?;
        let (recorder, origin) = (request.recorder.clone(), request.origin.clone());
        let script = match &shared.replay {
            // A recording plays once: each request has the recorded id, and a clock that runs down.
            Some(replay) => Some(replay.peek().ok_or(SubmitError::NoSlotAvailable)?),
            None => None,
        };
        let mut session = match &script {
            Some(script) => request.of_replay(script.session().clone()),
            None => {
                let url = shared.transport.url(config.api);
                live_session(&config, url, *lock(&shared.learned), request)
            }
        };
        if let Some(origin) = origin {
            origin.settle(&mut session);
        }
        let mut config = config.run;
        config.model.clone_from(&session.model);
        config.parallel_tool_calls_supported = session.parallel_tool_calls;
        let run = Run::new(config, run_start(&session));
        let cancel = shared.stopped.child_token();
        let record = Arc::new(Record::new(run.status(), cancel.clone()));
        let id = session.request_id.clone();
        let mut registry = lock(&shared.registry);
        if registry.get(&id).is_some() {
            return Err(if script.is_some() { SubmitError::NoSlotAvailable } else { SubmitError::IdTaken });
        }
        registry.admit(id.clone(), Arc::clone(&record)).ok_or(SubmitError::NoSlotAvailable)?;
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
            swaps: session.swaps,
            server: session.server,
            generation: AtomicU64::new(0),
        };
        tokio::spawn(supervise(task, run, id.clone()));
        Ok(id)
    }

    /// The generation of the tools that a turn would be sent with now.
    pub fn generation(&self) -> u64 {
        self.shared.tools.current().generation
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

    /// A request's conversation so far, without system messages of ours; once it is over, whatever its end, it can be
    /// continued: submit it with the user's next message. `None`: none of that id is remembered.
    pub fn conversation(&self, id: &str) -> Option<Vec<Message>> {
        self.record(id).map(|record| record.conversation())
    }

    /// Gives a request up: its stream is disconnected, its tool stopped, its slot freed. False: not remembered.
    pub fn cancel(&self, id: &str) -> bool {
        self.record(id).map(|record| record.cancel.cancel()).is_some()
    }

    /// Answers a call that an `approval` event asks about. False: nobody asks about such a call, or it was answered.
    pub fn approve(&self, id: &str, call_id: &str, approval: Approval) -> bool {
        self.record(id).is_some_and(|record| record.approve(call_id, approval))
    }

    /// The model that requests ask, unless they name another.
    pub fn model(&self) -> &str {
        &self.shared.config.run.model
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        lock(&self.shared.registry).in_flight()
    }

    /// Requests that wait for a slot.
    pub fn queued(&self) -> usize {
        lock(&self.shared.registry).waiting()
    }

    /// Slots that are kept back, since the server still works on prompts that were given up.
    pub fn draining(&self) -> usize {
        lock(&self.shared.registry).draining()
    }

    /// Waits until none is kept back: a minute at most after the last request was given up.
    pub async fn drained(&self) {
        loop {
            let drained = self.shared.drained.notified();
            tokio::pin!(drained);
            // Before the look: the last one may come back between look and wait.
            drained.as_mut().enable();
            if self.draining() == 0 {
                return;
            }
            drained.await;
        }
    }

    /// Whether it takes requests.
    pub fn state(&self) -> WorkerState {
        self.shared.condition().state
    }

    /// Where it and its server stand.
    pub fn status(&self) -> WorkerStatus {
        let Condition { state, since, reason, restarts, pid, endpoint } = self.shared.condition();
        WorkerStatus {
            state,
            since,
            reason,
            restarts,
            pid,
            endpoint,
            recent_logs: self.recent_logs(SHOWN_LINES),
            slots: self.shared.config.slots,
            in_flight: self.in_flight(),
            queued: self.queued(),
        }
    }

    /// The last `count` lines that a managed server wrote, the oldest first; bounded, without secrets.
    pub fn recent_logs(&self, count: usize) -> Vec<String> {
        self.shared.server.as_ref().map(|server| server.recent_logs(count)).unwrap_or_default()
    }

    /// Waits until the worker takes requests. A managed server is waited for, through its restarts; a plain endpoint is
    /// asked once, and any answer but 401, 403 and 5xx is ready.
    ///
    /// # Errors
    /// When it will not without a person's doing: its server failed or is locked out, its endpoint refuses or is silent, it
    /// was stopped.
    pub async fn ready(&self) -> Result<(), NotReady> {
        let shared = &self.shared;
        if shared.server.is_none() && !shared.stopped.is_cancelled() {
            let (state, reason) = match shared.transport.probe().await {
                Ok(()) => (WorkerState::Ready, None),
                Err(why) => (WorkerState::Failed, Some(why)),
            };
            shared.condition.send_if_modified(|condition| {
                condition.state != WorkerState::Stopped && condition.enter(state, reason)
            });
        }
        let mut conditions = shared.condition.subscribe();
        loop {
            conditions.borrow_and_update();
            match shared.is_ready() {
                Err(NotReady { state: WorkerState::Running, .. }) => {}
                settled => return settled,
            }
            tokio::select! {
                _ = conditions.changed() => {}
                () = shared.stopped.cancelled() => {}
            }
        }
    }

    /// Takes no requests any more, cancels those in flight and ends a managed server. Results stay. For good.
    pub fn stop(&self) {
        self.shared.stopped.cancel();
        for record in lock(&self.shared.registry).all() {
            record.cancel.cancel();
        }
        match &self.shared.server {
            Some(server) => server.order(Order::Stop),
            None => {
                self.shared
                    .condition
                    .send_if_modified(|condition| condition.enter(WorkerState::Stopped, None));
            }
        }
    }

    /// Waits until a worker that was stopped is gone, its server with it.
    pub async fn gone(&self) {
        self.shared.stopped.cancelled().await;
        let mut conditions = self.shared.condition.subscribe();
        let _ = conditions.wait_for(|condition| condition.state == WorkerState::Stopped).await;
    }

    /// Starts a managed server anew, locked out or not. Every request that has asked its server (it waits for headers, or its
    /// stream is open) fails with `worker_restarted`, whoever cancels it at the same time. One that has not goes on: its tool
    /// runs, a person is asked, or it waits for the server or for its next try.
    pub fn restart(&self) {
        let shared = &self.shared;
        let detail = "the worker was restarted";
        if let Some(server) = &shared.server {
            // Before its requests fail: whoever hears of that may submit at once, and is not to meet the old server.
            shared.condition.send_if_modified(|condition| {
                condition.state != WorkerState::Stopped
                    && condition.enter(WorkerState::Running, Some(String::from(detail)))
            });
            server.order(Order::Restart);
        }
        shared.fail_streams(&Failure::new(FailReason::WorkerRestarted, "", detail));
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
        // Without the number of the task, which tells nobody anything.
        let cause = match error.try_into_panic() {
            Ok(panic) => format!("it panicked: {}", panic_message(panic.as_ref())),
            Err(_) => String::from("it was dropped"),
        };
        let detail = format!("the driver of this request failed; this is a bug in deftool: {cause}");
        shared.release(&id, &record);
        record.abandon(Failure::new(FailReason::UnknownError, kind::INTERNAL, detail));
    }
}

/// What hangs on a server: the requests of its worker, while there is one.
struct Hung(Weak<Shared>);

impl Dependents for Hung {
    fn streaming(&self) -> usize {
        self.0.upgrade().map_or(0, |shared| shared.streaming())
    }

    fn fail(&self, failure: &Failure) {
        if let Some(shared) = self.0.upgrade() {
            shared.fail_streams(failure);
        }
    }
}

impl Shared {
    /// Where it stands; a stop counts from the moment it was said.
    fn condition(&self) -> Condition {
        let mut condition = self.condition.borrow().clone();
        if self.stopped.is_cancelled() {
            condition.enter(WorkerState::Stopped, None);
        }
        condition
    }

    /// Whether requests are taken.
    fn is_ready(&self) -> Result<(), NotReady> {
        let condition = self.condition();
        if condition.state == WorkerState::Ready { Ok(()) } else { Err(condition.not_ready()) }
    }

    /// As configured, with what a managed server told of itself.
    pub(super) fn present_config(&self) -> WorkerConfig {
        let config = self.config.clone();
        match self.server.as_ref().and_then(|server| server.route().endpoint()) {
            Some(endpoint) => config.at(&endpoint),
            None => config,
        }
    }

    /// Waits until the server can be sent to; why it never will. At once where it is not managed.
    pub(super) async fn server_ready(&self) -> Result<(), NotReady> {
        if self.server.is_none() {
            return Ok(());
        }
        let mut conditions = self.condition.subscribe();
        loop {
            let condition = conditions.borrow_and_update().clone();
            match condition.state {
                WorkerState::Ready => return Ok(()),
                WorkerState::Failed | WorkerState::Stopped => return Err(condition.not_ready()),
                WorkerState::Running => {}
            }
            if conditions.changed().await.is_err() {
                return Err(condition.not_ready());
            }
        }
    }

    /// Waits until it is known whether the managed server of a broken stream is lost, and returns the loss. `None` if the
    /// server still runs or is not managed.
    pub(super) async fn server_verdict(&self) -> Option<Failure> {
        self.server.as_ref()?.verdict().await
    }

    /// When the server was last seen to work, if it can only have been for the one request that streams.
    pub(super) fn worked_for_one(&self) -> Option<Instant> {
        let server = self.server.as_ref()?;
        if self.streaming() == 1 { server.worked() } else { None }
    }

    /// A request was disconnected because it stalled.
    pub(super) fn tell_stall(&self) {
        if let Some(server) = &self.server {
            server.order(Order::Stalled);
        }
    }

    fn streaming(&self) -> usize {
        lock(&self.registry).all().iter().filter(|record| record.is_streaming()).count()
    }

    fn fail_streams(&self, failure: &Failure) {
        let records = lock(&self.registry).all();
        for record in records.iter().filter(|record| record.is_streaming()) {
            record.stop_with(failure.clone());
        }
    }

    /// Gives a request's slot back. Before its end is told: whoever hears of it may submit at once.
    pub(super) fn release(&self, id: &str, record: &Arc<Record>) {
        lock(&self.registry).release(id, record);
    }
}
