//! The request machine. It makes every decision of the worker loop, without IO, clock, async or randomness.
//!
//! In: a [`RunConfig`], a [`RunStart`], then the inputs: [`crate::ChatEvent`]s, tool results, a cancellation or a
//! failure, each with its time (milliseconds since the request was submitted). Out: [`Step`]s for the driver,
//! [`Event`]s for the consumer, and finally an [`Outcome`]. The machine can be serialised between any two inputs and
//! then continues identically.
//!
//! Invariants: the first terminal state is final. Text only grows, and the concatenated text events are the text of the
//! outcome. A pending call is returned until it is answered, and never after. No chat request contains an unanswered
//! call that this machine created. The tool budget is never exceeded. Exit calls are recorded before any part of their
//! reply can fail.
//!
//! Timers, retries, transport and slots are not part of this module; the worker implements them.

mod bios;
mod config;
mod conversation;
mod event;
mod ids;
mod normalize;
mod outcome;
mod repetition;
mod result_size;
mod run;
mod text_calls;
mod validate;

pub use bios::{BiosContext, BiosPart, BiosProvider, BiosTemplate, BiosV1, budget_in_bios};
pub use config::{RequestOptions, RunConfig, RunStart};
pub use event::{Approval, Event};
pub use normalize::{INTERRUPTED, normalize_conversation};
pub use outcome::{FailReason, Failure, FailureKind, FinalState, FinishReason, Outcome, Signal};
pub use repetition::{LineDetector, Loop, RepetitionThreshold, default_thresholds};
pub use result_size::cut_result;
pub use run::{
    Budget, JournalEntry, PendingCall, ReplyState, RequestState, RequestStatus, RestoreError, RestoredRun,
    Resumption, Run, Step,
};
pub use text_calls::{TextReader, coerce_arguments};

pub use deftool_lang::spec::{BiosBudget, BudgetUnit, Fallback, OnFailure, StringResults, SystemMessages};
