//! A turn with a managed server: waits until it is ready, observes its activity, and handles its loss.

use std::time::Duration;

use deftool_chat::request::{FailReason, Failure};
use futures_util::FutureExt;
use tokio::time::Instant;

use super::state::{RequestEnded, Turn};
use crate::driver::record::Streaming;
use crate::driver::task::RequestTask;
use crate::time::{after, until};

impl<'a> Turn<'a> {
    /// Waits until a managed server accepts requests. While the returned guard exists, a loss of the server fails the
    /// request.
    pub(super) async fn reach_server(&mut self) -> Result<Streaming<'a>, RequestEnded> {
        let task = self.task;
        loop {
            let ready = tokio::select! {
                biased;
                () = task.cancel.cancelled() => return Err(self.end_canceled()),
                () = until(self.total) => return Err(self.total_timeout()),
                ready = task.shared.server_ready() => ready,
            };
            if let Err(not_ready) = ready {
                return Err(self.fail(Failure::new(FailReason::ServerDied, "", not_ready.to_string())));
            }
            // Marked before the last check: a later loss of the server fails the request; after an earlier loss, the
            // request waits again.
            let streaming = task.record.stream();
            if let Some(Ok(())) = task.shared.server_ready().now_or_never() {
                return Ok(streaming);
            }
        }
    }
}

/// Whether a stream broke because its managed server died or was restarted. That loss becomes the stop reason of the
/// request. Waits until the state of the server is known.
pub(super) async fn is_lost(task: &RequestTask, total: Option<Instant>) -> bool {
    tokio::select! {
        biased;
        () = task.cancel.cancelled() => true,
        () = until(total) => {
            task.record.stop_with(task.total_failure());
            true
        }
        loss = task.shared.server_loss() => match loss {
            Some(failure) => {
                task.record.stop_with(failure);
                true
            }
            None => false,
        },
    }
}

/// Waits for the head of a response. If a managed server processes only this request, `limit` counts from its last
/// activity.
pub(super) async fn head_within<T>(
    task: &RequestTask,
    limit: Duration,
    head: impl Future<Output = T>,
) -> Option<T> {
    let mut head = std::pin::pin!(head);
    let mut until = after(Instant::now(), limit);
    loop {
        if let Ok(head) = tokio::time::timeout_at(until, &mut head).await {
            return Some(head);
        }
        until = after(task.shared.active_for_one_stream()?, limit);
        if until <= Instant::now() {
            return None;
        }
    }
}
