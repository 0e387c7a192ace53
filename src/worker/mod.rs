//! The driver of the request machine: tokio, sockets, timers, slots.
//!
//! A [`Worker`] holds the slots and the records of its requests. Each request is a task that asks its
//! [`Run`](crate::request::Run) what to do, does it, and tells the machine what happened; every decision is the
//! machine's. The model's side is a [`Transport`]: [`HttpTransport`] for a real server, [`ReplayTransport`] for a
//! recording. Tools come from a [`ToolSource`], whose newest [`Toolbox`] each model turn is pinned to.
//!
//! Invariants: a slot is freed at its request's terminal state, whatever it is; whatever a server or a tool does, a
//! request ends, and its text is kept; no secret passes the transport upward.
//!
//! Absent as yet: managed servers, dialects beyond the probe for llama.cpp.

mod calls;
mod clock;
mod compare;
mod config;
mod drive;
mod echo;
mod endpoint;
mod examine;
mod handle;
mod http;
mod record;
mod recording;
mod redact;
mod replay;
mod stream_timers;
mod submit;
mod toolbox;
mod transport;
mod turn;

pub use calls::Approvals;
pub use config::WorkerConfig;
pub use endpoint::{Endpoint, EndpointError, EndpointOptions, find_endpoint};
pub use examine::{Examination, Model, ProbeError, Props, examine_endpoint};
pub use handle::{Worker, WorkerState};
pub use http::HttpTransport;
pub use record::{EventStream, ResultError};
pub use recording::{Recorder, Recording, RecordingError, Session};
#[cfg(feature = "cli")]
pub(crate) use redact::Redactor;
pub use replay::ReplayTransport;
pub use submit::{SubmitError, SubmitRequest};
pub use toolbox::{ToolSource, Toolbox};
pub use transport::{Incoming, Outgoing, Transport, TransportError};
