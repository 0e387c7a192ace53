//! A request on its way in: what is submitted, why it may be refused, and what the world gives it to start from.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::handle::Shared;
use super::recording::{Recorder, Session};
use crate::chat::Message;
use crate::request::RunStart;

/// A request to submit.
#[derive(Debug, Clone, Default)]
pub struct SubmitRequest {
    /// The conversation, its last message the one to answer.
    pub messages: Vec<Message>,
    /// A name of the submitter's for the job, or empty.
    pub job_name: String,
    /// Where to record it.
    pub recorder: Option<Arc<Recorder>>,
}

impl SubmitRequest {
    /// A request of one user message.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self { messages: vec![Message::User { content: text.into() }], ..Self::default() }
    }
}

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Every slot holds a request.
    #[error("no slot is free; wait for a request to end, or raise the worker's :slots")]
    NoSlotAvailable,
    /// The worker is stopped.
    #[error("the worker is not ready")]
    WorkerNotReady,
}

/// What a request starts from: clock, zone, ids.
pub(super) fn live_session(shared: &Shared, conversation: Vec<Message>, job_name: String) -> Session {
    let config = &shared.config;
    let now = SystemTime::now();
    let zoned = jiff::Zoned::now();
    let submitted_at_ms = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    Session {
        request_id: format!("req_{:016x}", fastrand::u64(..)),
        job_name,
        worker: config.run.worker.clone(),
        conversation,
        url: shared.transport.url().to_owned(),
        model: config.run.model.clone(),
        llama_cpp: config.llama_cpp,
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
        submitted_at_ms: session.submitted_at_ms,
        zone: session.zone.clone(),
        local_time: session.local_time.clone(),
        id_seed: session.id_seed,
    }
}
