//! The timeline of a run: what happened in each request, in order, with times. It is the input of `deftool view`.
//!
//! A timeline is built from a recording, a journal, a session, or the events of `deftool run --json`. Nothing is executed
//! and no project is needed: replies are decoded from the recorded bytes, and everything else is read from the records.
//!
//! | file | |
//! |---|---|
//! | `model` | the types |
//! | `source` | the format of a file, detected from its content |
//! | `json_text` | JSON text for people |
//! | `builder` | events → the entries of a request |
//! | `recording` | a recording → a timeline: its events, and its replies |
//! | `sent` | the body of a chat request, and what is new in it |
//! | `reply` | the recorded bytes of one reply → its text and calls |
//! | `events` | files of events, and journals → a timeline |
//! | `conversation` | the messages of a session → a timeline |

mod builder;
mod conversation;
mod events;
mod json_text;
mod model;
mod recording;
mod reply;
mod sent;
mod source;

pub use model::{
    BudgetLeft, CallEntry, CallState, Entry, EntryKind, RequestTimeline, Stream, Timeline, TimelineError,
    TimelineSource, TurnEntry, prompt_of,
};
pub use recording::RECORDING_CUT;
