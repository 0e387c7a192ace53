//! Replies of a recording: they are judged again without a model.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use deftool_lang::spec::Ask;
use deftool_record::{Recording, ReplayOptions, Secrets};
use deftool_worker::{ReplayTransport, Worker};

use super::reply::{ModelReply, ServerFailure};
use super::trials::{Offer, Trial, run_of};

/// What a recording contains of an evaluation.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The models.
    pub(super) models: BTreeSet<String>,
    /// The highest run; 0 without replies.
    pub(super) runs: u32,
    /// The names of the complete replies.
    jobs: HashSet<String>,
}

impl Contents {
    /// Returns what `recording` contains.
    pub(super) fn of(recording: &Recording) -> Self {
        let mut contents = Self::default();
        for request in recording.requests().iter().filter(|request| request.is_whole()) {
            let session = &request.session;
            if let Some(run) = run_of(&session.job_name) {
                contents.models.insert(session.model.clone());
                contents.runs = contents.runs.max(run);
                contents.jobs.insert(session.job_name.clone());
            }
        }
        contents
    }

    /// Whether the reply of a trial is recorded.
    pub(super) fn has(&self, trial: &Trial) -> bool {
        self.jobs.contains(&trial.job)
    }
}

/// A trial with its reply.
pub(super) type Judgeable = (Trial, Result<ModelReply, ServerFailure>);

/// Replays the replies of `trials`, all of the same offer, in the order of the recording. A reply that was a failure of the
/// server is left out: it is requested again.
pub(super) async fn replay(
    recording: Recording,
    offer: &Offer,
    trials: Vec<Trial>,
    asks: &[&Ask],
    secrets: Secrets,
) -> Vec<Judgeable> {
    let mut by_job: HashMap<String, Trial> =
        trials.into_iter().map(|trial| (trial.job.clone(), trial)).collect();
    let mut order = Vec::new();
    // The last reply of a name counts: the ones before it failed.
    let mut last: HashMap<String, String> = HashMap::new();
    for request in recording.requests().iter().filter(|request| request.is_whole()) {
        last.insert(request.session.job_name.clone(), request.session.request_id.clone());
    }
    let recording = recording.select(|request| {
        let session = &request.session;
        let is_last = last.get(&session.job_name) == Some(&session.request_id);
        let trial = if is_last { by_job.remove(&session.job_name) } else { None };
        let is_selected = trial.is_some();
        order.extend(trial);
        is_selected
    });
    if order.is_empty() {
        return Vec::new();
    }
    let options = ReplayOptions { lenient: true, recorded_tools: false, secrets };
    let transport = Arc::new(ReplayTransport::with(recording, options));
    let worker = Worker::replay(offer.config.clone(), Arc::new(offer.tools.clone()), transport);
    let mut replies = Vec::new();
    for trial in order {
        let Some(ask) = asks.get(trial.ask) else { continue };
        let Ok(id) = worker.submit(offer.request(ask, trial.run)) else { break };
        let reply = match worker.events(&id, 0) {
            Some(mut events) => ModelReply::of(&mut events).await,
            None => None,
        };
        let elapsed = worker.request_status(&id).map(|status| status.last_progress_ms);
        let _ = worker.take_result(&id);
        if let Some(Ok(reply)) = reply {
            let elapsed = std::time::Duration::from_millis(elapsed.unwrap_or_default());
            replies.push((trial, Ok(ModelReply { elapsed, ..reply })));
        }
    }
    worker.stop();
    replies
}
