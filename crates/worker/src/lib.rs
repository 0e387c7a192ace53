//! The driver of the request machine: tokio, sockets, timers, slots.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use deftool_worker::Worker;
//!
//! let worker = Worker::open("path/to/project").endpoint("http://localhost:8080/v1").start().await?;
//! let outcome = worker.ask("What is the weather in Paris?").await?;
//! println!("{}", outcome.text);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Worker`] holds the slots and the records of its requests. Each request is a task that executes the steps of its
//! request machine ([`Run`](deftool_chat::request::Run)) and reports the results to it; the machine makes every decision. The
//! connection to the model is a [`Transport`]: [`HttpTransport`] for a real server, [`ReplayTransport`] for a
//! recording. Tools come from a [`ToolSource`]; each model turn uses its current [`Toolbox`] to the end.
//!
//! Invariants: a slot is freed at any terminal state of its request; every request ends and keeps its text, whatever a
//! server or a tool does; no secret leaves the transport.

mod calls;
mod choose;
mod clock;
mod compare;
mod config;
mod detect;
mod drain;
mod drive;
mod echo;
mod endpoint;
mod event_log;
mod examine;
mod handle;
mod http;
mod inflate;
mod key_tail;
mod open;
mod permission_requests;
mod probe;
mod project_tools;
mod record;
mod recorded_calls;
mod recording;
mod redact;
mod registry;
mod replay;
mod secret_forms;
mod secrets;
mod server;
mod stream_timers;
mod submit;
mod toolbox;
mod transport;
mod turn;

pub use calls::Approvals;
pub use choose::{ChooseError, choose_worker};
pub use compare::{Change, Difference};
pub use config::WorkerConfig;
pub use detect::{Detected, Evidence};
pub use endpoint::ANY_MODEL;
pub use endpoint::{Endpoint, EndpointError, EndpointOptions, find_endpoint};
pub use examine::{Examination, ExamineOptions, Model, examine_endpoint};
pub use handle::Worker;
pub use http::HttpTransport;
pub use open::{AskError, OpenError, OpenWorker};
pub use permission_requests::{
    endpoint_permission_request, endpoint_permission_requests, is_remote, names_key,
    server_permission_request, server_permission_requests,
};
pub use probe::{Credentials, ProbeError};
pub use project_tools::{ProjectTools, TrustSource};
pub use record::{EventStream, ResultError};
pub use recorded_calls::RecordedToolCall;
pub use recording::redact_message;
pub use recording::{RecordedRequest, Recorder, Recording, RecordingError, Session};
pub use redact::Redactor;
pub use replay::{ReplayDifference, ReplayOptions, ReplayTransport};
pub use secrets::Mask;
pub use secrets::{Secrets, holds_redacted, is_secret_name};
pub use server::{
    GuardProgram, NotReady, RestartLimits, ServerLimits, ServerOptions, WorkerState, WorkerStatus,
    guard_server, is_port_free, port_holder,
};
pub use submit::{Origin, SubmitError, SubmitRequest};
pub use toolbox::{ToolSource, Toolbox};
pub use transport::{Incoming, Outgoing, Page, PageResponse, Transport, TransportError};
