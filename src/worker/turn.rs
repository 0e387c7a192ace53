//! One model turn: a request out, a reply in, under every timer.
//!
//! Here are the attempts: what is sent again, and in which form. `reply` reads what comes back, `failure` words what
//! went wrong. Source of the statuses: those that name a passing state; a 500 of llama.cpp's about tools or arguments
//! stays one for ever.

mod failure;
mod managed;
mod reply;

use std::time::Duration;

use tokio::time::Instant;

use super::drain::Exchange;
use super::drive::{Drive, seconds, until};
use super::record::lock;
use super::recording::Line;
use super::toolbox::Toolbox;
use super::transport::{Incoming, Look, Outgoing, Page, TransportError};
use crate::chat::{BodyForm, ChatEvent, ChatRequest, Feature, Reply, ServerError, Swap, next_swap};
use crate::request::{Event, FailReason, Failure, Run, kind};

/// Tries of one turn, the first included.
const MAX_ATTEMPTS: u32 = 4;
/// Tries while a server says that it is loading its model.
const MAX_ATTEMPTS_LOADING: u32 = 130;
/// A model is given this long to be loaded.
const LOADING_LIMIT: Duration = Duration::from_secs(10 * 60);
/// The shortest and the longest wait between two looks at a server that loads.
const MIN_DELAY_LOADING: Duration = Duration::from_millis(100);
const MAX_DELAY_LOADING: Duration = Duration::from_secs(5);
/// The first wait between tries; it doubles.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The longest wait that a server may ask for; asked for more, the request fails and says so.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// Response headers where a server sends them soon, and where a request waits without a word for a slot or a model.
const HEADERS_LIMIT: Duration = Duration::from_secs(30);
const QUEUED_HEADERS_LIMIT: Duration = Duration::from_secs(10 * 60);

/// The request is over, and its machine knows.
struct Over;

/// A response whose head has come, from a server that may work on it.
struct Open {
    incoming: Incoming,
    exchange: Exchange,
}

/// What a server says of a request that it did not take.
struct Said {
    error: ServerError,
    /// It came as a web page.
    is_page: bool,
}

/// How one try ended, where the turn is not over by it.
enum Again {
    /// The same request again, after a while.
    After { wait: Duration, reason: String, is_loading: bool },
    /// Another form of the same request, at once.
    As(Swap, String),
}

/// One turn of one request.
struct Turn<'a> {
    task: &'a Drive,
    run: &'a mut Run,
    toolbox: &'a Toolbox,
    /// When the whole request must be over.
    total: Option<Instant>,
    /// How often it was sent again as it was; another form is no other try.
    retries: u32,
    /// Since when the server says that it is loading.
    loading_since: Option<Instant>,
    delay: Duration,
}

/// Sends `request` and feeds the reply to `run`, until the reply is over or the request is.
pub(super) async fn stream(
    task: &Drive,
    run: &mut Run,
    toolbox: &Toolbox,
    request: ChatRequest,
    form: &mut BodyForm,
    total: Option<Instant>,
) {
    let (loading_since, delay) = (None, FIRST_DELAY);
    let mut turn = Turn { task, run, toolbox, total, retries: 0, loading_since, delay };
    // Over or not, the machine knows.
    let _: Result<(), Over> = turn.play(&request, form).await;
}

impl Turn<'_> {
    async fn play(&mut self, request: &ChatRequest, form: &mut BodyForm) -> Result<(), Over> {
        let (turn, _) = self.run.turn();
        let request_id = self.run.request_id().to_owned();
        for attempt in 1.. {
            let streaming = self.reach_server().await?;
            let body = request.encode_body(*form);
            let outgoing = |attempt, body| Outgoing {
                request_id: request_id.clone(),
                turn,
                attempt,
                api: form.api,
                body,
            };
            let sent = self.send(outgoing(attempt, body.clone())).await?;
            let again = match sent {
                Ok(open) if (200..300).contains(&open.incoming.status) => {
                    self.learn(*form);
                    // Should the reply turn out empty, this asks for the reason.
                    let probe =
                        || outgoing(attempt + 1, request.encode_body(BodyForm { stream: false, ..*form }));
                    return self.read_reply(&body, probe, open).await;
                }
                Ok(open) => self.judge_refusal(request, *form, attempt, open).await?,
                Err(TransportError::Connect { message, refused: true }) if self.may_retry() => {
                    let wait = jitter(self.delay / 2, self.task.id_seed, turn, attempt);
                    Again::After { wait, reason: message, is_loading: false }
                }
                Err(TransportError::Broken { .. } | TransportError::Connect { .. })
                    if managed::is_lost(self.task, self.total).await =>
                {
                    return Err(self.give_up());
                }
                Err(error) => return Err(self.end_by_transport(error)),
            };
            match again {
                Again::As(swap, reason) => {
                    // For the later turns, too: the server will not have learned it by then.
                    form.swaps = form.swaps.with(swap);
                    let detail = format!("sent again {}: {reason}", swap.describe());
                    self.task
                        .publish_own(self.run, Event::Retry { attempt: attempt + 1, delay_ms: 0, detail });
                    if swap == Swap::NoTools {
                        let message =
                            "the model takes no tools: they are told in the text, and calls are read from it";
                        self.task.publish_own(self.run, Event::Warning { message: String::from(message) });
                    }
                }
                Again::After { wait, reason, is_loading } => {
                    let delay_ms = wait.as_millis() as u64;
                    let event = Event::Retry { attempt: attempt + 1, delay_ms, detail: reason };
                    self.task.publish_own(self.run, event);
                    // Nothing of it is with the server: a restart is waited for.
                    drop(streaming);
                    self.wait(wait, is_loading).await?;
                    self.retries += 1;
                    self.delay = (self.delay * 2).min(MAX_DELAY);
                }
            }
        }
        Ok(())
    }

    /// A form that the server took is the one that later requests begin with.
    fn learn(&self, form: BodyForm) {
        if !form.swaps.is_empty() {
            let mut learned = lock(&self.task.shared.learned);
            *learned = learned.and(form.swaps);
        }
    }

    /// What is done about an answer that is no reply.
    async fn judge_refusal(
        &mut self,
        request: &ChatRequest,
        form: BodyForm,
        attempt: u32,
        open: Open,
    ) -> Result<Again, Over> {
        let Incoming { status, retry_after, .. } = open.incoming;
        let location = open.incoming.location.clone();
        let Said { error, is_page } = self.read_error(open).await?;
        if let Some(swap) = next_swap(request, form, &error, self.run.config().fallback) {
            return Ok(Again::As(swap, error.message));
        }
        let is_loading = status == 503 && error.message.contains("Loading model");
        let is_retried = matches!(status, 408 | 409 | 429 | 503)
            && if is_loading { self.may_load_on(attempt) } else { self.may_retry() }
            && retry_after.is_none_or(|wait| wait <= MAX_DELAY);
        if is_retried {
            let (turn, _) = self.run.turn();
            let delay = if is_loading { self.delay.min(MAX_DELAY_LOADING) } else { self.delay };
            let wait = retry_after.unwrap_or_else(|| jitter(delay, self.task.id_seed, turn, attempt));
            let reason = format!("HTTP {status}: {}", error.message);
            return Ok(Again::After { wait, reason, is_loading });
        }
        // The text of a call that the server could not parse may be a call all the same.
        if error.failed_generation.is_some() {
            self.feed_failed(error);
            return Err(Over);
        }
        let url = self.task.url();
        let failure = failure::of_status(url, status, &error, is_page, location.as_deref(), retry_after);
        Err(self.fail(failure))
    }

    fn feed_failed(&mut self, error: ServerError) {
        self.feed(&mut vec![ChatEvent::Ended { reply: Reply::failed(error) }]);
    }

    fn may_retry(&self) -> bool {
        self.retries + 1 < MAX_ATTEMPTS
    }

    /// Whether a server that loads is waited for any longer.
    fn may_load_on(&mut self, attempt: u32) -> bool {
        let since = self.loading_since.get_or_insert_with(Instant::now);
        attempt < MAX_ATTEMPTS_LOADING && since.elapsed() < LOADING_LIMIT
    }

    /// Waits before the next try; for a model that is loaded, until the server says that it is.
    async fn wait(&mut self, wait: Duration, is_loading: bool) -> Result<(), Over> {
        // A replay has no delays.
        if self.task.clock.is_recorded() {
            return Ok(());
        }
        let transport = &self.task.shared.transport;
        let since = self.loading_since;
        let pause = async {
            tokio::time::sleep(wait).await;
            let is_in_time = || since.is_some_and(|since| since.elapsed() < LOADING_LIMIT);
            let step = wait.clamp(MIN_DELAY_LOADING, MAX_DELAY_LOADING);
            while is_loading && is_in_time() {
                match transport.look(Page::Health).await {
                    Look::Seen(503, _) | Look::Silent => tokio::time::sleep(step).await,
                    // A server without that page is asked by the request itself.
                    Look::Seen(..) | Look::Missing => return,
                }
            }
        };
        tokio::select! {
            biased;
            () = self.task.cancel.cancelled() => Err(self.give_up()),
            () = until(self.total) => Err(self.total_timeout()),
            () = pause => Ok(()),
        }
    }

    /// The head of the response.
    async fn send(&mut self, outgoing: Outgoing) -> Result<Result<Open, TransportError>, Over> {
        let config = &self.task.shared.config;
        let is_queued = self.task.server.lacks(Feature::EarlyHeaders);
        let default = if is_queued { QUEUED_HEADERS_LIMIT } else { HEADERS_LIMIT };
        let limit = config.timers.headers.unwrap_or(default);
        if let Some(sent) = self.send_within(outgoing, limit).await? {
            return Ok(sent);
        }
        self.task.shared.tell_stall();
        let url = self.task.url();
        let detail = format!("{url}: no response headers within {} (the worker's :headers)", seconds(limit));
        Err(self.fail(Failure::new(FailReason::HeadersTimeout, kind::HEADERS_TIMEOUT, detail)))
    }

    /// As [`Turn::send`]; `None`: there was no head within `limit`.
    async fn send_within(
        &mut self,
        outgoing: Outgoing,
        limit: Duration,
    ) -> Result<Option<Result<Open, TransportError>>, Over> {
        let task = self.task;
        task.write(|at_ms| task.request_line(self.run, &outgoing, at_ms));
        let mut exchange = Exchange::begin(task);
        let sent = tokio::select! {
            biased;
            () = task.cancel.cancelled() => return Err(self.give_up()),
            () = until(self.total) => return Err(self.total_timeout()),
            sent = managed::head_within(task, limit, task.shared.transport.send(outgoing)) => sent,
        };
        let Some(sent) = sent else { return Ok(None) };
        match &sent {
            Ok(incoming) => task.write(|at_ms| Line::Response {
                at_ms,
                status: incoming.status,
                retry_after_ms: incoming.retry_after.map(|wait| wait.as_millis() as u64),
                location: incoming.location.clone(),
            }),
            Err(TransportError::Connect { message, refused }) => {
                task.write(|at_ms| Line::NoConnection { at_ms, message: message.clone(), refused: *refused });
            }
            Err(_) => {}
        }
        // Nothing works on a request that was refused, or that came to nobody.
        if !matches!(&sent, Ok(incoming) if incoming.status < 300) {
            exchange.settle();
        }
        Ok(Some(sent.map(|incoming| Open { incoming, exchange })))
    }

    fn fail(&mut self, failure: Failure) -> Over {
        self.task.fail(self.run, failure);
        Over
    }

    fn give_up(&mut self) -> Over {
        self.task.give_up(self.run);
        Over
    }

    fn total_timeout(&mut self) -> Over {
        self.task.total_timeout(self.run);
        Over
    }

    fn end_by_transport(&mut self, error: TransportError) -> Over {
        self.task.stop(self.run, failure::of_transport(error));
        Over
    }
}

/// A wait between 3/4 and 5/4 of `delay`, so that many who were refused together do not come back together. It
/// hangs on the request's seed, so that a replay waits the same.
fn jitter(delay: Duration, seed: u64, turn: u32, attempt: u32) -> Duration {
    let mut random = fastrand::Rng::with_seed(seed ^ (u64::from(turn) << 32) ^ u64::from(attempt));
    delay.mul_f64(0.75 + random.f64() / 2.0)
}
