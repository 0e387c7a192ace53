//! How a request body reaches a model and its reply comes back.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;

use crate::chat::Api;
use crate::request::Failure;

/// One request on its way out.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The request that it belongs to.
    pub request_id: String,
    /// Which turn of the request, from 1.
    pub turn: u32,
    /// Which try of that turn, from 1.
    pub attempt: u32,
    /// The API it goes to.
    pub api: Api,
    /// The body.
    pub body: Value,
}

/// A response whose head has come.
pub struct Incoming {
    /// The HTTP status.
    pub status: u16,
    /// How long the server asks to wait before the next try.
    pub retry_after: Option<Duration>,
    /// Where a redirect leads. It is not followed: a redirected POST is a wrong endpoint.
    pub location: Option<String>,
    /// The body, as it comes.
    pub body: BoxStream<'static, Result<Vec<u8>, TransportError>>,
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The exchange could not be had, or not to its end. Messages name the URL and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TransportError {
    /// No connection; nothing was sent.
    #[error("{message}")]
    Connect {
        /// What and where.
        message: String,
        /// Whether somebody answered that nobody listens.
        refused: bool,
    },
    /// The connection broke.
    #[error("{message}")]
    Broken {
        /// What and where.
        message: String,
    },
    /// A replay whose request is not the recorded one.
    #[error("the request differs from the recorded one:\n{}", differences.join("\n"))]
    Differs {
        /// Field by field.
        differences: Vec<String>,
    },
    /// A replay reached the place where the recorded request was stopped: by a failure, or canceled.
    #[error("the recorded request was stopped here")]
    Stopped {
        /// The failure; `None`: it was canceled.
        failure: Option<Failure>,
    },
}

/// A page on which a local server tells how it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// `/health`: 200 when the model is loaded, 503 while it is.
    Health,
    /// `/slots`: which of them work.
    Slots,
}

/// What was seen there.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// The status and the JSON, null where it is none.
    Seen(u16, Value),
    /// Nobody answered, or not in time.
    Silent,
    /// There are no such pages.
    Missing,
}

/// Sends requests. Dropping a response's body disconnects.
pub trait Transport: Send + Sync {
    /// Sends `outgoing` and waits for the head of the response.
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>>;

    /// Looks at a page of the server's own, beside the API.
    fn look(&self, _page: Page) -> BoxFuture<'_, Look> {
        std::future::ready(Look::Missing).boxed()
    }

    /// Where it sends those to `api`, as messages name it: without user and password.
    fn url(&self, api: Api) -> &str;

    /// Asks whether the server is there and would take requests, without asking a model anything; why not, in a clause. A
    /// transport that cannot ask is taken at its word.
    fn probe(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether `text` holds what this transport must keep to itself, such as an API key.
    fn holds_secret(&self, _text: &str) -> bool {
        false
    }

    /// Returns where the first secret starts in `text`, or the prefix of a secret at the end of `text`: a reply that is
    /// interrupted there keeps no part of it.
    fn secret_start(&self, _text: &str) -> Option<usize> {
        None
    }

    /// Bytes of the longest of what [`Transport::holds_secret`] looks for: a reply may spell it over several pieces. A
    /// transport that knows says so; 1,024 are more than most keys have.
    fn longest_secret(&self) -> usize {
        1024
    }
}

/// An API's path beneath the base URL.
pub(super) fn api_path(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions => "chat/completions",
        Api::Responses => "responses",
    }
}
