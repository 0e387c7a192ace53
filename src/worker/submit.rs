//! A request on its way in: what is submitted, why it may be refused, and what the world gives it to start from.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::config::WorkerConfig;
use super::recording::{Recorder, Session};
use super::server::NotReady;
use crate::chat::{Message, OWN_MEMBERS, Swaps};
use crate::request::{RequestOptions, RunStart};
use crate::schema::ToolSet;

/// A request to submit.
#[derive(Debug, Clone, Default)]
pub struct SubmitRequest {
    /// The conversation, its last message the one to answer. What servers refuse in it is mended
    /// ([`crate::request::valid_conversation`]).
    pub messages: Vec<Message>,
    /// A system message beside the worker's `:system`, after it.
    pub system_prompt: Option<String>,
    /// The model, instead of the worker's.
    pub model: Option<String>,
    /// Members of the request body such as `temperature`; they win over the worker's `:params`.
    pub params: Map<String, Value>,
    /// Names of the tools that may be called; `None`: all that the worker has.
    pub tools: Option<Vec<String>>,
    /// A name of the submitter's for the job, or empty.
    pub job_name: String,
    /// Where to record it.
    pub recorder: Option<Arc<Recorder>>,
    /// What it takes from the world; `None`: what is there now.
    pub origin: Option<Origin>,
}

/// What a request takes from the world: given the same, and the same answers, it is the same request again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its id; one that the worker does not remember.
    pub request_id: String,
    /// When it is submitted, Unix time in milliseconds.
    pub submitted_at_ms: u64,
    /// The zone's name, as in `Europe/Paris`.
    pub zone: String,
    /// The local time, as the model is told it.
    pub local_time: String,
    /// Where the ids of its calls and the spread of its waits come from.
    pub id_seed: u64,
}

impl Origin {
    /// Takes the place of what a session found.
    pub(super) fn settle(self, session: &mut Session) {
        let Self { request_id, submitted_at_ms, zone, local_time, id_seed } = self;
        session.request_id = request_id;
        session.submitted_at_ms = submitted_at_ms;
        session.zone = zone;
        session.local_time = local_time;
        session.id_seed = id_seed;
    }
}

impl SubmitRequest {
    /// A request of one user message.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self { messages: vec![Message::User { content: text.into() }], ..Self::default() }
    }

    /// What it asks for that cannot be had.
    pub(super) fn check(&self, tools: impl FnOnce() -> ToolSet) -> Result<(), SubmitError> {
        if let Some(names) = &self.tools {
            let tools = tools();
            if let Some(name) = names.iter().find(|name| tools.get(name).is_none()) {
                return Err(SubmitError::UnknownTool(name.clone()));
            }
        }
        match self.params.keys().find(|name| OWN_MEMBERS.contains(&name.as_str())) {
            Some(name) => Err(SubmitError::ReservedParam(name.clone())),
            None => Ok(()),
        }
    }

    /// The recorded session, with what this request has instead.
    pub(super) fn of_replay(self, mut session: Session) -> Session {
        let options = self.options();
        if !options.is_empty() {
            session.options = options;
        }
        if !self.job_name.is_empty() {
            session.job_name = self.job_name;
        }
        if !self.messages.is_empty() {
            session.conversation = self.messages;
        }
        session
    }

    /// What it has of its own.
    pub(super) fn options(&self) -> RequestOptions {
        RequestOptions {
            model: self.model.clone(),
            system_prompt: self.system_prompt.clone(),
            params: self.params.clone(),
            tools: self.tools.clone(),
        }
    }
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Every slot holds a request.
    #[error("no slot is free; wait for a request to end, or raise the worker's :slots")]
    NoSlotAvailable,
    /// The worker is starting its server, has lost it, or was stopped.
    #[error(transparent)]
    WorkerNotReady(NotReady),
    /// Its origin gives an id that another request has.
    #[error("a request of this id is remembered; give each request an id of its own")]
    IdTaken,
    /// It names a tool that the worker does not have.
    #[error("the worker has no tool called `{0}`")]
    UnknownTool(String),
    /// It sets a member of the body that is the engine's.
    #[error("the parameter `{0}` is set by the engine and cannot be given with a request")]
    ReservedParam(String),
}

/// What a request starts from: clock, zone, ids.
pub(super) fn live_session(
    config: &WorkerConfig,
    url: &str,
    swaps: Swaps,
    request: SubmitRequest,
) -> Session {
    let options = request.options();
    let SubmitRequest { messages: conversation, job_name, .. } = request;
    let now = SystemTime::now();
    let zoned = jiff::Zoned::now();
    let submitted_at_ms = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    Session {
        request_id: format!("req_{:016x}", fastrand::u64(..)),
        job_name,
        worker: config.run.worker.clone(),
        conversation,
        url: url.to_owned(),
        model: options.model.clone().unwrap_or_else(|| config.run.model.clone()),
        options,
        server: config.server,
        swaps,
        api: config.api,
        parallel_tool_calls: config.run.parallel_tool_calls_supported,
        submitted_at_ms,
        zone: zoned.time_zone().iana_name().unwrap_or("UTC").to_owned(),
        local_time: zoned.strftime("%Y-%m-%d %H:%M").to_string(),
        id_seed: fastrand::u64(..),
        engine: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

pub(super) fn run_start(session: &Session) -> RunStart {
    RunStart {
        request_id: session.request_id.clone(),
        job_name: session.job_name.clone(),
        conversation: session.conversation.clone(),
        options: session.options.clone(),
        submitted_at_ms: session.submitted_at_ms,
        zone: session.zone.clone(),
        local_time: session.local_time.clone(),
        id_seed: session.id_seed,
    }
}
