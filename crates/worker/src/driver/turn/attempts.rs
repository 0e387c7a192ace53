//! The attempts of a turn: what is retried, and with which request variant.
//!
//! Only temporary conditions are retried, and only before a part of the reply was received. Which conditions are
//! temporary depends on the server: see [`Capabilities::is_hosted`](deftool_chat::Capabilities::is_hosted). A lost managed
//! server is restarted instead.

use std::time::Duration;

use deftool_chat::request::{Event, OnFailure};
use deftool_chat::{
    Body, BodyEncoder, BodyFallback, BodyForm, ChatEvent, ChatRequest, Reply, ServerError, ServerErrorKind,
    next_body_fallback,
};
use tokio::time::Instant;

use super::failure::{self, Refusal};
use super::managed;
use super::state::{Accepted, OpenResponse, RequestEnded, ServerRefusal, Turn};
use super::timers::MAX_DELAY;
use crate::observer::Observation;
use crate::time::until;
use crate::transport::{Incoming, Outgoing, Page, PageResponse, TransportError};

/// Maximum retries of one turn.
const MAX_RETRIES: u32 = 3;
/// Maximum retries after an error that is temporary only for a hosted API.
const MAX_RETRIES_HOSTED: u32 = 2;
/// Maximum attempts while a server loads its model.
const MAX_ATTEMPTS_LOADING: u32 = 130;
/// Time limit for a server to load its model.
const LOADING_LIMIT: Duration = Duration::from_secs(10 * 60);
/// Minimum and maximum interval between two health checks of a loading server.
const MIN_DELAY_LOADING: Duration = Duration::from_millis(100);
const MAX_DELAY_LOADING: Duration = Duration::from_secs(5);
/// Delay before the first retry. It doubles with each retry.
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The next attempt of a turn.
enum NextAttempt {
    /// The same request, after a delay.
    After { wait: Duration, reason: String, condition: Condition },
    /// Another variant of the request, immediately.
    Fallback(BodyFallback, String),
}

/// The temporary condition that a retry waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// The server refused the connection. A managed server is probably lost.
    Refused,
    /// The server is loading its model.
    Loading,
    /// Any other condition.
    Busy,
}

impl<'a> Turn<'a> {
    /// Sends `request` until the server accepts it or the request ends.
    pub(super) async fn run(
        &mut self,
        request: &ChatRequest,
        form: &mut BodyForm,
        encoder: &mut BodyEncoder,
    ) -> Result<Accepted<'a>, RequestEnded> {
        let task = self.task;
        let stateless = form.stateless;
        loop {
            let attempt = self.attempt;
            let streaming = self.reach_server().await?;
            let body = encoder.encode(request, *form);
            let sending = self.outgoing(attempt, body.clone());
            task.record.clock.tick(Instant::now());
            task.observe(Observation::Sent { span: sending.trace.as_ref(), attempt, request });
            let sent = self.send(sending).await?;
            let status = sent.as_ref().ok().map(|open| open.incoming.status);
            if !status.is_some_and(|status| (200..300).contains(&status)) {
                task.observe(Observation::Rejected { status });
            }
            let next = match sent {
                Ok(open) if (200..300).contains(&open.incoming.status) => {
                    self.store_form(*form);
                    for line in body.unsent() {
                        let message = line.trim_matches(['[', ']']).to_owned();
                        task.publish_own(self.run, Event::Warning { message });
                    }
                    // Also for the requests after this one.
                    if form.stateless != stateless {
                        self.run.forget_state();
                        task.record.replace_conversation(self.run.conversation());
                    }
                    if !body.rejected().is_empty() {
                        self.run.remove_attachments(body.rejected());
                        task.record.replace_conversation(self.run.conversation());
                    }
                    return Ok(Accepted { open, body, streaming });
                }
                Ok(open) => self.handle_refusal(request, *form, open).await?,
                Err(TransportError::Connect { message, refused: true }) if self.retries < MAX_RETRIES => {
                    let wait = self.jittered(self.delay / 2);
                    NextAttempt::After { wait, reason: message, condition: Condition::Refused }
                }
                Err(TransportError::Broken { .. } | TransportError::Connect { .. })
                    if managed::is_lost(self.task, self.total).await =>
                {
                    return Err(self.end_canceled());
                }
                Err(TransportError::Broken { message }) if self.may_retry_hosted() => {
                    let wait = self.jittered(self.delay);
                    NextAttempt::After { wait, reason: message, condition: Condition::Busy }
                }
                Err(error) => return Err(self.end_by_transport(error)),
            };
            match next {
                NextAttempt::Fallback(fallback, reason) => {
                    self.attempt += 1;
                    // Also used by the later turns of the request.
                    *form = form.after(fallback, request);
                    let detail = format!("sent again {}: {reason}", fallback.describe());
                    let retry = Event::Retry { attempt: self.attempt, delay_ms: 0, detail };
                    self.task.publish_own(self.run, retry);
                    self.api = form.effective_api();
                    if let Some(message) = warning_about(fallback) {
                        self.task.publish_own(self.run, Event::Warning { message: String::from(message) });
                    }
                }
                NextAttempt::After { wait, reason, condition } => {
                    // The server is not processing this request, so a restart of the server does not fail it.
                    drop(streaming);
                    self.retry(wait, reason, condition).await?;
                }
            }
        }
    }

    /// Waits for the next attempt after the server reported in a stream that it is overloaded.
    pub(super) async fn retry_overloaded(&mut self, error: &ServerError) -> Result<(), RequestEnded> {
        let reason = format!("{}: {}", self.url(), error.message);
        self.retry(self.jittered(self.delay), reason, Condition::Busy).await
    }

    /// Reports and counts a retry, and waits for it.
    async fn retry(
        &mut self,
        wait: Duration,
        reason: String,
        condition: Condition,
    ) -> Result<(), RequestEnded> {
        self.attempt += 1;
        self.run.count_retry();
        let delay_ms = wait.as_millis() as u64;
        let retry = Event::Retry { attempt: self.attempt, delay_ms, detail: reason };
        self.task.publish_own(self.run, retry);
        self.wait(wait, condition).await?;
        self.retries += 1;
        self.delay = (self.delay * 2).min(MAX_DELAY);
        Ok(())
    }

    /// Returns the request to send with `body`.
    pub(super) fn outgoing(&self, attempt: u32, body: Body) -> Outgoing {
        Outgoing {
            request_id: self.run.request_id().to_owned(),
            turn: self.run.turn().0,
            attempt,
            api: self.api,
            trace: self.task.trace.operation(),
            body,
            // If the server closes a connection that is used again, the request is lost. Only a hosted API gets it again.
            keep_alive: self.is_hosted(),
        }
    }

    /// Stores an accepted variant. Later requests to the model start with it.
    fn store_form(&self, form: BodyForm) {
        if !form.fallbacks.is_empty() {
            self.task.shared.require_fallbacks(&self.run.config().model, form.fallbacks);
        }
    }

    /// Handles an error response: returns the next attempt, or ends the request.
    async fn handle_refusal(
        &mut self,
        request: &ChatRequest,
        form: BodyForm,
        open: OpenResponse,
    ) -> Result<NextAttempt, RequestEnded> {
        let Incoming { status, retry_after, should_retry, .. } = open.incoming;
        let location = open.incoming.location.clone();
        let ServerRefusal { error, is_page } = self.read_error(open).await?;
        if let Some(fallback) = next_body_fallback(request, form, &error) {
            return Ok(NextAttempt::Fallback(fallback, error.message));
        }
        let is_loading = error.kind == ServerErrorKind::Loading;
        let retry_after =
            retry_after.or_else(|| error.retry_after_ms.map(|wait| Duration::from_millis(wait.into())));
        let is_temporary =
            if is_loading { self.may_wait_for_load() } else { self.may_retry(error.kind, should_retry) };
        if is_temporary && retry_after.is_none_or(|wait| wait <= MAX_DELAY) {
            let delay = if is_loading { self.delay.min(MAX_DELAY_LOADING) } else { self.delay };
            let wait = retry_after.unwrap_or_else(|| self.jittered(delay));
            let reason = format!("HTTP {status}: {}", error.message);
            let condition = if is_loading { Condition::Loading } else { Condition::Busy };
            return Ok(NextAttempt::After { wait, reason, condition });
        }
        let reports = self.run.config().on_invalid_arguments == OnFailure::Report;
        // The text that the server could not parse as a call may contain a valid call, or the model corrects it.
        if error.failed_generation.is_some() || (reports && error.kind == ServerErrorKind::UnparsedCall) {
            self.feed_failed(error);
            return Err(RequestEnded);
        }
        let url = self.url();
        let has_key = !self.task.shared.transport.lacks_credentials();
        let refusal = Refusal {
            status,
            error: &error,
            is_page,
            has_key,
            key_variable: &self.task.shared.config.key_variable,
            location: location.as_deref(),
            retry_after,
            suggested: self.task.shared.config.suggests_rows.then_some(self.task.server.dialect),
        };
        Err(self.fail(failure::of_status(url, &refusal)))
    }

    fn feed_failed(&mut self, error: ServerError) {
        self.feed(&mut vec![ChatEvent::Ended { reply: Reply::failed(error) }]);
    }

    /// Whether a request with such an error may be retried. `should_retry`: what the server requests.
    fn may_retry(&self, kind: ServerErrorKind, should_retry: Option<bool>) -> bool {
        match (should_retry, kind) {
            (Some(false), _) => false,
            (_, ServerErrorKind::Unavailable) => self.retries < MAX_RETRIES,
            // The model may write the next call correctly.
            (_, ServerErrorKind::UnparsedCall) => self.retries == 0,
            (_, ServerErrorKind::Temporary) | (Some(true), ServerErrorKind::Http) => self.may_retry_hosted(),
            // The other kinds are permanent.
            _ => false,
        }
    }

    /// Whether a request may be retried after an error that is temporary only for a hosted API.
    pub(super) fn may_retry_hosted(&self) -> bool {
        self.is_hosted() && self.retries < MAX_RETRIES_HOSTED
    }

    /// Whether the server is a hosted API. A managed server is not, even if its dialect is unknown.
    fn is_hosted(&self) -> bool {
        self.task.shared.server.is_none() && self.task.server.is_hosted()
    }

    /// Whether a request to a loading server may be retried.
    fn may_wait_for_load(&mut self) -> bool {
        let since = self.loading_since.get_or_insert_with(Instant::now);
        self.attempt < MAX_ATTEMPTS_LOADING && since.elapsed() < LOADING_LIMIT
    }

    /// Returns the delay before the next attempt, with jitter.
    fn jittered(&self, delay: Duration) -> Duration {
        jitter(delay, self.task.id_seed, self.run.turn().0, self.attempt)
    }

    /// Waits before the next attempt. For a loading server, waits until the server reports that it is ready. For a managed
    /// server that refused the connection, waits until its loss is known: the next attempt then waits for the restart.
    async fn wait(&mut self, wait: Duration, condition: Condition) -> Result<(), RequestEnded> {
        // A replay does not wait.
        if self.task.record.clock.is_recorded() {
            return Ok(());
        }
        let shared = &self.task.shared;
        let since = self.loading_since;
        let pause = async {
            if condition == Condition::Refused {
                shared.server_loss().await;
            }
            tokio::time::sleep(wait).await;
            let is_in_time = || since.is_some_and(|since| since.elapsed() < LOADING_LIMIT);
            let step = wait.clamp(MIN_DELAY_LOADING, MAX_DELAY_LOADING);
            while condition == Condition::Loading && is_in_time() {
                match shared.transport.get_page(Page::Health).await {
                    PageResponse::Received(503, _) | PageResponse::NoAnswer => tokio::time::sleep(step).await,
                    // Without a health page, the request itself shows whether the server is ready.
                    PageResponse::Received(..) | PageResponse::Unsupported => return,
                }
            }
        };
        let failure = tokio::select! {
            biased;
            () = self.task.cancel.cancelled() => self.task.record.stop_reason(),
            () = until(self.total) => Some(self.task.total_failure()),
            () = pause => return Ok(()),
        };
        self.task.stop_retry(self.run, failure);
        Err(RequestEnded)
    }
}

/// Returns a warning for users about a request variant that they can avoid.
fn warning_about(fallback: BodyFallback) -> Option<&'static str> {
    match fallback {
        BodyFallback::UseResponses => Some(
            "the model requires the responses API for tools: it is used instead; set `:api responses` in the worker",
        ),
        _ => None,
    }
}

/// Returns a delay between 3/4 and 5/4 of `delay`, so that requests that were rejected together are not retried
/// together. It depends on the seed of the request, so that a replay uses the same delay.
fn jitter(delay: Duration, seed: u64, turn: u32, attempt: u32) -> Duration {
    let mut random = fastrand::Rng::with_seed(seed ^ (u64::from(turn) << 32) ^ u64::from(attempt));
    delay.mul_f64(0.75 + random.f64() / 2.0)
}
