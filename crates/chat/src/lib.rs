//! The protocols of chat models without a socket, and the machine that decides the course of a request.
//!
//! A [`ChatRequest`] is encoded as a body. A [`StreamDecoder`] turns the bytes of the answer into [`ChatEvent`]s; the
//! last one contains the [`Reply`] with its status. The [`request`] module takes these events and returns the next
//! step, until the request has an outcome. Servers differ; `tests/wire` records the deviations that are supported.
//!
//! ```
//! use deftool_chat::request::{BiosV1, Run, RunConfig, RunStart, Step};
//! use deftool_chat::{Api, Message, StreamDecoder, TransportEnd};
//! use deftool_lang::schema::ToolSet;
//!
//! let tools = ToolSet::default();
//! let hello = Message::User { content: String::from("Hello") };
//! let start = RunStart { conversation: vec![hello.clone()], ..RunStart::default() };
//! let mut run = Run::new(RunConfig::default(), start);
//! let Step::Stream(request) = run.next_step(&tools, &BiosV1::default()) else { unreachable!() };
//! assert!(request.messages.contains(&hello));
//!
//! // The driver sends the request. These are the bytes of the answer.
//! let answer = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\n";
//! let mut events = Vec::new();
//! let mut decoder = StreamDecoder::new(Api::ChatCompletions, []);
//! decoder.feed(answer, &mut events);
//! decoder.finish(TransportEnd::Clean, &mut events);
//! for event in events {
//!     run.on_event(event, &tools, 20);
//! }
//! assert_eq!(run.next_step(&tools, &BiosV1::default()), Step::Finished);
//! assert_eq!(run.outcome().map(|outcome| outcome.text.as_str()), Some("Hi."));
//! ```
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
//!
//! Every function is pure: no IO, no clock, no threads, no randomness. Sockets, timers and tools are the task of
//! `deftool-worker`.

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
pub mod request;
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
pub use deftool_lang::spec::Api;
