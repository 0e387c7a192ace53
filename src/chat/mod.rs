//! Wire formats of chat completions and responses, without a socket: messages, request bodies, bytes → events, deltas →
//! calls.
//!
//! A [`ChatRequest`] is encoded as a body. A [`StreamDecoder`] turns the bytes of the answer into [`ChatEvent`]s; the
//! last one contains the [`Reply`] with its status. Servers differ; `tests/wire` records the deviations that are
//! supported.
//!
//! | file | bytes to reply |
//! |---|---|
//! | [`sse`] | bytes → frames |
//! | `loose`, `loose_object`, `repair`, `chunk` | a frame's JSON → a chunk, for fields of any type |
//! | `assemble` | deltas → calls |
//! | `completion` | chunks → events |
//! | `responses` | the Responses API: its request body, its events → [`ChatEvent`]s |
//! | `decoder`, `sink`, `reply_state` | the whole reply and its status |
//! | [`fallback`] | calls that a model writes as text |
//! | `http_error` | errors that a server reports |
//!
//! | file | request to bytes |
//! |---|---|
//! | `dialect` | supported features of each server, with sources |
//! | `request_body` | a [`ChatRequest`] as JSON |
//! | `shape`, `tool_offer` | messages and tools in the form that a server accepts |
//! | `body_fallback` | request variants for servers that reject the first body |

mod arguments;
mod assemble;
mod body_fallback;
mod chunk;
mod completion;
mod decoder;
mod dialect;
mod event;
pub mod fallback;
mod http_error;
mod loose;
mod loose_object;
mod message;
mod repair;
mod reply_state;
mod request_body;
mod responses;
mod shape;
mod sink;
pub mod sse;
mod tool_offer;
mod truncation;

pub use arguments::MAX_CALLS;
pub use body_fallback::{BodyFallback, BodyFallbacks, next_body_fallback, refuses_tools};
pub use decoder::{StreamDecoder, StreamNotes, TransportEnd};
pub use dialect::{Capabilities, DIALECTS, FACTS, Fact, Feature, Support, dialect_name};
pub use event::{ChatEvent, RawArguments, RawCall, Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
pub use http_error::classify_http_error;
pub use message::{FunctionCall, Message, MessageToolCall};
pub use reply_state::MAX_REPLY_BYTES;
pub use request_body::{BodyForm, ChatRequest, OWN_MEMBERS};
pub use shape::{merge_neighbours, pair_calls};
pub use tool_offer::requires_call;
pub use truncation::truncation_warning;

/// The API that a request is sent to. Both produce the same [`ChatEvent`]s.
pub use crate::spec::Api;
