//! The wire of chat completions, without a socket: messages, request bodies, bytes → events, deltas → calls.

mod event;
pub mod fallback;
mod message;
mod request_body;

pub use event::{ChatEvent, RawArguments, RawCall, Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
pub use message::{FunctionCall, Message, MessageToolCall};
pub use request_body::ChatRequest;
