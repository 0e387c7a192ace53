//! The two deadlines of a stream: for bytes and for tokens. Bytes alone do not detect a stall, because servers send
//! comments while they are idle. Also the limit of the delays between attempts.

use std::time::Duration;

use deftool_chat::ChatEvent;
use deftool_chat::request::{FailReason, Failure, FailureKind};
use deftool_lang::spec::Timers;
use tokio::time::Instant;

use crate::time::{after, seconds};

/// Maximum delay before an attempt. If a server requests a longer delay, the request fails.
pub(super) const MAX_DELAY: Duration = Duration::from_secs(60);

/// Time limit for token counts and `[DONE]` after the finish reason. Some servers send neither and keep the connection
/// open.
const AFTER_FINISH_GRACE: Duration = Duration::from_secs(5);

/// A deadline that is noticed so late passed while this process was stopped.
const STOPPED: Duration = Duration::from_secs(1);

/// The deadlines of a stream. Any byte moves `byte`; only tokens and progress move `token`.
pub(super) struct StreamTimers<'a> {
    timers: &'a Timers,
    byte: Instant,
    token: Instant,
    any_token: bool,
    /// Deadline of a reply after its finish reason.
    finish: Option<Instant>,
}

impl<'a> StreamTimers<'a> {
    pub(super) fn new(timers: &'a Timers) -> Self {
        let now = Instant::now();
        Self {
            timers,
            byte: after(now, timers.stall),
            token: after(now, timers.first_token),
            any_token: false,
            finish: None,
        }
    }

    /// Whether a token was received.
    pub(super) fn any_token(&self) -> bool {
        self.any_token
    }

    /// Starts the grace period after the finish reason.
    pub(super) fn on_finish(&mut self) {
        self.finish.get_or_insert_with(|| Instant::now() + AFTER_FINISH_GRACE);
    }

    /// Moves the deadlines after a read at `now` that contained these events. Returns whether they contain a token.
    pub(super) fn on_bytes(&mut self, events: &[ChatEvent], now: Instant) -> bool {
        let mut has_token = false;
        self.byte = after(now, self.timers.stall);
        for event in events {
            match event {
                ChatEvent::Text { .. } | ChatEvent::Reasoning { .. } | ChatEvent::ToolCallDelta { .. } => {
                    has_token = true;
                    self.token = after(now, self.timers.token_stall);
                }
                ChatEvent::Progress { .. } if !self.any_token && !has_token => {
                    self.token = after(now, self.timers.first_token);
                }
                ChatEvent::Progress { .. } | ChatEvent::Ended { .. } => {}
            }
        }
        self.any_token |= has_token;
        has_token
    }

    /// Extends a deadline that has passed at `now`. Returns whether time is left.
    ///
    /// - After a stop of this process, the deadlines start again: what the server sent meanwhile is still to be read.
    /// - Before the first token, they count from `last_active`, because a server is silent while it processes a long
    ///   prompt.
    pub(super) fn extend(&mut self, last_active: Option<Instant>, now: Instant) -> bool {
        if self.finish.is_some() {
            return false;
        }
        let token_limit = if self.any_token { self.timers.token_stall } else { self.timers.first_token };
        let was_stopped = now.duration_since(self.next()) > STOPPED;
        if let Some(start) = was_stopped.then_some(now).or(last_active.filter(|_| !self.any_token)) {
            self.byte = self.byte.max(after(start, self.timers.stall));
            self.token = self.token.max(after(start, token_limit));
        }
        self.next() > now
    }

    /// Returns the next deadline.
    pub(super) fn next(&self) -> Instant {
        let next = self.byte.min(self.token);
        self.finish.map_or(next, |finish| finish.min(next))
    }

    /// Returns the failure of the exceeded deadline; `None`: the reply is complete, and only optional events are
    /// missing.
    pub(super) fn failure(&self, url: &str) -> Option<Failure> {
        if self.finish.is_some() {
            return None;
        }
        let (kind, what, limit, key) = if self.byte <= self.token {
            (FailureKind::StallTimeout, "no byte for", self.timers.stall, ":stall")
        } else if self.any_token {
            (FailureKind::TokenStall, "no token for", self.timers.token_stall, ":token-stall")
        } else {
            (FailureKind::FirstTokenTimeout, "no token within", self.timers.first_token, ":first-token")
        };
        let detail = format!("{url}: {what} {} (the worker's {key})", seconds(limit));
        Some(Failure::new(FailReason::StallTimeout, kind, detail))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn activity_extends_only_the_wait_for_the_first_token() {
        let limits = Timers { stall: Duration::from_secs(10), ..Timers::default() };
        let mut timers = StreamTimers::new(&limits);
        advance(Duration::from_secs(10)).await;
        let now = Instant::now();
        assert!(!timers.extend(None, now), "no activity");
        assert!(!timers.extend(Some(now - Duration::from_secs(10)), now), "the activity is too old");
        assert!(timers.extend(Some(now - Duration::from_secs(4)), now));
        assert_eq!(timers.next(), now + Duration::from_secs(6));
        timers.on_bytes(&[ChatEvent::Text { text: String::from("a") }], now);
        let end = now + Duration::from_secs(10);
        assert!(!timers.extend(Some(end), end), "after the first token only tokens count");
        assert!(timers.failure("u").is_some());
    }
}
