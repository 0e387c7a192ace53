//! What is kept of requests: recordings and their replay, sessions, the interface of journals, timelines, and the
//! redaction of secrets.
//!
//! ```
//! use deftool_record::{Mask, Secrets, Timeline, differences};
//! use serde_json::json;
//!
//! let mut secrets = Secrets::default();
//! secrets.add_value("hunter22");
//! let recorded = Mask::new(secrets).text("the password is hunter22");
//! assert_eq!(recorded, "the password is [redacted-1]");
//! // A mark equals any text.
//! assert!(differences(&json!(recorded), &json!("the password is new")).is_empty());
//!
//! # fn example() -> Result<(), deftool_record::TimelineError> {
//! let timeline = Timeline::read("run.jsonl".as_ref())?;
//! println!("{} requests", timeline.requests.len());
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `recording` | writes and reads recordings: the bytes of the server with their times, and all other inputs of a request |
//! | `replay` | a cursor that answers a request from its recording and compares both |
//! | `journal` | the interface of a journal, in which requests survive the end of their process |
//! | [`session`] | stored conversations of `deftool chat` and `deftool acp` |
//! | `stored` | the files of lines: recordings, sessions and lists of events |
//! | `timeline` | a recording, a journal, a session or events as plain data for `deftool view` |
//! | `compare` | differences of JSON values |
//! | [`secrets`] | redaction of the API key and the user's secrets |
//! | `trace` | the part of a distributed trace that a request belongs to |
//!
//! Nothing here sends requests, waits or runs tools: the worker does.

mod compare;
mod journal;
mod recording;
mod replay;
pub mod secrets;
pub mod session;
mod stored;
mod timeline;
mod trace;

pub use compare::{Change, Difference, differences};
pub use journal::{Durability, Journal, JournalError, JournaledRequest};
pub use recording::{
    Line, RecordedRequest, RecordedToolCall, Recorder, Recording, RequestRecorder, Session, Stopped,
};
pub use replay::{CallPlan, NextAnswer, RecordedTime, ReplayCursor, ReplayDifference, ReplayOptions};
pub use secrets::{Mask, Redaction, Redactor, Secrets, holds_redacted, is_secret_name};
pub use stored::{StoredFileError, StoredFileProblem, StoredForm};
pub use timeline::{
    BudgetLeft, CallEntry, CallState, Entry, EntryKind, RECORDING_CUT, RequestTimeline, Stream, Timeline,
    TimelineError, TimelineSource, TurnEntry, prompt_of,
};
pub use trace::RequestTrace;
