//! The transport interface: sends request bodies to a model server and returns the responses.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use deftool_chat::request::Failure;
use deftool_chat::{Api, Body};
use deftool_lang::tool::TraceContext;
use deftool_record::Redactor;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;

/// A chat request to send.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Id of the worker's request.
    pub request_id: String,
    /// Number of the turn, from 1.
    pub turn: u32,
    /// Number of the attempt of this turn, from 1.
    pub attempt: u32,
    /// The API.
    pub api: Api,
    /// The span of the request, which the server gets as its parent.
    pub trace: Option<TraceContext>,
    /// The body. [`Body::json`] is the text to send.
    pub body: Body,
    /// Whether the connection may be used again. Some servers close it after a stream, without announcing this, and lose
    /// what is sent meanwhile.
    pub keep_alive: bool,
}

/// A response after its head was received.
#[non_exhaustive]
pub struct Incoming {
    /// The HTTP status.
    pub status: u16,
    /// Requested delay before a retry.
    pub retry_after: Option<Duration>,
    /// Whether the server requests or forbids a retry (`x-should-retry`).
    pub should_retry: Option<bool>,
    /// Target of a redirect. Redirects are not followed: a redirected POST indicates a wrong endpoint.
    pub location: Option<String>,
    /// The body as a stream of chunks.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

impl Incoming {
    /// Returns a response without headers.
    pub fn new(status: u16, body: BoxStream<'static, Result<Bytes, TransportError>>) -> Self {
        Self { status, retry_after: None, should_retry: None, location: None, body }
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").field("status", &self.status).finish_non_exhaustive()
    }
}

/// An error of an exchange. Messages contain the URL and advice.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The connection failed; nothing was sent.
    #[error("{message}")]
    Connect {
        /// The message.
        message: String,
        /// Whether the connection was refused.
        refused: bool,
    },
    /// The connection was lost after at least a part of the request was sent.
    #[error("{message}")]
    Broken {
        /// The message.
        message: String,
    },
    /// In a replay: the request differs from the recorded one.
    #[error("the request differs from the recorded one:\n{}", differences.join("\n"))]
    Differs {
        /// The differences, one per field.
        differences: Vec<String>,
    },
    /// In a replay: the recorded request was stopped here, by a failure or a cancel.
    #[error("the recorded request was stopped here")]
    Stopped {
        /// The failure; `None`: it was canceled.
        failure: Option<Failure>,
    },
}

/// A status page of a local server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// `/health`: 200 when the model is loaded, 503 while it is loading.
    Health,
    /// `/slots`: the busy and idle slots.
    Slots,
}

/// The response to a request of a [`Page`].
#[derive(Debug, Clone, PartialEq)]
pub enum PageResponse {
    /// The status and the JSON body, or null if it is not JSON.
    Received(u16, Value),
    /// No response within the time limit.
    NoAnswer,
    /// The transport has no status pages.
    Unsupported,
}

/// A connection to a model server. Dropping the body of a response disconnects.
pub trait Transport: Send + Sync {
    /// Sends `outgoing` and waits for the head of the response.
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>>;

    /// Requests a status page of the server.
    fn get_page(&self, _page: Page) -> BoxFuture<'_, PageResponse> {
        std::future::ready(PageResponse::Unsupported).boxed()
    }

    /// Returns the URL of `api` for messages, without user and password.
    fn url(&self, api: Api) -> &str;

    /// Checks whether the server accepts requests, without sending a prompt. Returns the reason as a clause if not. The
    /// default always succeeds.
    fn probe(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether requests contain no key, user or password. The default is false.
    fn lacks_credentials(&self) -> bool {
        false
    }

    /// Returns the redactor of the secrets of this transport, such as an API key, which no reply may contain. The
    /// default has no secrets.
    fn redactor(&self) -> &Redactor {
        static NO_SECRETS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([]));
        &NO_SECRETS
    }
}

/// Returns the path of an API relative to the base URL.
pub(crate) fn api_path(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions => "chat/completions",
        Api::Responses => "responses",
        Api::Messages => "messages",
    }
}
