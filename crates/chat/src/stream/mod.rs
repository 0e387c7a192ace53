//! The bytes of an answer, decoded into [`ChatEvent`](crate::ChatEvent)s and a [`Reply`](crate::Reply).
//!
//! | file | |
//! |---|---|
//! | `sse` | bytes → frames |
//! | `loose`, `loose_object`, `repair`, `chunk` | a frame's JSON → a chunk, for fields of any type |
//! | `arguments` | the text of a call's arguments → a JSON object |
//! | `assemble`, `nesting` | deltas → calls |
//! | `opaque` | members that only the server can read |
//! | `completion` | chunks → events |
//! | `responses` | events of the Responses API → events |
//! | `messages` | events of the Messages API → events |
//! | `api_decoder`, `decoder`, `sink`, `reply_state` | the whole reply and its status |
//! | `http_error` | errors that a server reports |

mod api_decoder;
mod arguments;
mod assemble;
mod chunk;
mod completion;
mod decoder;
mod http_error;
mod loose;
mod loose_object;
mod messages;
mod nesting;
mod opaque;
mod repair;
mod reply_state;
mod responses;
mod sink;
pub(crate) mod sse;
mod text_chunk;

pub use arguments::MAX_CALLS;
pub use decoder::{StreamDecoder, StreamNotes, TransportEnd};
pub use http_error::classify_http_error;
#[cfg(test)]
pub(crate) use http_error::report_of;
pub use sse::MAX_EVENT_BYTES;
