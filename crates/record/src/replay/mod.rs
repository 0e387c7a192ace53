//! Replays a recording: a transport that answers requests with the recorded responses, in the recorded order.
//!
//! A replay needs no network, no probe and no key. Each outgoing request is compared with the recorded request that has
//! the same number. Then the recorded response is returned in the same chunks, immediately or with the recorded delays.
//! Tools run, or return their recorded results. In both cases the request machine gets the results in the recorded
//! order and with the recorded times, so the events are the same.
//!
//! | file | |
//! |---|---|
//! | `model` | options and differences |
//! | `transport` | the transport: one cursor for each recorded request |
//! | `cursor` | replays one request: its chat requests and responses |
//! | `calls` | the recorded tool calls and approvals of a request |
//! | `answers` | answers tool calls and approvals from them |

mod answers;
mod calls;
mod cursor;
mod model;
mod transport;

pub use model::{ReplayDifference, ReplayOptions};
pub use transport::ReplayTransport;

pub(crate) use answers::{CallPlan, NextAnswer};
pub(crate) use cursor::ReplayCursor;
