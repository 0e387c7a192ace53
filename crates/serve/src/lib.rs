//! Workers on [Restate](https://restate.dev): requests survive the loss of the host on which they run.
//!
//! A request is a workflow, and its handler drives the same state machine as [`Worker`](deftool_worker::Worker) in
//! process: it stores what the worker writes to its [`Journal`](deftool_record::Journal) as steps of the workflow. When
//! Restate executes the handler again, on this host or another, the stored steps are the entries with which
//! [`Worker::resume`](deftool_worker::Worker::resume) continues the request. So a `once` call is stored before it runs
//! and never runs again, as with the journal in SQLite.
//!
//! | service | handler | |
//! |---|---|---|
//! | `Request/ID` | `submit` | runs a [`Submission`]; returns a [`RequestResult`], also when it is repeated |
//! | | `run` | the workflow, which `submit` calls |
//! | | `events` | returns the [`EventPage`] at a cursor; waits for it |
//! | | `signal` | waits for the call of an exit tool |
//! | | `cancel` | ends the request |
//! | `Conversation/ID` | `send` | sends a message; returns a [`RequestResult`] |
//! | | `messages` | returns the conversation |
//!
//! A new request whose worker cannot be used fails with an HTTP status ([`OpenFailure`]). One that has begun waits, and
//! Restate repeats the attempt; each reason is reported.

mod attempt;
mod bridge;
mod host;
mod protocol;
mod service;
mod workers;

pub use bridge::RestateJournal;
pub use host::{Host, OpenWorker};
pub use protocol::{ApprovalRequest, EventPage, RequestResult, Submission};
pub use service::serve;
pub use workers::{OpenFailure, ServeOptions, Workers, report};
