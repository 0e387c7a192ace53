//! The model's side of a recording, fed back in the order it was recorded.
//!
//! A replay needs no network, no probe and no key. Each outgoing request is held against the recorded one of the same
//! ordinal, whatever its body; then what the server said comes again, in the pieces it came in, at once or at the
//! recorded pace. Tools run for real, or give what they gave; either way results reach the machine in the recorded order
//! and at the recorded times, which is why the events are the same.
//!
//! | file | |
//! |---|---|
//! | `script` | one request of a recording, being played: what was asked and answered |
//! | `calls` | its tool calls and approvals |

mod calls;
mod script;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use super::compare::Difference;
use super::recording::{Recording, Session};
use super::secrets::{Mask, Secrets};
use super::transport::{Incoming, Outgoing, Transport, TransportError};
use crate::chat::Api;
pub(super) use calls::{CallPlan, Next};
pub(super) use script::Script;

/// How a recording is played.
#[derive(Debug, Clone, Default)]
pub struct ReplayOptions {
    /// A request that differs from the recorded one is answered all the same.
    pub lenient: bool,
    /// Tools are not run but give what they gave.
    pub recorded_tools: bool,
    /// How many times faster than it was recorded; `None`: without delays. Time limits of the model's side do not
    /// count in a replay.
    pub pace: Option<f64>,
    /// Tell where only the order of keys differs, too.
    pub key_order: bool,
    /// What is shown of a difference holds none of these.
    pub secrets: Secrets,
}

/// In what a replay differs from its recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayDifference {
    /// Which request of the recording, from 1.
    pub request: usize,
    /// What of it: `turn 2`, `call 1 of count`, `outcome`.
    pub place: String,
    /// In words.
    pub message: String,
    /// The field, where it is one.
    #[serde(flatten)]
    pub field: Option<Difference>,
    /// Whether the recording has several requests, so that the number says something.
    #[serde(skip)]
    is_one_of_many: bool,
}

impl ReplayDifference {
    /// Whether it is one of what was sent.
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

/// Answers requests from a recording.
#[derive(Debug)]
pub struct ReplayTransport {
    scripts: Vec<Arc<Script>>,
    /// Where each is among them, by its request's id.
    by_id: HashMap<String, usize>,
    url: String,
    /// How many of its requests were submitted.
    submitted: AtomicUsize,
}

impl ReplayTransport {
    /// Replays `recording`. `lenient`: a request that differs from the recorded one is answered all the same.
    pub fn new(recording: Recording, lenient: bool) -> Self {
        Self::with(recording, ReplayOptions { lenient, ..ReplayOptions::default() })
    }

    /// As [`ReplayTransport::new`], with more to choose.
    pub fn with(recording: Recording, options: ReplayOptions) -> Self {
        let mask = Arc::new(Mask::new(options.secrets.clone()));
        let options = Arc::new(options);
        let requests = recording.into_requests();
        let url = requests.first().map(|request| request.session.url.clone()).unwrap_or_default();
        let count = requests.len();
        let numbered = requests.into_iter().enumerate();
        let mut by_id = HashMap::with_capacity(count);
        let scripts = numbered.map(|(index, request)| {
            by_id.insert(request.session.request_id.clone(), index);
            let whole = script::Place { number: index + 1, is_one_of_many: count > 1 };
            Arc::new(Script::new(request, whole, Arc::clone(&options), Arc::clone(&mask)))
        });
        let scripts = scripts.collect();
        Self { scripts, by_id, url, submitted: AtomicUsize::new(0) }
    }

    /// How many requests the recording has; each is submitted once, in order.
    pub fn requests(&self) -> usize {
        self.scripts.len()
    }

    /// How the replay differed so far, in the order of the requests.
    pub fn differences(&self) -> Vec<ReplayDifference> {
        self.scripts.iter().flat_map(|script| script.differences()).collect()
    }

    /// The bodies that were sent, in order, each with the line of the recorded one; without secrets.
    pub fn bodies(&self) -> Vec<(usize, Value)> {
        self.scripts.iter().flat_map(|script| script.bodies()).collect()
    }

    /// The first request's session.
    pub(super) fn session(&self) -> Option<&Session> {
        self.scripts.first().map(|script| script.session())
    }

    /// The request that is submitted next; `None`: each was.
    pub(super) fn peek(&self) -> Option<Arc<Script>> {
        self.scripts.get(self.submitted.load(Ordering::Acquire)).cloned()
    }

    /// It was submitted.
    pub(super) fn advance(&self) {
        self.submitted.fetch_add(1, Ordering::AcqRel);
    }
}

impl Transport for ReplayTransport {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let script = self.by_id.get(&outgoing.request_id).and_then(|index| self.scripts.get(*index));
        match script {
            Some(script) => script::answer(Arc::clone(script), outgoing).boxed(),
            None => {
                let differences = vec![format!("the recording has no request {}", outgoing.request_id)];
                std::future::ready(Err(TransportError::Differs { differences })).boxed()
            }
        }
    }

    fn url(&self, _: Api) -> &str {
        &self.url
    }

    /// A recording holds no key.
    fn longest_secret(&self) -> usize {
        0
    }
}
