//! Replays a recording: a transport that answers requests with the recorded responses, in the recorded order.
//!
//! A replay needs no network, no probe and no key. Each outgoing request is compared with the recorded request of the
//! same number. Then the recorded response is returned in the same chunks, immediately or with the recorded delays.
//! Tools run, or return their recorded results. In both cases the request machine gets the results in the recorded
//! order and with the recorded times, so the events are the same.
//!
//! | file | |
//! |---|---|
//! | `cursor` | replays one request: its chat requests and responses |
//! | `calls` | replays its tool calls and approvals |

mod calls;
mod cursor;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deftool_chat::Api;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use super::compare::Difference;
use super::recording::{Recording, Session};
use super::secrets::{Mask, Secrets};
use super::transport::{Incoming, Outgoing, Transport, TransportError};
pub(super) use calls::{CallPlan, NextAnswer};
pub(super) use cursor::ReplayCursor;

/// Options of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayOptions {
    /// Answer a request even if it differs from the recorded one.
    pub lenient: bool,
    /// Use recorded tool results instead of running tools.
    pub recorded_tools: bool,
    /// Factor by which recorded delays are divided; `None`: no delays. The worker's time limits for the server do not
    /// apply in a replay.
    pub pace: Option<f64>,
    /// Also report differences in the order of keys.
    pub key_order: bool,
    /// Secrets to redact in differences.
    pub secrets: Secrets,
}

/// A difference between a replay and its recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayDifference {
    /// Number of the request in the recording, from 1.
    pub request: usize,
    /// The part of the request: `turn 2`, `call 1 of count`, `outcome`.
    pub place: String,
    /// Description.
    pub message: String,
    /// The differing field, if it is a single one.
    #[serde(flatten)]
    pub field: Option<Difference>,
    /// Whether the recording has several requests. Only then the number is shown.
    #[serde(skip)]
    is_one_of_many: bool,
}

impl ReplayDifference {
    /// Whether it is a difference of a request body.
    pub fn is_of_a_body(&self) -> bool {
        self.field.is_some() && self.place.starts_with("turn ")
    }
}

impl fmt::Display for ReplayDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_one_of_many {
            write!(f, "request {}, ", self.request)?;
        }
        write!(f, "{}: {}", self.place, self.message)
    }
}

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
        let mask = Arc::new(Mask::new(options.secrets.clone()));
        let options = Arc::new(options);
        let requests = recording.into_requests();
        let url = requests.first().map(|request| request.session.url.clone()).unwrap_or_default();
        let count = requests.len();
        let numbered = requests.into_iter().enumerate();
        let mut by_id = HashMap::with_capacity(count);
        let cursors = numbered.map(|(index, request)| {
            by_id.insert(request.session.request_id.clone(), index);
            let position = cursor::RequestPosition { number: index + 1, is_one_of_many: count > 1 };
            Arc::new(ReplayCursor::new(request, position, Arc::clone(&options), Arc::clone(&mask)))
        });
        let cursors = cursors.collect();
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

    /// Returns the sent bodies in order, without secrets, each with the line number of the recorded one.
    pub fn bodies(&self) -> Vec<(usize, Value)> {
        self.cursors.iter().flat_map(|cursor| cursor.bodies()).collect()
    }

    /// Returns the session of the first request.
    pub(super) fn session(&self) -> Option<&Session> {
        self.cursors.first().map(|cursor| cursor.session())
    }

    /// Returns the next request to submit; `None`: all were submitted.
    pub(super) fn peek(&self) -> Option<Arc<ReplayCursor>> {
        self.cursors.get(self.submitted.load(Ordering::Acquire)).cloned()
    }

    /// Marks the next request as submitted.
    pub(super) fn advance(&self) {
        self.submitted.fetch_add(1, Ordering::AcqRel);
    }
}

impl Transport for ReplayTransport {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let cursor = self.by_id.get(&outgoing.request_id).and_then(|index| self.cursors.get(*index));
        match cursor {
            Some(cursor) => cursor::answer(Arc::clone(cursor), outgoing).boxed(),
            None => {
                let differences = vec![format!("the recording has no request {}", outgoing.request_id)];
                std::future::ready(Err(TransportError::Differs { differences })).boxed()
            }
        }
    }

    fn url(&self, _: Api) -> &str {
        &self.url
    }

    /// Returns 0: a recording contains no key.
    fn longest_secret(&self) -> usize {
        0
    }
}
