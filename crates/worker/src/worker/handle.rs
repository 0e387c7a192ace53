//! The public interface of a worker.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use deftool_chat::Message;
use deftool_chat::request::{
    Approval, Event, FailReason, Failure, JournalEntry, Outcome, RequestStatus, Resumption, Run, RunConfig,
};
use deftool_lang::spec::Timers;
use deftool_process::lock;
use deftool_record::{JournaledRequest, Recorder, ReplayCursor, Session};
use deftool_script::LogLevel;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::stream::RequestStream;
use super::submit::{ResumeError, SubmitError, SubmitRequest, current_session, live_session, source_url};
use crate::config::WorkerConfig;
use crate::driver::{
    EventStream, Limits, Registry, RequestRecord, RequestTask, ResultError, Shared, WorkerRequests, supervise,
};
use crate::server::{
    Condition, NotReady, Route, Server, ServerOptions, SupervisorCommand, WorkerState, WorkerStatus,
};
use crate::time::{Clock, NO_LIMIT};
use crate::transport::{ReplayTransport, Transport};
use deftool_lang::tool::{AttachmentData, AttachmentStore, ToolSource, Toolbox};

/// Number of log lines in a status.
const STATUS_LOG_LINES: usize = 50;

/// The parts of a request that depend on its origin.
struct AdmitOptions {
    clock: Clock,
    recorder: Option<Arc<Recorder>>,
    cursor: Option<Arc<ReplayCursor>>,
    /// The request, if it is new to the journal.
    new: Option<JournaledRequest>,
    /// The tools that a resumed request was checked against.
    toolbox: Option<Toolbox>,
}

/// A running worker. Cheap to clone; must be used inside a tokio runtime.
#[derive(Clone)]
pub struct Worker {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.shared.config.run.worker).finish_non_exhaustive()
    }
}

impl Worker {
    /// Starts a worker that sends to `transport`. It is ready immediately; [`Worker::ready`] probes the server.
    pub fn start(config: WorkerConfig, tools: Arc<dyn ToolSource>, transport: Arc<dyn Transport>) -> Self {
        Self::build(config, tools, transport, None, None)
    }

    /// Starts a worker with a managed server. It accepts requests once the server is ready: [`Worker::ready`] waits for
    /// that. The server is ended when the last handle of the worker is dropped or this process exits.
    pub fn start_managed(config: WorkerConfig, tools: Arc<dyn ToolSource>, options: ServerOptions) -> Self {
        let (server, supervisor) = Server::new(options);
        let transport: Arc<dyn Transport> = Arc::<Route>::clone(server.route());
        let worker = Self::build(config, tools, transport, None, Some(server));
        let condition = Arc::clone(&worker.shared.condition);
        tokio::spawn(supervisor.run(condition, Box::new(WorkerRequests(Arc::downgrade(&worker.shared)))));
        worker
    }

    /// Starts a worker that replays a recording: the recorded requests in sequence, with their clock, ids and model.
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
        // Timeouts are part of the recording. The speed of the replay must not cause new ones.
        config.timers = Timers {
            headers: Some(NO_LIMIT),
            stall: NO_LIMIT,
            first_token: Some(NO_LIMIT),
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
            Condition::new(WorkerState::Running, Some(server.starting_reason()))
        } else {
            Condition::new(WorkerState::Ready, None)
        };
        let WorkerConfig { slots, queue, keep_results, .. } = config;
        let shared = Shared {
            config,
            tools,
            transport,
            registry: Mutex::new(Registry::new(Limits { slots, queue, keep_results })),
            required_fallbacks: Mutex::default(),
            drained: Notify::new(),
            replay,
            stopped: CancellationToken::new(),
            condition: Arc::new(watch::Sender::new(condition)),
            server,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Submits a request without waiting. The request gets a slot, or a position in the queue if the worker has a
    /// queue. Returns the id of the request.
    ///
    /// # Errors
    /// When all slots and the queue are full, the worker is not ready, or the request is invalid.
    pub fn submit(&self, request: SubmitRequest) -> Result<String, SubmitError> {
        let (id, _) = self.accept(request)?;
        Ok(id)
    }

    /// Like [`submit`](Self::submit), but returns the events of the request. Dropping them cancels the request.
    ///
    /// # Errors
    /// Like [`submit`](Self::submit).
    pub fn stream(&self, request: SubmitRequest) -> Result<RequestStream, SubmitError> {
        let (id, record) = self.accept(request)?;
        Ok(RequestStream::new(id, record))
    }

    fn accept(&self, request: SubmitRequest) -> Result<(String, Arc<RequestRecord>), SubmitError> {
        let shared = &self.shared;
        shared.check_ready().map_err(SubmitError::WorkerNotReady)?;
        let config = shared.current_config();
        request.check(|| shared.tools.current().tools)?;
        let (recorder, origin) = (request.recorder.clone(), request.origin.clone());
        let cursor = match &shared.replay {
            // Each recorded request is replayed only once, because it has the recorded id.
            Some(replay) => Some(replay.peek().ok_or(SubmitError::NoSlotAvailable)?),
            None => None,
        };
        let mut session = match &cursor {
            Some(cursor) => request.into_replayed(cursor.session().clone()),
            None => {
                let url = shared.transport.url(config.api);
                live_session(&config, url, |model| shared.required_fallbacks(model), request)
            }
        };
        if let Some(origin) = origin {
            origin.apply_to(&mut session);
        }
        if shared.config.observer.is_some() {
            session.trace.begin_request();
        }
        let mut config = config.run;
        config.model.clone_from(&session.model);
        config.url = source_url(&session.url, session.api);
        config.text_forms = session.server.text_forms;
        config.parallel_tool_calls_supported = session.parallel_tool_calls;
        let clock = cursor.as_ref().map_or_else(|| Clock::live(0), |cursor| Clock::Recorded(cursor.time()));
        let new = shared.config.journal.as_ref();
        let new = new.map(|_| JournaledRequest { session: session.clone(), config: config.clone() });
        let run = Run::new(config, session.run_start());
        self.admit(run, Vec::new(), session, AdmitOptions { clock, recorder, cursor, new, toolbox: None })
    }

    /// Continues a request of a journal in its worker. `entries`: those of the request, with their times. Its earlier
    /// events are available again. An interrupted reply is requested again; an interrupted call runs again if the
    /// `:effect` of its tool allows it. With `asks`, a `once` call requests the user's approval to run again. Returns
    /// the id of the request and the number of its earlier events.
    ///
    /// A request that has ended only becomes available again, with its events and its outcome.
    ///
    /// The journal restores what happened. What may happen next follows from the configuration and the tools of this
    /// worker: the stored configuration, server and approvals do not count, and calls are validated again.
    ///
    /// # Errors
    /// When the entries do not match, all slots and the queue are full, or the worker is not ready.
    pub fn resume(
        &self,
        request: JournaledRequest,
        entries: Vec<(u64, JournalEntry)>,
        asks: bool,
    ) -> Result<(String, usize), ResumeError> {
        let shared = &self.shared;
        shared.check_ready().map_err(SubmitError::WorkerNotReady)?;
        let at_ms = entries.last().map_or(0, |(at_ms, _)| *at_ms);
        let JournaledRequest { session, config } = request;
        let current = shared.current_config();
        let url = shared.transport.url(current.api);
        let mut session = current_session(&current, url, |model| shared.required_fallbacks(model), session);
        if shared.config.observer.is_some() {
            session.trace.begin_request();
        }
        let toolbox = shared.toolbox(&session.options);
        let restored = Run::restore(config, session.run_start(), entries)?;
        let config_now = RunConfig { url: source_url(&session.url, session.api), ..current.run };
        let now = Resumption { config: config_now, tools: &toolbox.tools, asks };
        let (run, events) = restored.resume(now, at_ms);
        let past = events.len();
        let options = AdmitOptions {
            clock: Clock::live(at_ms),
            recorder: None,
            cursor: None,
            new: None,
            toolbox: Some(toolbox),
        };
        let (id, _) = self.admit(run, events, session, options)?;
        Ok((id, past))
    }

    /// Gives a request a slot or a position in the queue, and starts its task. One that has ended needs neither. `events`:
    /// those that were published before. Returns the id and the record of the request.
    fn admit(
        &self,
        run: Run,
        events: Vec<Event>,
        session: Session,
        options: AdmitOptions,
    ) -> Result<(String, Arc<RequestRecord>), SubmitError> {
        let shared = &self.shared;
        let AdmitOptions { clock, recorder, cursor, new, toolbox } = options;
        let cancel = CancellationToken::new();
        let record = Arc::new(RequestRecord::new(run.status(), cancel.clone(), clock));
        let id = session.request_id.clone();
        let mut registry = lock(&shared.registry);
        if registry.get(&id).is_some() {
            return Err(if cursor.is_some() { SubmitError::NoSlotAvailable } else { SubmitError::IdTaken });
        }
        // One that cannot go on ends in its task, which stores the end.
        if matches!(events.last(), Some(Event::Finished(_))) {
            record.publish(events, run.status(), run.conversation());
            registry.add_ended(id.clone(), &record);
            return Ok((id, record));
        }
        registry.admit(id.clone(), Arc::clone(&record)).ok_or(SubmitError::NoSlotAvailable)?;
        if let Some(replay) = &shared.replay {
            replay.advance();
        }
        drop(registry);
        if shared.stopped.is_cancelled() {
            record.end(shared.config.journal.is_some());
        }
        let mut journaled = HashSet::new();
        if let (Some(journal), Some(new)) = (&shared.config.journal, new) {
            journal.begin(new);
            let attachments = run.conversation().iter().flat_map(|message| message.attachments());
            let data = AttachmentData::unwritten(&mut journaled, attachments);
            if !data.is_empty() {
                journal.append(&id, 0, data.into_iter().map(JournalEntry::Attachment).collect());
            }
        }
        if let Some(recorder) = recorder {
            let _ = record.recorder.set(recorder.begin(&session));
        }
        record.publish(events, run.status(), run.conversation());
        let task = RequestTask {
            shared: Arc::clone(shared),
            record: Arc::clone(&record),
            observer: shared.config.observer.as_ref().map(|observer| Mutex::new(observer.begin(&session))),
            cursor,
            cancel,
            id_seed: session.id_seed,
            body_fallbacks: session.body_fallbacks,
            server: session.server,
            generation: AtomicU64::new(0),
            trace: session.trace,
            toolbox,
            journaled: Mutex::new(journaled),
        };
        tokio::spawn(supervise(Box::new(task), Box::new(run), id.clone()));
        Ok((id, record))
    }

    /// Returns the current generation of the tools.
    pub fn generation(&self) -> u64 {
        self.shared.tools.current().generation
    }

    /// Returns the status of a request; `None`: unknown id.
    pub fn request_status(&self, id: &str) -> Option<RequestStatus> {
        self.record(id).map(|record| record.status())
    }

    /// Returns the events of a request, starting at index `offset`.
    pub fn events(&self, id: &str, offset: usize) -> Option<EventStream> {
        self.record(id).map(|record| EventStream::new(record, offset))
    }

    /// Returns the outcome of a request.
    ///
    /// # Errors
    /// When the request has not finished or its id is unknown.
    pub fn result(&self, id: &str) -> Result<Arc<Outcome>, ResultError> {
        let record = self.record(id).ok_or(ResultError::Unknown)?;
        record.outcome().ok_or(ResultError::NotReady)
    }

    /// Like [`Worker::result`], but also removes the request.
    ///
    /// # Errors
    /// When the request has not finished or its id is unknown.
    pub fn take_result(&self, id: &str) -> Result<Arc<Outcome>, ResultError> {
        let record = lock(&self.shared.registry).take(id)?;
        record.outcome().ok_or(ResultError::NotReady)
    }

    /// Waits for the end of a request and returns its outcome. The request must be known at the call, and may be released
    /// after it.
    ///
    /// # Errors
    /// When the id is unknown.
    pub fn wait(&self, id: &str) -> impl Future<Output = Result<Arc<Outcome>, ResultError>> + use<> {
        let record = self.record(id).ok_or(ResultError::Unknown);
        async {
            let record = record?;
            let mut events = EventStream::new(Arc::clone(&record), 0);
            while events.next_step().await.is_some() {}
            record.outcome().ok_or(ResultError::NotReady)
        }
    }

    /// Returns the conversation of a request so far, without deftool's own system messages. However the request ended,
    /// the conversation can be continued: submit it with the user's next message. `None`: unknown id.
    pub fn conversation(&self, id: &str) -> Option<Vec<Message>> {
        let conversation = self.record(id)?.conversation();
        Some(conversation.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    /// Adds the images and audio of all requests that the worker keeps to `store`.
    pub fn store_attachments(&self, store: &mut AttachmentStore) {
        let records = lock(&self.shared.registry).all();
        for record in records {
            let conversation = record.conversation();
            conversation
                .iter()
                .flat_map(|message| message.attachments())
                .for_each(|attachment| store.insert(attachment));
        }
    }

    /// Cancels a request: disconnects its stream, stops its tool, and frees its slot. Returns `false` for an unknown
    /// id.
    pub fn cancel(&self, id: &str) -> bool {
        self.record(id).map(|record| record.cancel.cancel()).is_some()
    }

    /// Stops a request in this process, so that [`resume`](Self::resume) can continue it in another. Unlike
    /// [`cancel`](Self::cancel), this is not written to the journal, and the observer receives
    /// [`Suspended`](crate::Observation::Suspended) instead of an end.
    pub fn suspend(&self, id: &str) -> bool {
        self.record(id).map(|record| record.suspend()).is_some()
    }

    /// Ends a request because the process ends: [suspends](Self::suspend) it if the worker has a journal, otherwise
    /// [cancels](Self::cancel) it. Returns whether it is suspended.
    pub fn end(&self, id: &str) -> bool {
        let Some(record) = self.record(id) else { return false };
        record.end(self.shared.config.journal.is_some());
        record.is_suspended()
    }

    /// Answers an `approval` event. Returns `false` if no approval of this call is pending.
    pub fn approve(&self, id: &str, call_id: &str, approval: Approval) -> bool {
        self.record(id).is_some_and(|record| record.approve(call_id, approval))
    }

    /// Adds a log line of a call to the recording and the journal of its request. Does nothing for level debug and for an
    /// unknown request.
    pub fn log(&self, id: &str, call_id: &str, level: LogLevel, text: &str) {
        if let Some(record) = self.record(id).filter(|_| level != LogLevel::Debug) {
            let line = format!("{}: {text}", level.as_str());
            record.log(self.shared.config.journal.as_ref(), id, call_id, &line);
        }
    }

    /// Returns the default model of requests. That of a managed server may be known only when it is ready.
    pub fn model(&self) -> String {
        let managed = self.shared.server.as_ref().and_then(|server| server.route().endpoint());
        managed.map_or_else(|| self.shared.config.run.model.clone(), |endpoint| endpoint.model)
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        lock(&self.shared.registry).in_flight()
    }

    /// Returns the number of requests that wait for a slot.
    pub fn queued(&self) -> usize {
        lock(&self.shared.registry).waiting()
    }

    /// Returns the number of draining slots: the server still processes their canceled prompts.
    pub fn draining(&self) -> usize {
        lock(&self.shared.registry).draining()
    }

    /// Waits until no slot is draining, at most one minute after the last cancel.
    pub async fn drained(&self) {
        loop {
            let drained = self.shared.drained.notified();
            tokio::pin!(drained);
            // Enabled before the check: the last slot may be released between check and wait.
            drained.as_mut().enable();
            if self.draining() == 0 {
                return;
            }
            drained.await;
        }
    }

    /// Returns the state of the worker.
    pub fn state(&self) -> WorkerState {
        self.shared.condition().state
    }

    /// Returns a snapshot of the worker and its server.
    pub fn status(&self) -> WorkerStatus {
        let Condition { state, since, reason, restarts, pid, endpoint } = self.shared.condition();
        WorkerStatus {
            state,
            since,
            reason,
            restarts,
            pid,
            endpoint,
            recent_logs: self.recent_logs(STATUS_LOG_LINES),
            slots: self.shared.config.slots,
            in_flight: self.in_flight(),
            queued: self.queued(),
        }
    }

    /// Returns the last `count` lines of a managed server's output, oldest first, without secrets.
    pub fn recent_logs(&self, count: usize) -> Vec<String> {
        self.shared.server.as_ref().map(|server| server.recent_logs(count)).unwrap_or_default()
    }

    /// Waits until the worker accepts requests. Waits for a managed server, including its restarts. Probes a plain
    /// endpoint once: any response except 401, 403 and 5xx means ready.
    ///
    /// # Errors
    /// When the worker cannot become ready without user action: the server failed or failed too often, the endpoint
    /// rejects requests or does not answer, or the worker was stopped.
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
            match shared.check_ready() {
                Err(NotReady { state: WorkerState::Running, .. }) => {}
                result => return result,
            }
            tokio::select! {
                _ = conditions.changed() => {}
                () = shared.stopped.cancelled() => {}
            }
        }
    }

    /// Submits a request. Waits for a managed server that starts or restarts.
    ///
    /// # Errors
    /// If the worker does not accept the request; see [`submit`](Self::submit) and [`ready`](Self::ready).
    pub async fn submit_when_ready(&self, request: SubmitRequest) -> Result<String, SubmitError> {
        loop {
            match self.submit(request.clone()) {
                Err(SubmitError::WorkerNotReady(NotReady { state: WorkerState::Running, .. })) => {
                    self.ready().await.map_err(SubmitError::WorkerNotReady)?;
                }
                submitted => return submitted,
            }
        }
    }

    /// Stops the worker permanently: rejects new requests, [ends](Self::end) those in flight and ends a managed server.
    /// Results remain.
    pub fn stop(&self) {
        self.shared.stopped.cancel();
        let records = lock(&self.shared.registry).close();
        for record in records {
            record.end(self.shared.config.journal.is_some());
        }
        match &self.shared.server {
            Some(server) => server.send(SupervisorCommand::Stop),
            None => {
                self.shared
                    .condition
                    .send_if_modified(|condition| condition.enter(WorkerState::Stopped, None));
            }
        }
    }

    /// Waits until a stopped worker and its server have ended.
    pub async fn stopped(&self) {
        self.shared.stopped.cancelled().await;
        let mut conditions = self.shared.condition.subscribe();
        let _ = conditions.wait_for(|condition| condition.state == WorkerState::Stopped).await;
    }

    /// Restarts a managed server, even if automatic restarts are disabled. Every request that waits for response
    /// headers or has an open stream fails with `worker_restarted`, even if it is canceled at the same time. Other
    /// requests continue: those that run a tool, or wait for an approval, for the server or for a retry.
    pub fn restart(&self) {
        let shared = &self.shared;
        let detail = "the worker was restarted";
        if let Some(server) = &shared.server {
            // Done before the requests fail: a caller may submit the next request immediately, which must not reach the
            // old server.
            shared.condition.send_if_modified(|condition| {
                condition.state != WorkerState::Stopped
                    && condition.enter(WorkerState::Running, Some(String::from(detail)))
            });
            server.send(SupervisorCommand::Restart);
        }
        shared.fail_streams(&Failure::new(FailReason::WorkerRestarted, "", detail), RequestRecord::stop_with);
    }

    fn record(&self, id: &str) -> Option<Arc<RequestRecord>> {
        lock(&self.shared.registry).get(id)
    }
}
