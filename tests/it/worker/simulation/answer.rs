//! Sends a script as the answer of the server.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::time::Duration;

use deftool_worker::{Incoming, TransportError};
use futures_util::stream::{self, StreamExt};
use tokio::time::sleep;

use super::dice::Dice;
use super::script::{Frame, Head, Script, Tail};

/// Receives the progress of an answer. It is dropped when the worker drops the answer.
pub(super) trait Progress: Send + 'static {
    fn on_connection_failure(&self) {}

    fn on_head(&self) {}

    /// Bytes that complete `frames` frames are sent.
    fn on_bytes(&self, _bytes: usize, _frames: usize) {}

    fn on_body_end(&self) {}
}

/// A part of a body.
enum Piece {
    Wait(Duration),
    /// Bytes, and the number of frames that end in them.
    Bytes(Vec<u8>, usize),
}

/// Returns the answer of `script`. `dice` decides how the body is split; with `loses`, a frame with text is missing.
pub(super) async fn answer(
    script: Script,
    mut dice: Dice,
    loses: bool,
    progress: impl Progress,
) -> Result<Incoming, TransportError> {
    match script.head_after {
        Some(Duration::ZERO) => {}
        Some(after) => sleep(after).await,
        None => std::future::pending().await,
    }
    let message = String::from("scripted failure");
    if matches!(script.head, Head::Refused | Head::Unreachable | Head::Broken) {
        progress.on_connection_failure();
    }
    let (status, retry_after) = match script.head {
        Head::Panics => resume_unwind(Box::new("a bug of the transport's")),
        Head::Refused => return Err(TransportError::Connect { message, refused: true }),
        Head::Unreachable => return Err(TransportError::Connect { message, refused: false }),
        Head::Broken => return Err(TransportError::Broken { message }),
        Head::Ok => (200, None),
        Head::Status { status, retry_after } => (status, retry_after),
    };
    progress.on_head();
    let pieces = cut(&mut dice, &script, loses);
    let body = stream::unfold((pieces, script.tail, progress), |(mut pieces, tail, progress)| async move {
        loop {
            match pieces.pop_front() {
                Some(Piece::Wait(time)) => sleep(time).await,
                Some(Piece::Bytes(bytes, frames)) => {
                    progress.on_bytes(bytes.len(), frames);
                    return Some((Ok(bytes.into()), (pieces, tail, progress)));
                }
                None if tail == Tail::Silence => std::future::pending().await,
                None => {
                    progress.on_body_end();
                    let message = String::from("the connection broke");
                    let error = TransportError::Broken { message };
                    let left = (pieces, Tail::End, progress);
                    return (tail == Tail::Break).then_some((Err(error), left));
                }
            }
        }
    });
    let mut incoming = Incoming::new(status, body.boxed());
    incoming.retry_after = retry_after;
    incoming.location = (status == 302).then(|| String::from("http://elsewhere/v1/chat/completions"));
    Ok(incoming)
}

/// Splits frames into reads at random positions. A read can contain several frames, but does not span a pause.
fn cut(dice: &mut Dice, script: &Script, loses: bool) -> VecDeque<Piece> {
    let mut pieces = VecDeque::new();
    let mut frames = script.frames.iter().peekable();
    let mut lost = false;
    while let Some(first) = frames.next() {
        if !first.before.is_zero() {
            pieces.push_back(Piece::Wait(first.before));
        }
        let mut lump = Vec::new();
        let mut ends = Vec::new();
        let mut add = |frame: &Frame| {
            if loses && !lost && frame.text > 0 {
                lost = true;
            } else {
                lump.extend_from_slice(&frame.bytes);
            }
            // A line ends at CR, so the last LF is not needed.
            let needless = usize::from(frame.bytes.ends_with(b"\r\n\r\n"));
            ends.push(lump.len().saturating_sub(needless));
        };
        add(first);
        while let Some(next) = frames.next_if(|next| next.before.is_zero()) {
            add(next);
        }
        let (mut from, mut counted) = (0, 0);
        let most = *dice.pick(&[7, 100, 10_000]);
        let most = most.max(lump.len() / 20 + 1);
        loop {
            let to = (from + dice.below(1..most + 1)).min(lump.len());
            let whole = if to == lump.len() { ends.len() } else { ends.partition_point(|end| *end <= to) };
            pieces.push_back(Piece::Bytes(lump[from..to].to_vec(), whole - counted));
            (from, counted) = (to, whole);
            if to == lump.len() {
                break;
            }
        }
    }
    pieces
}
