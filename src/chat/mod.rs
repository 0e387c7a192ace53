//! The wire of chat completions, without a socket: messages, request bodies, bytes → events, deltas → calls.
//!
//! Out goes a [`ChatRequest`], encoded; back come bytes, which a [`StreamDecoder`] turns into [`ChatEvent`]s, the last
//! of which is the judged [`Reply`]. Servers differ; the deviations that are read here are recorded in `tests/wire`.
//!
//! | file | bytes to reply |
//! |---|---|
//! | [`sse`] | bytes → frames |
//! | `loose`, `repair`, `chunk` | a frame's JSON → a chunk, whatever the types of its fields |
//! | `assemble` | deltas → calls |
//! | `decoder`, `sink` | all of it, and the verdict |
//! | [`fallback`] | calls that a model writes into its text |
//! | `http_error` | what a server says went wrong |

mod assemble;
mod chunk;
mod decoder;
mod event;
pub mod fallback;
mod http_error;
mod loose;
mod message;
mod repair;
mod request_body;
mod sink;
pub mod sse;

pub use assemble::MAX_CALLS;
pub use decoder::{End, MAX_REPLY_BYTES, StreamDecoder, StreamNotes};
pub use event::{ChatEvent, RawArguments, RawCall, Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
pub use http_error::classify_http_error;
pub use message::{FunctionCall, Message, MessageToolCall};
pub use request_body::{BodyForm, ChatRequest, OWN_MEMBERS};
