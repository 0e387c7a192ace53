//! The model's side of a recording, fed back by turn and attempt, without delays.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};

use super::clock::Clock;
use super::compare::differences;
use super::recording::{Line, Recording, Stopped};
use super::transport::{Incoming, Outgoing, Transport, TransportError};
use crate::chat::Api;

/// Answers requests from a recording. Needs no network and makes no probe.
#[derive(Debug)]
pub struct ReplayTransport {
    recording: Recording,
    clock: Arc<Clock>,
    lenient: bool,
    differed: Mutex<Vec<String>>,
}

impl ReplayTransport {
    /// Replays `recording`. `lenient`: a request that differs from the recorded one is answered all the same.
    pub fn new(recording: Recording, lenient: bool) -> Self {
        let clock = Arc::new(Clock::recorded(recording.tool_times(), recording.stopped()));
        Self { recording, clock, lenient, differed: Mutex::default() }
    }

    /// The recording's session.
    pub fn session(&self) -> &super::Session {
        &self.recording.session
    }

    /// How the requests differed from the recorded ones.
    pub fn differences(&self) -> Vec<String> {
        self.differed.lock().map(|differed| differed.clone()).unwrap_or_default()
    }

    pub(super) fn clock(&self) -> Arc<Clock> {
        Arc::clone(&self.clock)
    }

    fn answer(&self, outgoing: &Outgoing) -> Result<Incoming, TransportError> {
        let Outgoing { turn, attempt, body, .. } = outgoing;
        let start = self.recording.lines.iter().position(
            |line| matches!(line, Line::Request { turn: t, attempt: a, .. } if t == turn && a == attempt),
        );
        let Some(start) = start else {
            if let Some(stopped) = self.recording.stopped() {
                return Err(self.stop(stopped));
            }
            let told =
                format!("turn {turn}, attempt {attempt}: not recorded; the recorded session ended before it");
            return Err(TransportError::Differs { differences: self.note(vec![told]) });
        };
        let mut lines = self.recording.lines.iter().skip(start).cloned();
        if let Some(Line::Request { body: recorded, at_ms, .. }) = lines.next() {
            self.clock.reach(at_ms);
            let found = differences(&recorded, body);
            if !found.is_empty() {
                let told = found.into_iter().map(|line| format!("turn {turn}: {line}")).collect();
                let differences = self.note(told);
                if !self.lenient {
                    return Err(TransportError::Differs { differences });
                }
            }
        }
        match lines.next() {
            Some(Line::Response { at_ms, status, retry_after_ms, location }) => {
                self.clock.reach(at_ms);
                let clock = Arc::clone(&self.clock);
                // What comes after the body's end is not the body's, whoever may have stopped the request then.
                let mut pieces = Vec::new();
                let mut is_whole = false;
                while !is_whole && let Some(line) = lines.next() {
                    is_whole = !matches!(line, Line::Data { .. });
                    pieces.push(line);
                }
                let cut = (!is_whole).then(|| Err(recording_ends()));
                let body = stream::iter(pieces)
                    .filter_map(move |line| std::future::ready(play(&clock, line)))
                    .chain(stream::iter(cut))
                    .boxed();
                let retry_after = retry_after_ms.map(Duration::from_millis);
                Ok(Incoming { status, retry_after, location, body })
            }
            Some(Line::NoConnection { at_ms, message, refused }) => {
                self.clock.reach(at_ms);
                Err(TransportError::Connect { message, refused })
            }
            Some(Line::Stopped(stopped)) => Err(self.stop(stopped)),
            _ => Err(recording_ends()),
        }
    }

    fn stop(&self, Stopped { at_ms, failure }: Stopped) -> TransportError {
        self.clock.reach(at_ms);
        TransportError::Stopped { failure }
    }

    fn note(&self, found: Vec<String>) -> Vec<String> {
        if let Ok(mut differed) = self.differed.lock() {
            differed.extend(found.iter().cloned());
        }
        found
    }
}

fn recording_ends() -> TransportError {
    TransportError::Broken { message: String::from("the recording ends here") }
}

/// What a line gives to the body's reader.
fn play(clock: &Clock, line: Line) -> Option<Result<Vec<u8>, TransportError>> {
    match line {
        Line::Data { at_ms, text, bytes } => {
            clock.reach(at_ms);
            Some(Ok(text.map(String::into_bytes).or(bytes).unwrap_or_default()))
        }
        Line::End { at_ms, error } => {
            clock.reach(at_ms);
            error.map(|message| Err(TransportError::Broken { message }))
        }
        Line::Stopped(Stopped { at_ms, failure }) => {
            clock.reach(at_ms);
            Some(Err(TransportError::Stopped { failure }))
        }
        Line::Session { .. } | Line::Request { .. } | Line::Response { .. } | Line::NoConnection { .. } => {
            None
        }
        Line::Tool { .. } => None,
    }
}

impl Transport for ReplayTransport {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        std::future::ready(self.answer(&outgoing)).boxed()
    }

    fn url(&self, _: Api) -> &str {
        &self.recording.session.url
    }
}
