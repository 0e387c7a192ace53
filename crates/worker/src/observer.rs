//! Observation of requests while they run: their events with times, and what the events do not contain.
//!
//! An observer receives everything from the task of a request, in order, and must not block it.

use std::fmt;

use deftool_chat::request::Event;
use deftool_chat::{ChatRequest, Reply};
use deftool_lang::tool::{ToolCall, TraceContext};
use deftool_record::Session;

/// Observes the requests of a worker.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Returns the observer of a request that begins or continues. Called before its first event.
    fn begin(&self, request: &Session) -> Box<dyn RequestObserver>;
}

/// Observes one request. It is dropped after the `finished` event, after it was suspended, or without either if the
/// driver failed.
pub trait RequestObserver: Send {
    /// Receives an observation. `at_ms`: milliseconds since the request was submitted.
    fn observe(&mut self, at_ms: u64, observation: Observation<'_>);
}

/// Something that happened in a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// An event.
    Event(&'a Event),
    /// A request to the model is sent.
    Sent {
        /// The span of the exchange, which the server gets as its parent.
        span: Option<&'a TraceContext>,
        /// Number of the attempt in this turn, from 1.
        attempt: u32,
        /// The request.
        request: &'a ChatRequest,
    },
    /// The server rejected the request, or could not be reached.
    Rejected {
        /// The HTTP status; `None`: no response.
        status: Option<u16>,
    },
    /// A part of the reply arrived that contains text, reasoning or a part of a call.
    Chunk,
    /// The reply ended, completely or not. The events of its last part follow. Model name and id are as the server sent
    /// them: it may have put the API key into them.
    Replied {
        /// The reply.
        reply: &'a Reply,
        /// The id that the server gave it.
        id: Option<&'a str>,
    },
    /// A tool starts.
    Calling {
        /// The span of the call, which HTTP and MCP servers get as their parent.
        span: Option<&'a TraceContext>,
        /// The call.
        call: &'a ToolCall,
    },
    /// The request stops in this process and continues in another. This observation may be repeated. No other
    /// observation follows it.
    Suspended,
}
