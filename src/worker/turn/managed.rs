//! A turn on a server that the worker manages: it may have to be waited for, it is seen to work, and it may be lost.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::{Over, Turn};
use crate::request::{FailReason, Failure};
use crate::worker::drive::{Drive, until};
use crate::worker::record::Streaming;
use crate::worker::stream_timers::after;

impl<'a> Turn<'a> {
    /// Waits until a managed server takes requests; from then on its loss is the request's.
    pub(super) async fn reach_server(&mut self) -> Result<Streaming<'a>, Over> {
        let task = self.task;
        loop {
            let ready = tokio::select! {
                biased;
                () = task.cancel.cancelled() => return Err(self.give_up()),
                () = until(self.total) => return Err(self.total_timeout()),
                ready = task.shared.server_ready() => ready,
            };
            if let Err(not_ready) = ready {
                return Err(self.fail(Failure::new(FailReason::ServerDied, "", not_ready.to_string())));
            }
            // Marked before the last look: a server that is lost now fails the request, one that was lost before is waited
            // for.
            let streaming = task.record.stream();
            if let Some(Ok(())) = task.shared.server_ready().now_or_never() {
                return Ok(streaming);
            }
        }
    }
}

/// Whether a stream broke because its managed server died or was restarted; that loss becomes the stop reason of the request.
/// Waits until the state of the server is known.
pub(super) async fn is_lost(task: &Drive, total: Option<Instant>) -> bool {
    tokio::select! {
        biased;
        () = task.cancel.cancelled() => true,
        () = until(total) => {
            task.record.stop_with(task.total_failure());
            true
        }
        verdict = task.shared.server_verdict() => match verdict {
            Some(failure) => {
                task.record.stop_with(failure);
                true
            }
            None => false,
        },
    }
}

/// Waits for a head; a managed server that works for this request alone is given `limit` from when it last was seen to.
pub(super) async fn head_within<T>(
    task: &Drive,
    limit: Duration,
    head: impl Future<Output = T>,
) -> Option<T> {
    let mut head = std::pin::pin!(head);
    let mut until = after(Instant::now(), limit);
    loop {
        if let Ok(head) = tokio::time::timeout_at(until, &mut head).await {
            return Some(head);
        }
        until = after(task.shared.worked_for_one()?, limit);
        if until <= Instant::now() {
            return None;
        }
    }
}
