//! Sends one request of a turn and waits for the head of the response.

use std::time::Duration;

use deftool_chat::request::{FailReason, Failure, FailureKind};
use deftool_record::Line;
use tokio::time::Instant;

use super::managed;
use super::state::{OpenResponse, RequestEnded, Turn};
use crate::driver::drain::Exchange;
use crate::time::{seconds, until};
use crate::transport::{Outgoing, TransportError};

impl Turn<'_> {
    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        &mut self,
        outgoing: Outgoing,
    ) -> Result<Result<OpenResponse, TransportError>, RequestEnded> {
        let shared = &self.task.shared;
        let first_token = (shared.stream_limits().first_token, ":first-token");
        let headers = shared.config.timers.headers.map(|limit| (limit, ":headers"));
        let (limit, key) = headers.map_or(first_token, |headers| headers.min(first_token));
        if let Some(sent) = self.send_within(outgoing, limit).await? {
            return Ok(sent);
        }
        shared.report_stall();
        let url = self.url();
        let detail = format!("{url}: no response headers within {} (the worker's {key})", seconds(limit));
        Err(self.fail(Failure::new(FailReason::HeadersTimeout, FailureKind::HeadersTimeout, detail)))
    }

    /// Like [`Turn::send`], with a time limit. Returns `None` if no head arrives within `limit`.
    pub(super) async fn send_within(
        &mut self,
        outgoing: Outgoing,
        limit: Duration,
    ) -> Result<Option<Result<OpenResponse, TransportError>>, RequestEnded> {
        let task = self.task;
        task.write(|at_ms| task.request_line(self.run, &outgoing, at_ms));
        let (mut exchange, sent_at) = (Exchange::begin(task), Instant::now());
        let sent = tokio::select! {
            biased;
            () = task.record.wait_until_reading_stops() => return Err(self.end_canceled()),
            () = until(self.total) => return Err(self.total_timeout()),
            sent = managed::head_within(task, limit, task.shared.transport.send(outgoing)) => sent,
        };
        let Some(sent) = sent else { return Ok(None) };
        match &sent {
            Ok(incoming) => task.write(|at_ms| Line::Response {
                at_ms,
                status: incoming.status,
                retry_after_ms: incoming.retry_after.map(|wait| wait.as_millis() as u64),
                should_retry: incoming.should_retry,
                location: incoming.location.clone(),
            }),
            Err(TransportError::Connect { message, refused }) => {
                let (message, refused) = (message.clone(), *refused);
                task.write(|at_ms| Line::NoConnection { at_ms, message, refused, sent: false });
            }
            Err(TransportError::Broken { message }) => {
                let message = message.clone();
                task.write(|at_ms| Line::NoConnection { at_ms, message, refused: false, sent: true });
            }
            Err(TransportError::Differs { .. } | TransportError::Stopped { .. }) => {}
        }
        // The server does not process a request that it rejected or did not receive.
        if !matches!(&sent, Ok(incoming) if incoming.status < 300) {
            exchange.close();
        }
        Ok(Some(sent.map(|incoming| OpenResponse { incoming, exchange, sent: sent_at })))
    }
}
