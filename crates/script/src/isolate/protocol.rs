//! The messages between the engine and a child process: [frames](deftool_process::frame) over the child's stdin and
//! stdout, with a payload in calls and answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::schema::Arguments;
use deftool_lang::spec::Effect;
use deftool_lang::tool::{CallContext, ToolError, TraceContext};
use deftool_process::frame::Octets;
use serde::{Deserialize, Serialize};

use crate::events::LogLevel;
use crate::script::contract::{Contract, LoadError};

/// The first message of a child, which shows that both sides have the same version.
pub(super) const GREETING: &str = concat!("deftool script host ", env!("CARGO_PKG_VERSION"));

/// Time limit for a child's greeting.
pub(super) const START_LIMIT: Duration = Duration::from_secs(20);

/// A message from the engine to a child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Store this script under a number. Answered by [`Reply::Loaded`].
    Load(u64, Box<WireScript>),
    /// Drop the script with that number; it is not called again.
    Unload(u64),
    /// Run a call; its arguments follow. Answered by [`Reply::Returned`] or [`Reply::Failed`].
    Call(WireCall),
    /// Stop the running call.
    Cancel,
    /// Compile a source. Holds the file name for messages, and the source. Answered by [`Reply::Checked`].
    Check(String, Octets),
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireCall {
    /// The number of the call, which the answer repeats.
    pub(super) number: u64,
    pub(super) script: u64,
    /// The effective time limit.
    pub(super) timeout: Duration,
    pub(super) request_id: String,
    pub(super) job_name: String,
    pub(super) worker: String,
    pub(super) idempotency_key: String,
    pub(super) effect: Effect,
    pub(super) trace: Option<TraceContext>,
    /// Whether the child must send [`Reply::Used`] before the answer.
    pub(super) is_metered: bool,
}

impl WireCall {
    pub(super) fn context(&self) -> CallContext {
        CallContext {
            request_id: self.request_id.clone(),
            // Log lines get it in the other process.
            call_id: String::new(),
            job_name: self.job_name.clone(),
            worker: self.worker.clone(),
            idempotency_key: self.idempotency_key.clone(),
            effect: self.effect,
            trace: self.trace.clone(),
            timeout: Some(self.timeout),
            meter: self.is_metered.then(Arc::default),
        }
    }
}

/// A message from a child to the engine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// [`GREETING`], once.
    Ready(String),
    /// The script is stored, whether it compiles or not.
    Loaded(u64),
    Logged(LogLevel, String),
    Progressed(Option<f64>, String),
    /// Resource usage of the call: run time of the top level, run time of the function, memory in bytes.
    Used(Duration, Duration, u64),
    /// The contract of the source, or the reason why it does not compile.
    Checked(Result<Contract, LoadError>),
    /// The call of that number returned, with attachments in base64; the value of its result follows.
    Returned(u64, Vec<String>),
    /// The call of that number failed.
    Failed(u64, ToolError),
}

/// The parts of a script that a child needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireScript {
    pub(super) tool: String,
    pub(super) file: String,
    pub(super) source: Octets,
    pub(super) parameters: Vec<(String, bool)>,
    pub(super) is_async: bool,
    pub(super) memory: u64,
    pub(super) root: Option<Octets>,
    pub(super) modules: Vec<(String, Octets)>,
    pub(super) net: Vec<String>,
    pub(super) read: Vec<(String, Octets)>,
    pub(super) write: Vec<(String, Octets)>,
    pub(super) run: Vec<String>,
    pub(super) env: Vec<String>,
}

/// Parses the arguments after a call.
pub(super) fn arguments(rest: &[u8]) -> io::Result<Arguments> {
    Ok(serde_json::from_slice(rest)?)
}
