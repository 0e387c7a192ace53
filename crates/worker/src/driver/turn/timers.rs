//! The deadlines of a stream: for the first token, then for bytes and for events. Bytes alone do not detect a server that
//! hangs, because servers send comments while they are idle. Also the limit of the delays between attempts.

use std::time::Duration;

use deftool_chat::ChatEvent;
use deftool_chat::request::{FailReason, Failure, FailureKind};
use tokio::time::Instant;

use crate::driver::shared::StreamLimits;
use crate::time::{after, seconds};

/// Maximum delay before an attempt. If a server requests a longer delay, the request fails.
pub(super) const MAX_DELAY: Duration = Duration::from_secs(60);

/// Time limit for token counts and `[DONE]` after the finish reason. Some servers send neither and keep the connection
/// open.
const AFTER_FINISH_GRACE: Duration = Duration::from_secs(5);

/// Maximum time after the first token in which only comments, pings and empty chunks arrive, unless `:stall` is longer.
/// Servers send them while they hold back the arguments of a long call.
const KEEP_ALIVE_LIMIT: Duration = Duration::from_secs(30 * 60);

/// A deadline that is noticed so late passed while this process was stopped.
const STOPPED: Duration = Duration::from_secs(1);

/// The deadlines of a stream.
pub(super) struct StreamTimers {
    limits: StreamLimits,
    /// Until the first token, its deadline: only progress with the prompt moves it. Then that of the next byte.
    next: Instant,
    /// Deadline of the next event, once a token was received.
    event: Option<Instant>,
    /// Deadline of a reply after its finish reason.
    finish: Option<Instant>,
}

impl StreamTimers {
    /// Starts the deadlines of the reply to a request that was sent at `sent`.
    pub(super) fn new(limits: StreamLimits, sent: Instant) -> Self {
        Self { limits, next: after(sent, limits.first_token), event: None, finish: None }
    }

    /// Whether a token was received.
    pub(super) fn any_token(&self) -> bool {
        self.event.is_some()
    }

    /// Starts the grace period after the finish reason.
    pub(super) fn on_finish(&mut self) {
        self.finish.get_or_insert_with(|| Instant::now() + AFTER_FINISH_GRACE);
    }

    /// Moves the deadlines after a read at `now` that contained these events. Returns whether they contain a token.
    pub(super) fn on_bytes(&mut self, events: &[ChatEvent], now: Instant) -> bool {
        let has_token = events.iter().any(|event| match event {
            ChatEvent::Text { .. } | ChatEvent::Reasoning { .. } | ChatEvent::ToolCallDelta { .. } => true,
            ChatEvent::Progress { .. } | ChatEvent::Ended { .. } => false,
        });
        if has_token || (self.any_token() && !events.is_empty()) {
            self.event = Some(after(now, self.keep_alive()));
        }
        if self.any_token() || !events.is_empty() {
            self.next = after(now, self.limit());
        }
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
        let was_stopped = now.duration_since(self.next()) > STOPPED;
        if let Some(start) = was_stopped.then_some(now).or(last_active.filter(|_| !self.any_token())) {
            self.next = self.next.max(after(start, self.limit()));
        }
        if was_stopped {
            self.event = self.event.map(|event| event.max(after(now, self.keep_alive())));
        }
        self.next() > now
    }

    /// Returns the next deadline.
    pub(super) fn next(&self) -> Instant {
        [self.event, self.finish].into_iter().flatten().fold(self.next, Instant::min)
    }

    /// Returns the failure of the exceeded deadline; `None`: the reply is complete, and only optional events are
    /// missing.
    pub(super) fn failure(&self, url: &str) -> Option<Failure> {
        if self.finish.is_some() {
            return None;
        }
        let limit = seconds(self.limit());
        let (kind, detail) = if !self.any_token() {
            (FailureKind::FirstTokenTimeout, format!("no token within {limit} (the worker's :first-token)"))
        } else if self.event.is_some_and(|event| event < self.next) {
            let limit = seconds(self.keep_alive());
            (FailureKind::StallTimeout, format!("only comments, pings or empty chunks for {limit}"))
        } else {
            (FailureKind::StallTimeout, format!("no byte for {limit} (the worker's :stall)"))
        };
        Some(Failure::new(FailReason::StallTimeout, kind, format!("{url}: {detail}")))
    }

    /// Returns the longest time after the first token in which data arrives, but no event.
    fn keep_alive(&self) -> Duration {
        self.limits.stall.max(KEEP_ALIVE_LIMIT)
    }

    /// Returns the limit that applies now.
    fn limit(&self) -> Duration {
        if self.any_token() { self.limits.stall } else { self.limits.first_token }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn activity_extends_only_the_wait_for_the_first_token() {
        let limits = StreamLimits { first_token: Duration::from_secs(10), stall: Duration::from_secs(10) };
        let mut timers = StreamTimers::new(limits, Instant::now());
        advance(Duration::from_secs(10)).await;
        let now = Instant::now();
        assert!(!timers.extend(None, now), "no activity");
        assert!(!timers.extend(Some(now - Duration::from_secs(10)), now), "the activity is too old");
        assert!(timers.extend(Some(now - Duration::from_secs(4)), now));
        assert_eq!(timers.next(), now + Duration::from_secs(6));
        timers.on_bytes(&[ChatEvent::Text { text: String::from("a") }], now);
        let end = now + Duration::from_secs(10);
        assert!(!timers.extend(Some(end), end), "after the first token only bytes count");
        assert!(timers.failure("u").is_some());
    }
}
