//! A transport with scripted replies and without a socket, for tests with a paused clock or floods of data.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool_chat::Api;
use deftool_worker::{Incoming, Outgoing, Page, PageResponse, Transport, TransportError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use tokio::time::sleep;

/// A piece of a body.
#[derive(Clone)]
pub(super) enum Piece {
    /// Bytes.
    Bytes(String),
    /// A delay.
    Wait(Duration),
    /// No further data, but no end of the body.
    Silence,
    /// The end of the body.
    End,
    /// The connection is lost.
    Broken,
    /// Endless comments, as fast as they are read.
    Flood,
    /// A panic.
    Panic,
}

/// A reply after a delay; `None`: never.
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

/// Returns the response to a page.
type Pages = dyn Fn(Page) -> PageResponse + Send + Sync;

const URL: &str = "http://scripted/v1/chat/completions";

/// A transport with scripted replies, in order.
pub(super) struct Scripted {
    url: &'static str,
    replies: Mutex<VecDeque<Reply>>,
    pages: Option<Box<Pages>>,
}

impl Scripted {
    pub(super) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Self::at(URL, replies)
    }

    /// Creates a transport to `url`.
    pub(super) fn at(url: &'static str, replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { url, replies: Mutex::new(replies.into_iter().collect()), pages: None })
    }

    /// Creates a transport with status pages.
    pub(super) fn with_pages(
        replies: impl IntoIterator<Item = Reply>,
        pages: impl Fn(Page) -> PageResponse + Send + Sync + 'static,
    ) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().collect());
        Arc::new(Self { url: URL, replies, pages: Some(Box::new(pages)) })
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
                        Piece::Bytes(text) => return Some((Ok(text.into()), pieces)),
                        Piece::Wait(time) => sleep(time).await,
                        Piece::Silence => std::future::pending().await,
                        Piece::End => return None,
                        Piece::Broken => {
                            let message = String::from("http://scripted/v1: connection reset");
                            return Some((Err(TransportError::Broken { message }), VecDeque::new()));
                        }
                        Piece::Panic => panic!("a bug of the transport"),
                        Piece::Flood => {
                            pieces.push_front(Piece::Flood);
                            return Some((Ok(b": ping\n\n".to_vec().into()), pieces));
                        }
                    }
                }
            });
            Ok(Incoming::new(reply.status, body.boxed()))
        }
        .boxed()
    }

    fn get_page(&self, page: Page) -> BoxFuture<'_, PageResponse> {
        std::future::ready(self.pages.as_ref().map_or(PageResponse::Unsupported, |pages| pages(page))).boxed()
    }

    fn url(&self, _: Api) -> &'static str {
        self.url
    }
}
