//! A transport without a socket, whose replies are scripted: for a paused clock, and for floods.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool::chat::Api;
use deftool::worker::{Incoming, Look, Outgoing, Page, Transport, TransportError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use tokio::time::sleep;

/// A piece of a body.
#[derive(Clone)]
pub(super) enum Piece {
    /// Bytes.
    Bytes(String),
    /// A while in which nothing comes.
    Wait(Duration),
    /// Nothing more, and no end.
    Silence,
    /// The end.
    End,
    /// The connection breaks.
    Broken,
    /// Comments as fast as they are read, and no end.
    Flood,
    /// A bug.
    Panic,
}

/// A reply that comes after a while; `None`: never.
pub(super) struct Reply {
    pub(super) after: Option<Duration>,
    pub(super) status: u16,
    pub(super) pieces: Vec<Piece>,
}

impl Reply {
    pub(super) fn with(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { after: Some(Duration::ZERO), status: 200, pieces: pieces.into_iter().collect() }
    }

    pub(super) fn silent() -> Self {
        Self { after: None, status: 200, pieces: Vec::new() }
    }

    /// An error object with its message.
    pub(super) fn error(status: u16, message: &str) -> Self {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        Self { status, ..Self::with([Piece::Bytes(body), Piece::End]) }
    }
}

/// Gives what is seen on a page.
type Pages = dyn Fn(Page) -> Look + Send + Sync;

/// A transport whose replies are scripted, in order.
pub(super) struct Scripted {
    replies: Mutex<VecDeque<Reply>>,
    pages: Option<Box<Pages>>,
}

impl Scripted {
    pub(super) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies.into_iter().collect()), pages: None })
    }

    /// With pages beside the API.
    pub(super) fn with_pages(
        replies: impl IntoIterator<Item = Reply>,
        pages: impl Fn(Page) -> Look + Send + Sync + 'static,
    ) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().collect());
        Arc::new(Self { replies, pages: Some(Box::new(pages)) })
    }
}

impl Transport for Scripted {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let reply = self.replies.lock().unwrap().pop_front().expect("a reply to every request");
        async move {
            match reply.after {
                Some(after) => sleep(after).await,
                None => std::future::pending().await,
            }
            let body = stream::unfold(VecDeque::from(reply.pieces), |mut pieces| async move {
                loop {
                    match pieces.pop_front()? {
                        Piece::Bytes(text) => return Some((Ok(text.into_bytes()), pieces)),
                        Piece::Wait(time) => sleep(time).await,
                        Piece::Silence => std::future::pending().await,
                        Piece::End => return None,
                        Piece::Broken => {
                            let message = String::from("http://scripted/v1: connection reset");
                            return Some((Err(TransportError::Broken { message }), VecDeque::new()));
                        }
                        Piece::Panic => panic!("a bug of the transport's"),
                        Piece::Flood => {
                            pieces.push_front(Piece::Flood);
                            return Some((Ok(b": ping\n\n".to_vec()), pieces));
                        }
                    }
                }
            });
            Ok(Incoming { status: reply.status, retry_after: None, location: None, body: body.boxed() })
        }
        .boxed()
    }

    fn look(&self, page: Page) -> BoxFuture<'_, Look> {
        std::future::ready(self.pages.as_ref().map_or(Look::Missing, |pages| pages(page))).boxed()
    }

    fn url(&self, _: Api) -> &'static str {
        "http://scripted/v1/chat/completions"
    }
}
