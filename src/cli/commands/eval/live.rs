//! Sends the asks to the models: as many at a time as the worker has slots.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool_lang::spec::Ask;
use deftool_lang::text::count;
use deftool_record::Recorder;
use deftool_worker::Worker;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::reply::{ModelReply, ServerFailure};
use super::trials::{Offer, Trial};
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{eprint_progress, shows_progress};
use crate::cli::terminal::spinner::Spinner;

/// Number of failures from which on the share of failures counts.
const MIN_FAILURES: usize = 3;

/// A model with a version of the tools, and its worker.
pub(super) struct Subject {
    pub(super) offer: Offer,
    pub(super) worker: Worker,
}

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum number of requests.
    pub(super) requests: Option<usize>,
    /// The share of requests that may fail because of the server, from 0 to 1.
    pub(super) failures: f64,
}

/// Why not all asks were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The user interrupted.
    Interrupted,
    /// The budget of requests is used.
    Requests,
    /// The server fails.
    Server(String),
}

/// The replies of a run.
#[derive(Default)]
pub(super) struct Replies {
    /// Each trial that was sent, with the reply, or why there is none.
    pub(super) ended: Vec<(Trial, Result<ModelReply, ServerFailure>)>,
    pub(super) stopped: Option<Stopped>,
}

/// Sends the asks of `trials`, in this order.
pub(super) async fn run<'s>(
    trials: Vec<Trial>,
    asks: &[&'s Ask],
    subject_of: impl Fn(&Trial) -> Option<&'s Subject>,
    recorder: Option<&'s Arc<Recorder>>,
    limits: Limits,
    interrupts: &mut Interrupts,
) -> Replies {
    let planned = trials.len();
    let total = limits.requests.map_or(planned, |limit| limit.min(planned));
    let bar = shows_progress().then(|| Spinner::start_bar(total));
    let (mut waiting, mut active) = (VecDeque::from(trials), FuturesUnordered::new());
    let mut replies = Replies::default();
    let (mut sent, mut failed) = (0, 0);
    let mut estimate = Estimate::start();
    loop {
        while replies.stopped.is_none()
            && sent < total
            && let Some(trial) = waiting.pop_front()
            && let (Some(ask), Some(subject)) = (asks.get(trial.ask), subject_of(&trial))
        {
            if active.len() >= subject.worker.status().slots {
                waiting.push_front(trial);
                break;
            }
            sent += 1;
            active.push(send(trial, ask, subject, recorder));
        }
        tokio::select! {
            biased;
            () = interrupts.next(), if replies.stopped.is_none() => replies.stopped = Some(Stopped::Interrupted),
            ended = active.next() => {
                let Some((trial, reply)) = ended else { break };
                let Some(reply) = reply else { continue };
                if let Err(failure) = &reply {
                    failed += 1;
                    let is_over = failed >= MIN_FAILURES && number(failed) > limits.failures * number(total);
                    if failure.is_final || is_over {
                        replies.stopped.get_or_insert(Stopped::Server(failure.detail.clone()));
                    }
                }
                replies.ended.push((trial, reply));
                estimate.report(replies.ended.len(), total);
                if let Some(bar) = &bar {
                    bar.set_position(replies.ended.len(), failed);
                }
            }
        }
        if replies.stopped == Some(Stopped::Interrupted) {
            // The requests end with their futures.
            break;
        }
    }
    if sent < planned && replies.stopped.is_none() {
        replies.stopped = Some(Stopped::Requests);
    }
    replies
}

/// Sends an ask, and waits for the reply. `None`: it was canceled.
async fn send(
    trial: Trial,
    ask: &Ask,
    subject: &Subject,
    recorder: Option<&Arc<Recorder>>,
) -> (Trial, Option<Result<ModelReply, ServerFailure>>) {
    let mut request = subject.offer.request(ask, trial.run);
    request.recorder = recorder.map(Arc::clone);
    let begun = Instant::now();
    let id = match subject.worker.submit_when_ready(request).await {
        Ok(id) => id,
        Err(error) => {
            let failure = ServerFailure { detail: error.to_string(), is_final: true };
            return (trial, Some(Err(failure)));
        }
    };
    let canceled = CancelOnDrop { worker: &subject.worker, id: &id };
    let reply = match subject.worker.events(&id, 0) {
        Some(mut events) => ModelReply::of(&mut events).await,
        None => None,
    };
    drop(canceled);
    let _ = subject.worker.take_result(&id);
    let with_time = |reply| ModelReply { elapsed: begun.elapsed(), ..reply };
    (trial, reply.map(|reply| reply.map(with_time)))
}

/// Cancels a request whose reply is no longer awaited. One that has ended stays as it is.
struct CancelOnDrop<'w> {
    worker: &'w Worker,
    id: &'w str,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.worker.cancel(self.id);
    }
}

/// Converts a number of requests.
fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The estimated duration, printed once, after the first replies.
struct Estimate {
    begun: Instant,
    is_printed: bool,
}

/// Time after which the duration is estimated.
const ESTIMATE_AFTER: Duration = Duration::from_secs(2);

impl Estimate {
    fn start() -> Self {
        Self { begun: Instant::now(), is_printed: false }
    }

    fn report(&mut self, ended: usize, total: usize) {
        let elapsed = self.begun.elapsed();
        if self.is_printed || ended == 0 || ended == total || elapsed < ESTIMATE_AFTER {
            return;
        }
        self.is_printed = true;
        let left = elapsed.mul_f64(number(total - ended) / number(ended));
        let left = match left.as_secs() {
            seconds @ ..90 => count(usize::try_from(seconds.max(1)).unwrap_or(1), "second"),
            seconds => count(usize::try_from(seconds.div_ceil(60)).unwrap_or(1), "minute"),
        };
        eprint_progress(&format!("about {left} left for {}", count(total - ended, "request")));
    }
}
