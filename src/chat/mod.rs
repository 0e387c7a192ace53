//! The wire of chat completions, without a socket: messages, request bodies, bytes → events, deltas → calls.

mod event;
mod message;

pub use event::{ChatEvent, RawArguments, RawCall, Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
pub use message::{FunctionCall, Message, MessageToolCall};
