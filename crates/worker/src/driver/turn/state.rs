//! The state of one turn, and the ways in which it ends the request.

use std::time::Duration;

use deftool_chat::request::{Failure, Run};
use deftool_chat::{Api, Body, ServerError};
use tokio::time::Instant;

use super::failure;
use crate::driver::drain::Exchange;
use crate::driver::record::Streaming;
use crate::driver::task::RequestTask;
use crate::transport::{Incoming, TransportError};
use deftool_lang::tool::Toolbox;

/// One turn of one request.
pub(super) struct Turn<'a> {
    pub(super) task: &'a RequestTask,
    pub(super) run: &'a mut Run,
    pub(super) toolbox: &'a Toolbox,
    /// Deadline of the whole request.
    pub(super) total: Option<Instant>,
    /// The API of the current attempt.
    pub(super) api: Api,
    /// Number of the attempt, starting at 1.
    pub(super) attempt: u32,
    /// Number of retries. Another variant of the request is not a retry.
    pub(super) retries: u32,
    /// Time at which the server first reported that it is loading its model.
    pub(super) loading_since: Option<Instant>,
    pub(super) delay: Duration,
}

/// The way in which a reply ended.
pub(super) enum ReplyEnd {
    /// The request machine has processed the reply.
    Taken,
    /// The server reported before the reply that it is overloaded. The request can be sent again.
    Overloaded(ServerError),
}

/// The request has ended, and its machine has recorded the end.
pub(super) struct RequestEnded;

/// A response after its head was received. The server may still be processing the request.
pub(super) struct OpenResponse {
    pub(super) incoming: Incoming,
    pub(super) exchange: Exchange,
    /// Time at which the request was sent.
    pub(super) sent: Instant,
}

/// A request that the server accepted. Its reply can be read.
pub(super) struct Accepted<'a> {
    pub(super) open: OpenResponse,
    pub(super) body: Body,
    /// A loss of the server fails the request.
    pub(super) streaming: Streaming<'a>,
}

/// The error response to a rejected request.
pub(super) struct ServerRefusal {
    pub(super) error: ServerError,
    /// Whether the body is a web page.
    pub(super) is_page: bool,
}

impl<'a> Turn<'a> {
    /// Returns the URL for messages.
    pub(super) fn url(&self) -> &'a str {
        self.task.shared.transport.url(self.api)
    }

    /// Ends the request with a failure.
    pub(super) fn fail(&mut self, failure: Failure) -> RequestEnded {
        self.task.fail(self.run, failure);
        RequestEnded
    }

    /// Ends the request with the stop reason of its worker, or as canceled.
    pub(super) fn end_canceled(&mut self) -> RequestEnded {
        self.task.end_canceled(self.run);
        RequestEnded
    }

    /// Ends the request because its total time limit was exceeded.
    pub(super) fn total_timeout(&mut self) -> RequestEnded {
        self.task.total_timeout(self.run);
        RequestEnded
    }

    /// Ends the request with an error of the transport.
    pub(super) fn end_by_transport(&mut self, error: TransportError) -> RequestEnded {
        self.task.stop(self.run, failure::of_transport(error));
        RequestEnded
    }
}
