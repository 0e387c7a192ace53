//! The driver of the request machine: tokio, sockets, timers, slots.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use deftool_worker::{HttpTransport, Worker, WorkerConfig, own_tools};
//!
//! let transport = HttpTransport::new("http://localhost:8080/v1", None, Duration::from_secs(3))?;
//! let worker = Worker::start(WorkerConfig::default(), Arc::new(own_tools(Vec::new())), Arc::new(transport));
//! println!("{}", worker.ask("What is the weather in Paris?").await?.text);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Worker`] holds the slots and the records of its requests. Each request, in a task of its own or in that of its
//! reader, executes the steps of its request machine ([`Run`](deftool_chat::request::Run)) and reports the results to
//! it; the machine makes every decision. The connection to the model is a [`Transport`]: [`HttpTransport`] for a real server, [`ReplayTransport`]
//! for a recording ([`deftool_record`]). Tools come from a [`ToolSource`]; a model turn uses the [`Toolbox`] that is current at its start
//! until its end.
//!
//! Invariants: a slot is freed when its request reaches a terminal state; every request ends and keeps its text,
//! whatever a server or a tool does; no secret leaves the transport.

mod always_allowed;
mod config;
mod driver;
mod endpoint;
mod observer;
mod own_tool;
mod permissions;
mod server;
mod time;
mod tools;
mod transport;
mod worker;

pub use always_allowed::AlwaysAllowed;
pub use config::{Approvals, WorkerConfig};
pub use deftool_lang::tool::{ToolSource, Toolbox};
pub use driver::{EventStream, PartialCall, ResultError};
pub use endpoint::{
    ANY_MODEL, Detected, Endpoint, EndpointError, EndpointOptions, Evidence, Examination, ExamineOptions,
    Model, api_of, examine_endpoint, find_endpoint,
};
pub use observer::{Observation, Observer, RequestObserver};
pub use own_tool::{InvalidSpec, OwnTool, own_tools};
pub use permissions::{
    bios_permission_request, bios_permission_requests, endpoint_permission_request,
    endpoint_permission_requests, is_remote, names_key, server_permission_request,
    server_permission_requests,
};
pub use server::{NotReady, ServerOptions, WorkerState, WorkerStatus, is_port_free, port_holder};
pub use tools::{ProjectTools, TrustSource};
pub use transport::{
    Credentials, HttpTransport, Incoming, Outgoing, Page, PageResponse, ProbeError, ReplayTransport,
    Transport, TransportError, http_client, root_cause, shown_url,
};
pub use worker::{
    AskError, ChooseError, DEFAULT_WORKER, Origin, RequestStream, ResumeError, SubmitError, SubmitRequest,
    Worker, choose_worker, default_of, usable_workers,
};
