//! The transport of a replay.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deftool_chat::Api;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::cursor::{ReplayCursor, RequestPosition, answer};
use super::model::{ReplayDifference, ReplayOptions};
use crate::recording::{Recording, Session};
use crate::secrets::Mask;
use crate::transport::{Incoming, Outgoing, Transport, TransportError};

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
            let position = RequestPosition { number: index + 1, is_one_of_many: count > 1 };
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
            Some(cursor) => answer(Arc::clone(cursor), outgoing).boxed(),
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
