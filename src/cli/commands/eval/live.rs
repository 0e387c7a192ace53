//! Sends the asks to the models: as many at a time as the worker has slots.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use deftool_lang::spec::Ask;
use deftool_record::Recorder;
use deftool_worker::Worker;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::estimate::{Estimate, number};
use super::reply::{ModelReply, ServerFailure};
use super::trials::{Offer, Trial, Version};
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::shows_progress;
use crate::cli::terminal::spinner::Spinner;

/// Number of failures from which on the share of failures counts.
const MIN_FAILURES: usize = 3;

/// A model with a version of the tools, and its worker.
pub(super) struct Subject {
    /// Index of the model.
    pub(super) model: usize,
    pub(super) version: Version,
    pub(super) offer: Offer,
    /// `None`: not connected.
    pub(super) worker: Option<Worker>,
}

impl Subject {
    /// Returns the subject of a trial.
    pub(super) fn of<'s>(subjects: &'s [Self], trial: &Trial) -> Option<&'s Self> {
        subjects.iter().find(|subject| (subject.model, subject.version) == (trial.model, trial.version))
    }
}

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum number of requests.
    pub(super) requests: usize,
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

/// A trial with the reply, or why there is none.
pub(super) type Ended = (Trial, Result<ModelReply, ServerFailure>);

/// The replies of a run.
#[derive(Default)]
pub(super) struct Replies {
    /// Each trial that was sent or replayed.
    pub(super) ended: Vec<Ended>,
    pub(super) stopped: Option<Stopped>,
}

/// Sends the asks of `trials`, in this order, to the workers of `subjects`.
pub(super) async fn run(
    trials: Vec<Trial>,
    asks: &[&Ask],
    subjects: &[Subject],
    recorder: Option<&Arc<Recorder>>,
    (limits, mut estimate): (Limits, Estimate),
    interrupts: &mut Interrupts,
) -> Replies {
    let planned = trials.len();
    let total = limits.requests.min(planned);
    let bar = shows_progress().then(|| Spinner::start_bar(total));
    let (mut waiting, mut active) = (VecDeque::from(trials), FuturesUnordered::new());
    let mut replies = Replies::default();
    let (mut sent, mut failed) = (0, 0);
    loop {
        while replies.stopped.is_none()
            && sent < total
            && let Some(trial) = waiting.pop_front()
            && let Some(ask) = asks.get(trial.ask)
            && let Some(Subject { offer, worker: Some(worker), .. }) = Subject::of(subjects, &trial)
        {
            if active.len() >= offer.config.slots {
                waiting.push_front(trial);
                break;
            }
            sent += 1;
            active.push(send(trial, ask, (offer, worker), recorder));
        }
        tokio::select! {
            biased;
            () = interrupts.next() => replies.stopped = Some(Stopped::Interrupted),
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
    (offer, worker): (&Offer, &Worker),
    recorder: Option<&Arc<Recorder>>,
) -> (Trial, Option<Result<ModelReply, ServerFailure>>) {
    let mut request = offer.request(ask, &trial);
    request.recorder = recorder.map(Arc::clone);
    let begun = Instant::now();
    let id = match worker.submit_when_ready(request).await {
        Ok(id) => id,
        Err(error) => {
            let failure = ServerFailure { detail: error.to_string(), is_final: true };
            return (trial, Some(Err(failure)));
        }
    };
    let canceled = CancelOnDrop { worker, id: &id };
    let reply = match worker.events(&id, 0) {
        Some(mut events) => ModelReply::of(&mut events).await,
        None => None,
    };
    drop(canceled);
    let _ = worker.take_result(&id);
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
