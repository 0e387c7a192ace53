//! The request machine: every decision of the worker loop, no IO, no clock, no async, no randomness.
//!
//! In: a [`RunConfig`], a [`RunStart`], then what happened: [`crate::chat::ChatEvent`]s, tool results, a cancel or a
//! failure, each with its time (milliseconds since the request was submitted). Out: [`Step`]s for the driver and
//! [`Event`]s for the consumer, at the end an [`Outcome`]. The machine can be serialised between any two inputs
//! and goes on identically.
//!
//! Invariants: the first terminal state wins and nothing changes after it; text only grows, and the text events
//! put together are the outcome's text; a call is handed out until it is answered and never again; no request is
//! sent with an unanswered call of this machine's making; the tool budget is never overshot; exit calls are
//! recorded before anything of their reply can fail.
//!
//! Absent: timers, retries, transport, slots (the worker's).

mod alike;
mod approval;
mod bios;
mod budget;
mod canonical;
mod config;
mod conversation;
mod emission;
mod event;
mod hold_back;
mod ids;
mod outcome;
mod repetition;
mod run;
mod said;
mod signal;
mod valid;
mod written;

pub use approval::Approval;
pub use bios::{BiosContext, BiosPart, BiosProvider, BiosTemplate, BiosV1};
pub use budget::Budget;
pub use config::{RequestOptions, RunConfig, RunStart};
pub use event::{EVENT_VERSION, Event};
pub use outcome::{FailReason, Failure, FinalState, FinishReason, Outcome, kind};
pub use repetition::{LineDetector, Loop, RepetitionThreshold, default_thresholds};
pub use run::{PendingCall, RequestState, RequestStatus, Run, Step};
pub use signal::Signal;
pub use valid::{INTERRUPTED, valid_conversation};
pub use written::settle_written;

pub use crate::spec::{BiosBudget, BudgetUnit, Fallback, OnFailure, SystemMessages};
