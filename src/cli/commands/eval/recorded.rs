//! Replies of a recording: they are judged again without a model.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::spec::Ask;
use deftool_record::Recording;
use deftool_worker::{ReplayTransport, ToolSource, Worker, WorkerConfig};

use super::reply::ModelReply;
use super::trials::{Offer, Trial, run_of};
use crate::cli::outcome::CliError;
use crate::cli::terminal::output::clean;
use crate::cli::worker::recordings::{self, CREATE_EVALUATION};

/// What a recording contains of an evaluation.
pub(super) struct Recorded {
    recording: Recording,
    /// The models.
    pub(super) models: BTreeSet<String>,
    /// The highest run; 0 without replies.
    pub(super) runs: u32,
    /// Index of the last complete reply of each name. The replies before it failed.
    last: HashMap<String, usize>,
    /// The number of replies of each model, and their total time.
    times: HashMap<String, (u32, Duration)>,
}

impl Recorded {
    /// Reads the recording of `--replay`.
    ///
    /// # Errors
    /// If the file cannot be read, or contains no reply of an evaluation.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let recorded = Self::of(recordings::read_replies(path)?);
        if recorded.last.is_empty() {
            return Err(CliError::Usage(format!(
                "{}: contains no replies of an evaluation{CREATE_EVALUATION}",
                clean(&path.display().to_string())
            )));
        }
        Ok(recorded)
    }

    /// Returns what `recording` contains.
    pub(super) fn of(recording: Recording) -> Self {
        let (mut models, mut runs) = (BTreeSet::new(), 0);
        let (mut last, mut times) = (HashMap::new(), HashMap::<String, (u32, Duration)>::new());
        for (index, request) in recording.requests().iter().enumerate() {
            let session = &request.session;
            let Some(run) = run_of(&session.job_name).filter(|_| request.is_whole()) else { continue };
            models.insert(session.model.clone());
            runs = runs.max(run);
            last.insert(session.job_name.clone(), index);
            if let Some(duration) = request.duration() {
                let (replies, total) = times.entry(session.model.clone()).or_default();
                *replies += 1;
                *total += duration;
            }
        }
        Self { recording, models, runs, last, times }
    }

    /// Returns the path of the recording.
    pub(super) fn path(&self) -> &Path {
        self.recording.path()
    }

    /// Whether the recording contains the end of a trial.
    pub(super) fn has(&self, trial: &Trial) -> bool {
        self.last.contains_key(&trial.job)
    }

    /// Returns how long `trials` take, one after the other. `models`: the names of the models. `None`: no reply of one of them is
    /// recorded.
    pub(super) fn duration(&self, trials: &[Trial], models: &[String]) -> Option<Duration> {
        trials.iter().try_fold(Duration::ZERO, |sum, trial| {
            let (replies, total) = self.times.get(models.get(trial.model)?)?;
            Some(sum + *total / *replies)
        })
    }

    /// Replays the reply to a trial of `offer`, which sends `ask`. `None`: no reply is recorded, or the server failed.
    pub(super) async fn reply(&self, offer: &Offer, trial: &Trial, ask: &Ask) -> Option<ModelReply> {
        let recording = self.recording.only(*self.last.get(&trial.job)?)?;
        // Nothing is sent, so nothing is observed.
        let config = WorkerConfig { observer: None, ..offer.config.clone() };
        let tools = Arc::clone(&offer.tools) as Arc<dyn ToolSource>;
        // The bodies of the requests were not read.
        let transport = Arc::new(ReplayTransport::new(recording, true));
        let worker = Worker::replay(config, tools, transport);
        let id = worker.submit(offer.request(ask, trial)).ok()?;
        let reply = ModelReply::of(&mut worker.events(&id, 0)?).await?.ok()?;
        let elapsed = worker.request_status(&id)?.last_progress_ms;
        Some(ModelReply { elapsed: Duration::from_millis(elapsed), ..reply })
    }
}
