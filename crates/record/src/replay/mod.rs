//! Replays a recording: compares what a request does with the recorded request, and provides the recorded answers, in the
//! recorded order and with the recorded times.
//!
//! A replay needs no network, no probe and no key. Each outgoing request is compared with the recorded request that has
//! the same number. Then the recorded response is returned in the same chunks, immediately or with the recorded delays.
//! Tools run, or return their recorded results. In both cases the request machine gets the results in the recorded
//! order and with the recorded times, so the events are the same. The caller sends, waits and runs tools.
//!
//! | file | |
//! |---|---|
//! | `model` | options, time and differences |
//! | `cursor` | replays one request: its chat requests and responses |
//! | `calls` | the recorded tool calls and approvals of a request |
//! | `answers` | answers tool calls and approvals from them |

mod answers;
mod calls;
mod cursor;
mod model;

pub use answers::{CallPlan, NextAnswer};
pub use cursor::ReplayCursor;
pub use model::{RecordedTime, ReplayDifference, ReplayOptions};
