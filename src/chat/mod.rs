//! The wire of chat completions and responses, without a socket: messages, request bodies, bytes → events, deltas →
//! calls.
//!
//! Out goes a [`ChatRequest`], encoded; back come bytes, which a [`StreamDecoder`] turns into [`ChatEvent`]s, the last
//! of which is the judged [`Reply`]. Servers differ; the deviations that are read here are recorded in `tests/wire`.
//!
//! | file | bytes to reply |
//! |---|---|
//! | [`sse`] | bytes → frames |
//! | `loose`, `record`, `repair`, `chunk` | a frame's JSON → a chunk, whatever the types of its fields |
//! | `assemble` | deltas → calls |
//! | `completion` | chunks → events |
//! | `responses` | the other API: its request body, its events → ours |
//! | `decoder`, `sink`, `account` | all of it, and the verdict |
//! | [`fallback`] | calls that a model writes into its text |
//! | `http_error` | what a server says went wrong |
//!
//! | file | request to bytes |
//! |---|---|
//! | `dialect` | what each server takes, with sources |
//! | `request_body` | a [`ChatRequest`] as JSON |
//! | `shape`, `tool_offer` | messages and tools as a server takes them |
//! | `swap` | what to send instead of what it refused |

mod account;
mod arguments;
mod assemble;
mod chunk;
mod completion;
mod decoder;
mod dialect;
mod event;
pub mod fallback;
mod http_error;
mod loose;
mod message;
mod record;
mod repair;
mod request_body;
mod responses;
mod shape;
mod sink;
pub mod sse;
mod swap;
mod tool_offer;
mod truncation;

pub use account::MAX_REPLY_BYTES;
pub use arguments::MAX_CALLS;
pub use decoder::{End, StreamDecoder, StreamNotes};
pub use dialect::{Capabilities, DIALECTS, FACTS, Fact, Fate, Feature, dialect_name};
pub use event::{ChatEvent, RawArguments, RawCall, Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
pub use http_error::classify_http_error;
pub use message::{FunctionCall, Message, MessageToolCall};
pub use request_body::{BodyForm, ChatRequest, OWN_MEMBERS};
pub use shape::{merge_neighbours, pair_calls};
pub use swap::{Swap, Swaps, next_swap, refuses_tools};
pub use tool_offer::demands_call;
pub use truncation::silently_cut;

/// Which of a server's interfaces a request goes to; both give the same [`ChatEvent`]s.
pub use crate::spec::Api;
