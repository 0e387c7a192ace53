//! The requests of one client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deftool_jsonrpc::{Error, Id, Message, code};
use deftool_lang::spec::advice_on_name;
use deftool_script::ScriptEvent;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::{Client, to_json};
use crate::host::Host;
use crate::protocol::{CancelParams, LogParams, METHODS, ProgressParams, ReloadedParams};
use crate::script_events::{Queued, ScriptEvents};
use crate::workers::Workers;

/// Maximum number of requests without a response. One that waits for a model needs a few kilobytes.
const MAX_OPEN: usize = 4096;

/// Maximum number of open requests that run tools or load the project: they need threads, and the results of calls wait
/// for a client that does not read.
const MAX_RUNNING: usize = 128;

/// The session of a client.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) host: Arc<Host>,
    pub(crate) workers: Arc<Workers>,
    script_events: mpsc::Sender<Queued>,
    /// Cancels everything.
    pub(crate) canceled: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Cancels each request without a response.
    open: Arc<Mutex<HashMap<Id, CancellationToken>>>,
    /// The permits of requests that run tools or load the project.
    running: Arc<Semaphore>,
}

impl Session {
    pub(crate) fn start(host: Host, script_events: ScriptEvents, client: Client) -> Self {
        let session = Self {
            client,
            host: Arc::new(host),
            workers: script_events.workers,
            script_events: script_events.sender,
            canceled: CancellationToken::new(),
            tasks: TaskTracker::new(),
            open: Arc::default(),
            running: Arc::new(Semaphore::new(MAX_RUNNING)),
        };
        session.spawn(report_reloads(session.clone()));
        session.spawn(report_script_events(session.clone(), script_events.receiver));
        session
    }

    /// Spawns a task that ends with the session.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.canceled.clone().run_until_cancelled_owned(task));
    }

    /// Waits until all events of scripts were sent. They precede the result of their call.
    pub(crate) async fn flush_script_events(&self) {
        let (flushed, end) = oneshot::channel();
        if self.script_events.send(Queued::Flush(flushed)).await.is_ok() {
            let _ = end.await;
        }
    }

    /// Cancels everything, and waits until the workers have ended.
    pub(crate) async fn stop(&self) {
        self.canceled.cancel();
        self.tasks.close();
        self.workers.close().await;
    }

    pub(crate) async fn handle(&self, message: Message) {
        match message {
            Message::Request { id, method, params } => {
                if let Err(error) = self.answer_later(id.clone(), method, params) {
                    self.client.room().await;
                    self.client.respond(id, Err(error));
                }
            }
            Message::Notification { method, params } => {
                if method == "$/cancelRequest"
                    && let Ok(CancelParams { id }) = serde_json::from_value(params)
                    && let Some(canceled) = self.open().get(&id)
                {
                    canceled.cancel();
                }
            }
            Message::Response { id, result } => self.client.on_response(id.as_ref(), result),
        }
    }

    /// Starts to answer a request.
    fn answer_later(&self, id: Id, method: String, params: Value) -> Result<(), Error> {
        let too_many = |limit: usize| {
            let message = format!("too many open requests; wait for one of {limit} to finish");
            Error::new(code::REQUEST_FAILED, message)
        };
        let canceled = self.canceled.child_token();
        let runs = matches!(method.as_str(), "call" | "check");
        let permit = {
            let mut open = self.open();
            if open.contains_key(&id) {
                let message = "another request with this ID is not finished";
                return Err(Error::new(code::INVALID_REQUEST, message));
            }
            if open.len() >= MAX_OPEN {
                return Err(too_many(MAX_OPEN));
            }
            let permit = runs.then(|| Arc::clone(&self.running).try_acquire_owned()).transpose();
            let permit = permit.map_err(|_| too_many(MAX_RUNNING))?;
            open.insert(id.clone(), canceled.clone());
            permit
        };
        let session = self.clone();
        self.tasks.spawn(async move {
            let _permit = permit;
            // Results are not computed for a client that does not read: they would need memory.
            session.client.room().await;
            let result = tokio::select! {
                // A result that is ready is sent even after cancellation: a client that closed stdin may still read.
                biased;
                result = session.answer(&method, params) => result,
                () = canceled.cancelled() => Err(Error::new(code::CANCELED, "canceled")),
            };
            session.open().remove(&id);
            session.client.respond(id, result);
        });
        Ok(())
    }

    async fn answer(&self, method: &str, params: Value) -> Result<Value, Error> {
        match method {
            "list" => Ok(to_json(self.list(parse(params)?))),
            "check" => self.check(parse(params)?).map(to_json),
            "compile" => self.compile(parse(params)?).map(to_json),
            "needs_approval" => self.needs_approval(parse(params)?).map(to_json),
            "call" => self.call(parse(params)?).await.map(to_json),
            "submit" => self.submit(parse(params)?).await.map(to_json),
            "events" => self.events(parse(params)?).await.map(to_json),
            "result" => self.result(parse(params)?).await.map(to_json),
            "cancel" => self.cancel(parse(params)?).map(to_json),
            _ => {
                let advice = advice_on_name(method, "methods", METHODS);
                Err(Error::new(code::METHOD_NOT_FOUND, format!("unknown method `{method}`; {advice}")))
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses the parameters of a method. No parameters are an empty object.
fn parse<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    let invalid =
        |message: String| Error::new(code::INVALID_PARAMS, format!("invalid parameters: {message}"));
    match params {
        Value::Null => parse(Value::Object(serde_json::Map::new())),
        Value::Object(_) => serde_json::from_value(params).map_err(|error| invalid(error.to_string())),
        _ => Err(invalid(String::from("expected an object"))),
    }
}

/// Reports each reload. Reloads that follow each other quickly are reported together.
async fn report_reloads(session: Session) {
    let project = &session.host.project;
    let mut reloads = session.host.reloads.clone();
    let (mut generation, mut error) = (project.current().number, project.error());
    while reloads.changed().await.is_ok() {
        let current = (project.current().number, project.error());
        if current == (generation, error.clone()) {
            continue;
        }
        let changes = project.changes_since(generation);
        (generation, error) = current;
        session.client.notify("reloaded", ReloadedParams { generation, changes, error: error.clone() }).await;
    }
}

async fn report_script_events(session: Session, mut events: mpsc::Receiver<Queued>) {
    let client = &session.client;
    while let Some(queued) = events.recv().await {
        match queued {
            Queued::Flush(flushed) => drop(flushed.send(())),
            Queued::Event(ScriptEvent::Logged { tool, request_id: id, level, text, .. }) => {
                client.notify("log", LogParams { id, tool, level: level.into(), text }).await;
            }
            Queued::Event(ScriptEvent::Progressed { tool, request_id: id, fraction, text, .. }) => {
                client.notify("progress", ProgressParams { id, tool, fraction, text }).await;
            }
        }
    }
}
