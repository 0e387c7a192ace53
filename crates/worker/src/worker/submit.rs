//! Submitted requests: their content, the reasons for rejecting them, and their inputs from the environment.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use deftool_chat::request::{RequestOptions, RestoreError};
use deftool_chat::{Api, BodyFallbacks, Message, OWN_MEMBERS};
use deftool_lang::schema::ToolSet;
use deftool_lang::tool::TraceContext;
use deftool_record::{Recorder, RequestTrace, Session};
use serde_json::{Map, Value};

use crate::config::WorkerConfig;
use crate::server::NotReady;
use crate::transport::api_path;

/// A request to submit.
#[derive(Debug, Clone, Default)]
pub struct SubmitRequest {
    /// The conversation; the model answers its last message. It is normalized to what all servers accept
    /// ([`deftool_chat::request::normalize_conversation`]).
    pub messages: Vec<Message>,
    /// An additional system message after the worker's `:system`.
    pub system_prompt: Option<String>,
    /// The model, which overrides the model of the worker.
    pub model: Option<String>,
    /// Members of the request body such as `temperature`. They override the worker's `:params`.
    pub params: Map<String, Value>,
    /// Names of the tools that may be called; `None`: all tools of the worker.
    pub tools: Option<Vec<String>>,
    /// Whether the request ends with the first reply. Its calls are validated and reported, and none is answered.
    pub one_reply: bool,
    /// A name for the job, or empty.
    pub job_name: String,
    /// The span of the submitter. The requests to the model, HTTP requests of scripts and calls of MCP servers continue
    /// its trace.
    pub trace: Option<TraceContext>,
    /// The recorder of the request, if it is recorded.
    pub recorder: Option<Arc<Recorder>>,
    /// Inputs from the environment; `None`: the current environment.
    pub origin: Option<Origin>,
}

/// The inputs of a request from its environment. With the same inputs and responses, a request has the same events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Request id. It must be new to the worker.
    pub request_id: String,
    /// Submit time, as Unix time in milliseconds.
    pub submitted_at_ms: u64,
    /// Name of the time zone, such as `Europe/Paris`.
    pub zone: String,
    /// Local time in the system message.
    pub local_time: String,
    /// Seed of call ids and of the jitter of retry delays.
    pub id_seed: u64,
}

impl Origin {
    /// Returns the current environment, with a request id.
    pub fn now(request_id: String) -> Self {
        let now = SystemTime::now();
        let zoned = jiff::Zoned::now();
        Self {
            request_id,
            submitted_at_ms: now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
            zone: zoned.time_zone().iana_name().unwrap_or("UTC").to_owned(),
            local_time: zoned.strftime("%Y-%m-%d %H:%M").to_string(),
            id_seed: fastrand::u64(..),
        }
    }

    /// Replaces the inputs in `session`.
    pub(super) fn apply_to(self, session: &mut Session) {
        let Self { request_id, submitted_at_ms, zone, local_time, id_seed } = self;
        session.request_id = request_id;
        session.submitted_at_ms = submitted_at_ms;
        session.zone = zone;
        session.local_time = local_time;
        session.id_seed = id_seed;
    }
}

impl SubmitRequest {
    /// Creates a request with one user message.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self { messages: vec![Message::user(text)], ..Self::default() }
    }

    /// Checks the requested tools and parameters.
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

    /// Returns the recorded session with the options of this request.
    pub(super) fn into_replayed(self, mut session: Session) -> Session {
        let options = self.options();
        if !options.is_empty() {
            session.options = options;
        }
        // A replay does not belong to the trace of the recorded request.
        session.trace = RequestTrace { submitter: self.trace, request: None };
        if !self.job_name.is_empty() {
            session.job_name = self.job_name;
        }
        if !self.messages.is_empty() {
            session.conversation = self.messages;
        }
        session
    }

    /// Returns the options of the request.
    pub fn options(&self) -> RequestOptions {
        RequestOptions {
            model: self.model.clone(),
            system_prompt: self.system_prompt.clone(),
            params: self.params.clone(),
            tools: self.tools.clone(),
            one_reply: self.one_reply,
        }
    }
}

/// An error: the request was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// All slots and the queue are full, or all requests of the recording were replayed.
    #[error("no slot is free; wait for a request to end, or raise the worker's :slots")]
    NoSlotAvailable,
    /// The worker is not ready: its server is starting or was lost, or the worker was stopped.
    #[error(transparent)]
    WorkerNotReady(NotReady),
    /// The origin contains the id of another request.
    #[error("duplicate request id; use a new id for each request")]
    IdTaken,
    /// Unknown tool.
    #[error("unknown tool `{0}`")]
    UnknownTool(String),
    /// A reserved member of the request body.
    #[error("parameter `{0}` is reserved and cannot be set in a request")]
    ReservedParam(String),
}

/// An error: a request of a journal was not continued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The entries of the journal do not match.
    #[error(transparent)]
    Entries(#[from] RestoreError),
    /// The worker does not accept the request.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// Creates a session from the current environment: clock, time zone, ids.
pub(super) fn live_session(
    config: &WorkerConfig,
    url: &str,
    required: impl Fn(&str) -> BodyFallbacks,
    request: SubmitRequest,
) -> Session {
    let options = request.options();
    let model = options.model.clone().unwrap_or_else(|| config.run.model.clone());
    let SubmitRequest { messages: conversation, job_name, trace: submitter, .. } = request;
    let origin = Origin::now(format!("req_{:016x}", fastrand::u64(..)));
    let Origin { request_id, submitted_at_ms, zone, local_time, id_seed } = origin;
    Session {
        request_id,
        job_name,
        worker: config.run.worker.clone(),
        conversation,
        url: url.to_owned(),
        body_fallbacks: required(&model),
        model,
        options,
        server: config.server,
        api: config.api,
        parallel_tool_calls: config.run.parallel_tool_calls_supported,
        submitted_at_ms,
        zone,
        local_time,
        id_seed,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        trace: RequestTrace { submitter, request: None },
    }
}

/// Returns the URL that identifies the source of replies. The name of a managed server is the same for all APIs.
pub(super) fn source_url(url: &str, api: Api) -> String {
    let path = api_path(api);
    if url.ends_with(path) { url.to_owned() } else { format!("{url}/{path}") }
}

/// Returns the session of a request that continues: the stored request, with the worker and the server of now.
pub(super) fn current_session(
    config: &WorkerConfig,
    url: &str,
    required: impl Fn(&str) -> BodyFallbacks,
    stored: Session,
) -> Session {
    let model = stored.options.model.clone().unwrap_or_else(|| config.run.model.clone());
    Session {
        worker: config.run.worker.clone(),
        url: url.to_owned(),
        body_fallbacks: required(&model),
        model,
        server: config.server,
        api: config.api,
        parallel_tool_calls: config.run.parallel_tool_calls_supported,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        ..stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_of_a_server_is_a_separate_source_of_replies() {
        for (url, api, expected) in [
            ("http://h/v1/chat/completions", Api::ChatCompletions, "http://h/v1/chat/completions"),
            ("http://h/v1/messages", Api::Messages, "http://h/v1/messages"),
            ("the server of `w`", Api::Responses, "the server of `w`/responses"),
            ("the server of `w`", Api::Messages, "the server of `w`/messages"),
        ] {
            assert_eq!(source_url(url, api), expected);
        }
    }
}
