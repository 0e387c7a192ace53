//! Received requests: the parser of their bytes, the conversation in their bodies, and conditions on them.

mod condition;
mod conversation;
mod received;

pub use condition::Condition;
pub(crate) use conversation::{api_of, enables_thinking, last_message, parameters, tools};
pub(crate) use received::{BadRequest, Chunks, Framing, Head, read_head};
pub use received::{MAX_BODY, MAX_HEAD, Received};
