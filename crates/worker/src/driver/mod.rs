//! The driver of requests: runs the tasks of a worker's requests and keeps their records.
//!
//! | file | |
//! |---|---|
//! | `shared` | the state that all requests of a worker share |
//! | `registry` | the requests of a worker, and its slots |
//! | `record` | the events, the status and the outcome of one request |
//! | `event_log` | the storage of its events |
//! | `task` | the task of one request |
//! | `drive` | executes the steps of the request machine |
//! | `turn` | one model turn |
//! | `calls` | the tool calls and approvals of one reply |
//! | `drain` | slots that the server still uses after a cancel |

mod calls;
mod drain;
mod drive;
mod event_log;
mod record;
mod registry;
mod shared;
mod task;
mod turn;

pub use record::{EventStream, PartialCall, ResultError};

pub(crate) use drive::supervise;
pub(crate) use record::RequestRecord;
pub(crate) use registry::{Limits, Registry};
pub(crate) use shared::{Shared, WorkerRequests};
pub(crate) use task::RequestTask;
