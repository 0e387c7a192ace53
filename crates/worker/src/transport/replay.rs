//! A transport that answers requests with the recorded responses, in the recorded order.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use deftool_chat::Api;
use deftool_record::{Line, Recording, ReplayCursor, ReplayDifference, ReplayOptions, Session, Stopped};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use super::interface::{Incoming, Outgoing, Transport, TransportError};

/// A transport that answers requests from a recording.
#[derive(Debug)]
pub struct ReplayTransport {
    cursors: Vec<Arc<ReplayCursor>>,
    /// Index of each cursor, by request id.
    by_id: HashMap<String, usize>,
    url: String,
    /// Number of submitted requests.
    submitted: AtomicUsize,
}

impl ReplayTransport {
    /// Creates a transport for `recording`. `lenient`: see [`ReplayOptions::lenient`].
    pub fn new(recording: Recording, lenient: bool) -> Self {
        Self::with(recording, ReplayOptions { lenient, ..ReplayOptions::default() })
    }

    /// Creates a transport for `recording` with options.
    pub fn with(recording: Recording, options: ReplayOptions) -> Self {
        let cursors = ReplayCursor::of_recording(recording, options);
        let url = cursors.first().map(|cursor| cursor.session().url.clone()).unwrap_or_default();
        let by_id = cursors.iter().enumerate();
        let by_id = by_id.map(|(index, cursor)| (cursor.session().request_id.clone(), index)).collect();
        let cursors = cursors.into_iter().map(Arc::new).collect();
        Self { cursors, by_id, url, submitted: AtomicUsize::new(0) }
    }

    /// Returns the number of requests. Each is submitted once, in order.
    pub fn requests(&self) -> usize {
        self.cursors.len()
    }

    /// Returns the differences so far, in the order of the requests.
    pub fn differences(&self) -> Vec<ReplayDifference> {
        self.cursors.iter().flat_map(|cursor| cursor.differences()).collect()
    }

    /// Returns the sent bodies in order, without secrets, each with the line number of the recorded body.
    pub fn bodies(&self) -> Vec<(usize, Value)> {
        self.cursors.iter().flat_map(|cursor| cursor.bodies()).collect()
    }

    /// Returns the session of the first request.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.cursors.first().map(|cursor| cursor.session())
    }

    /// Returns the next request to submit; `None`: all were submitted.
    pub(crate) fn peek(&self) -> Option<Arc<ReplayCursor>> {
        self.cursors.get(self.submitted.load(Ordering::Acquire)).cloned()
    }

    /// Marks the next request as submitted.
    pub(crate) fn advance(&self) {
        self.submitted.fetch_add(1, Ordering::AcqRel);
    }
}

impl Transport for ReplayTransport {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let cursor = self.by_id.get(&outgoing.request_id).and_then(|index| self.cursors.get(*index));
        match cursor {
            Some(cursor) => {
                let cursor = Arc::clone(cursor);
                async move { answer(cursor, outgoing) }.boxed()
            }
            None => {
                let differences = vec![format!("the recording has no request {}", outgoing.request_id)];
                ready(Err(TransportError::Differs { differences })).boxed()
            }
        }
    }

    fn url(&self, _: Api) -> &str {
        &self.url
    }
}

/// Returns the recorded response to the next chat request of `cursor`.
fn answer(cursor: Arc<ReplayCursor>, outgoing: Outgoing) -> Result<Incoming, TransportError> {
    let Outgoing { turn, attempt, body, .. } = outgoing;
    let Some(start) = cursor.next_exchange() else {
        if let Some(stopped) = cursor.stopped() {
            return Err(stop(&cursor, stopped));
        }
        return Err(TransportError::Differs { differences: vec![cursor.report_unrecorded(turn, attempt)] });
    };
    if let Some(Line::Request { at_ms, .. }) = cursor.line(start) {
        cursor.time().advance_to(*at_ms);
    }
    let differences = cursor.compare(start, turn, &body);
    if !differences.is_empty() && !cursor.is_lenient() {
        return Err(TransportError::Differs { differences });
    }
    match cursor.line(start + 1) {
        Some(Line::Response { at_ms, status, retry_after_ms, should_retry, location }) => {
            cursor.time().advance_to(*at_ms);
            let (status, should_retry, location) = (*status, *should_retry, location.clone());
            let retry_after = retry_after_ms.map(Duration::from_millis);
            let body = stream::unfold(Some((cursor, start + 2)), |position| ready(play(position))).boxed();
            Ok(Incoming { status, retry_after, should_retry, location, body })
        }
        Some(Line::NoConnection { at_ms, message, refused, sent }) => {
            cursor.time().advance_to(*at_ms);
            // The failure may be a consequence of the loss of a managed server, which a replay does not have. A request
            // that waited for its next attempt is stopped there.
            if let Some(Line::Stopped(stopped)) = cursor.line(start + 2)
                && !stopped.in_retry
            {
                return Err(stop(&cursor, stopped.clone()));
            }
            let message = message.clone();
            Err(if *sent {
                TransportError::Broken { message }
            } else {
                TransportError::Connect { message, refused: *refused }
            })
        }
        Some(Line::Stopped(stopped)) => Err(stop(&cursor, stopped.clone())),
        _ => Err(recording_ends()),
    }
}

/// The next line of a body; `None`: its end.
type Position = Option<(Arc<ReplayCursor>, usize)>;

/// One step of a body: returns its item and the next position; `None`: the end of the body.
fn play(position: Position) -> Option<(Result<Bytes, TransportError>, Position)> {
    let (cursor, index) = position?;
    match cursor.line(index).cloned() {
        Some(Line::Data { at_ms, text, bytes }) => {
            cursor.time().advance_to(at_ms);
            let bytes = text.map(String::into_bytes).or(bytes).unwrap_or_default();
            Some((Ok(bytes.into()), Some((cursor, index + 1))))
        }
        Some(Line::End { at_ms, error }) => {
            cursor.time().advance_to(at_ms);
            error.map(|message| (Err(TransportError::Broken { message }), None))
        }
        Some(Line::Stopped(stopped)) => Some((Err(stop(&cursor, stopped)), None)),
        // The request machine ended the request here, or the writer was stopped.
        None => Some((Err(recording_ends()), None)),
        // Any other line: the end of the body was not recorded.
        Some(
            Line::Session { .. }
            | Line::Request { .. }
            | Line::Response { .. }
            | Line::NoConnection { .. }
            | Line::Event { .. }
            | Line::Log { .. }
            | Line::Attachment(_),
        ) => None,
    }
}

fn stop(cursor: &ReplayCursor, Stopped { at_ms, failure, .. }: Stopped) -> TransportError {
    cursor.time().advance_to(at_ms);
    TransportError::Stopped { failure }
}

fn recording_ends() -> TransportError {
    TransportError::Broken { message: String::from("the recording ends here") }
}
