//! The replies of the Messages API, `POST /v1/messages`, with the same events as chat completions.
//!
//! In: the events of the reply's stream, or a complete message. Out: text, reasoning and calls as they arrive.
//!
//! Content blocks are also kept whole, because thinking must come back unchanged and in the same order with the calls
//! that follow it. Blocks of unknown types, such as calls of the server's own tools and their results, are kept and
//! reported. A reply of plain text and calls is not kept: it comes back in its parsed form.
//!
//! | file | |
//! |---|---|
//! | `event` | an event's JSON → its fields, of any type |
//! | `blocks` | content blocks: matching of deltas, text and calls, and their form in the next request |
//! | `message` | API events → [`ChatEvent`](crate::ChatEvent)s |
//!
//! Server behaviour and its sources (read in November 2026):
//! - Anthropic (types of its SDK 2.14): `content_block_start`, deltas and `content_block_stop` for each block, then
//!   `message_delta` with the stop reason, and `message_stop`. `ping` and `error` may be anywhere. The signature is the
//!   last delta of a thinking block. A call without arguments has no deltas, or empty ones. `input_tokens` excludes the
//!   tokens of the prompt cache. Counts in `message_delta` are cumulative.
//! - llama.cpp (tried with xllamacpp 2026.10): the start of a call has no `input`, the signature of thinking is empty. Any
//!   `tool_choice` that requires a call allows text before it. HTTP errors have the form of its other APIs.
//! - vLLM: the signature is random, and the tokens of the prompt are only known in `message_delta`. Both read thinking
//!   back.
//! - Gateways: complete arguments in `content_block_start`, index 0 in all events, no `content_block_stop`, a stream
//!   without `message_stop`, a complete message in place of a stream.

mod blocks;
mod event;
mod message;

pub(super) use message::MessageReply;

#[cfg(test)]
mod tests;
