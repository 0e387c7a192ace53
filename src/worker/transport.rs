//! How a request body reaches a model and its reply comes back.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;

use crate::request::Failure;

/// One chat completions request on its way out.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The request that it belongs to.
    pub request_id: String,
    /// Which turn of the request, from 1.
    pub turn: u32,
    /// Which try of that turn, from 1.
    pub attempt: u32,
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

/// Sends requests. Dropping a response's body disconnects.
pub trait Transport: Send + Sync {
    /// Sends `outgoing` and waits for the head of the response.
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>>;

    /// Where it sends them, as messages name it: without user and password.
    fn url(&self) -> &str;

    /// Whether `text` holds what this transport must keep to itself, such as an API key.
    fn holds_secret(&self, _text: &str) -> bool {
        false
    }
}
