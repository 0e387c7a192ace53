//! Joins the frames of a body that were received together.
//!
//! A server may send several events in one packet, each in an HTTP chunk of its own. hyper returns one chunk at a time,
//! and the work after each read of a reply costs more than decoding an event. No frame is delayed: those that follow in
//! hyper's buffer are added, and no data is read from the network.
//!
//! Only in a runtime of one thread. In others, a task that yields wakes another thread, which costs more. A frame that had
//! to be waited for is returned at once: with hundreds of slow streams, it is the only one.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

use super::interface::TransportError;

/// Maximum wait for a frame to which others are added. hyper returns a frame that it has received within microseconds.
const MAX_WAIT: Duration = Duration::from_micros(100);
/// Size of joined frames at which no further frame is added, in bytes.
const MAX_JOINED: usize = 8 << 10;

type Frame = Result<Bytes, TransportError>;

/// Joins the frames of `body` that were received together.
pub(super) fn join_received(body: impl Stream<Item = Frame> + Unpin) -> impl Stream<Item = Frame> {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    let max = if matches!(flavor, Ok(RuntimeFlavor::CurrentThread)) { MAX_JOINED } else { 0 };
    let frames = Frames { body, max, error: None };
    stream::unfold(frames, |mut frames| async { Some((frames.next().await?, frames)) }).fuse()
}

/// The frames of a body.
struct Frames<S> {
    body: S,
    max: usize,
    /// The error after the joined frames.
    error: Option<TransportError>,
}

impl<S: Stream<Item = Frame> + Unpin> Frames<S> {
    async fn next(&mut self) -> Option<Frame> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        let start = Instant::now();
        let first = match self.body.next().await? {
            Ok(first) if first.len() < self.max && start.elapsed() < MAX_WAIT => first,
            alone => return Some(alone),
        };
        let mut joined = Vec::from(first);
        while joined.len() < self.max {
            let next = tokio::select! {
                biased;
                next = self.body.next() => next,
                // The task of the connection has run, and no frame is left.
                () = run_other_tasks() => break,
            };
            match next {
                Some(Ok(frame)) => joined.extend_from_slice(&frame),
                Some(Err(error)) => {
                    self.error = Some(error);
                    break;
                }
                None => break,
            }
        }
        Some(Ok(joined.into()))
    }
}

/// Lets the tasks run that are ready. Unlike `yield_now`, does not wait for events of the system.
async fn run_other_tasks() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::*;

    /// Returns the frames of a body that another task sends one by one, with a pause before each of `pauses`.
    async fn joined(frames: Vec<Frame>, pauses: &'static [usize]) -> Vec<Frame> {
        let (sender, mut receiver) = mpsc::channel(1);
        let send = async move {
            for (index, frame) in frames.into_iter().enumerate() {
                if pauses.contains(&index) {
                    sleep(MAX_WAIT).await;
                }
                sender.send(frame).await.unwrap();
            }
        };
        tokio::spawn(send);
        let body = stream::poll_fn(move |context| receiver.poll_recv(context));
        join_received(body).collect().await
    }

    fn frames<const COUNT: usize>(texts: [&str; COUNT]) -> Vec<Frame> {
        texts.map(|text| Ok(Bytes::copy_from_slice(text.as_bytes()))).to_vec()
    }

    #[tokio::test(start_paused = true)]
    async fn frames_that_were_received_together_are_joined() {
        let all = frames(["a", "b", "c", "d"]);
        assert_eq!(joined(all.clone(), &[]).await, frames(["abcd"]));
        assert_eq!(joined(all.clone(), &[2]).await, frames(["ab", "c", "d"]));
        assert_eq!(joined(all.clone(), &[1, 2, 3]).await, all);
    }

    #[tokio::test(start_paused = true)]
    async fn joined_frames_are_limited_and_precede_an_error() {
        let long = "x".repeat(MAX_JOINED);
        let error = || Err(TransportError::Broken { message: String::from("reset") });
        let mut all = frames([&long, "a", &long, "b", "c"]);
        all.push(error());
        let mut expected = frames([&long, &format!("a{long}"), "bc"]);
        expected.push(error());
        assert_eq!(joined(all, &[]).await, expected);
    }
}
