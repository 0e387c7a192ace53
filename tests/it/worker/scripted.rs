//! A transport without a socket, whose replies are scripted: for a paused clock, and for floods.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool::chat::Api;
use deftool::worker::{Incoming, Outgoing, Transport, TransportError};
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
    /// Comments as fast as they are read, and no end.
    Flood,
    /// A bug.
    Panic,
}

/// A reply that comes after a while; `None`: never.
pub(super) struct Reply {
    pub(super) after: Option<Duration>,
    pub(super) pieces: Vec<Piece>,
}

impl Reply {
    pub(super) fn with(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { after: Some(Duration::ZERO), pieces: pieces.into_iter().collect() }
    }

    pub(super) fn silent() -> Self {
        Self { after: None, pieces: Vec::new() }
    }
}

/// A transport whose replies are scripted, in order.
pub(super) struct Scripted(Mutex<VecDeque<Reply>>);

impl Scripted {
    pub(super) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(replies.into_iter().collect())))
    }
}

impl Transport for Scripted {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let reply = self.0.lock().unwrap().pop_front().expect("a reply to every request");
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
                        Piece::Panic => panic!("a bug of the transport's"),
                        Piece::Flood => {
                            pieces.push_front(Piece::Flood);
                            return Some((Ok(b": ping\n\n".to_vec()), pieces));
                        }
                    }
                }
            });
            Ok(Incoming { status: 200, retry_after: None, location: None, body: body.boxed() })
        }
        .boxed()
    }

    fn url(&self, _: Api) -> &'static str {
        "http://scripted/v1/chat/completions"
    }
}
