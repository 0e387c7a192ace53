//! The protocols of chat models without sockets, and the state machine of a request.
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
//! let hello = Message::user("Hello");
//! let start = RunStart { conversation: vec![hello], ..RunStart::default() };
//! let mut run = Run::new(RunConfig::default(), start);
//! let Step::Stream(request) = run.next_step(&tools, &BiosV1::default()) else { unreachable!() };
//! assert_eq!(request.messages.len(), 2, "the engine's system message and the user's message");
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
//! | module | |
//! |---|---|
//! | `event`, `message` | events of a reply and messages of a conversation |
//! | `received` | parts of a reply that only its server can read, and that go back to it |
//! | `dialect` | supported features of each server, with sources |
//! | `finish` | the meaning of finish reasons |
//! | `call_keys` | the members of a call in JSON |
//! | `body` | a [`ChatRequest`] → the body of an HTTP request, and other bodies for servers that reject the first |
//! | `stream` | the bytes of an answer → [`ChatEvent`]s, for each API; `stream/sse` splits them into frames |
//! | [`fallback`] | calls that a model writes as text |
//! | [`request`] | the course of a request: turns, calls, outcome |
//!
//! Every function is pure: no IO, no clock, no threads, no randomness. `deftool-worker` adds sockets, timers and
//! tools.

mod body;
mod call_keys;
mod dialect;
mod event;
pub mod fallback;
mod finish;
mod message;
mod received;
pub mod request;
mod stream;

pub use body::{
    Body, BodyEncoder, BodyFallback, BodyFallbacks, BodyForm, ChatRequest, OWN_MEMBERS, OptionalMember,
    next_body_fallback, requires_call, truncation_warning,
};
pub use call_keys::ARGUMENT_KEYS;
pub use dialect::{
    Capabilities, DelayRow, Details, Dialect, Dialects, ErrorMeaning, ErrorRow, Example, Feature, FeatureRow,
    Probe, Support, Tables,
};
pub use event::{ChatEvent, RawArguments, RawCall, Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
pub use finish::FinishMeaning;
pub use message::{FunctionCall, Message, MessageToolCall};
pub use received::{Opaque, Received, ReplySource};
pub use stream::{MAX_CALLS, MAX_EVENT_BYTES, StreamDecoder, StreamNotes, TransportEnd, classify_http_error};

/// The API that a request is sent to. All produce the same [`ChatEvent`]s.
pub use deftool_lang::spec::Api;
