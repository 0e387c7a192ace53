//! Collects the replies of an evaluation: the recorded ones, and those of the models to the asks that are sent.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use deftool_engine::PreparedWorker;
use deftool_lang::schema::ToolSet;
use deftool_lang::spec::Ask;
use deftool_lang::text::count;
use deftool_record::Recorder;
use deftool_worker::ToolSource;

use super::estimate::Estimate;
use super::live::{self, Ended, Limits, Replies, Stopped, Subject};
use super::recorded::Recorded;
use super::report;
use super::trials::{Offer, Trial, Version};
use super::{Company, EvalOptions, worker_options};
use crate::cli::outcome::CliError;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::clean;
use crate::cli::worker::{api_key, close, connect, recordings, secrets};

/// What is evaluated.
pub(super) struct Evaluation<'e> {
    pub(super) options: &'e EvalOptions,
    pub(super) opened: &'e PreparedWorker,
    pub(super) asks: &'e [&'e Ask],
    /// The tools of each version that is compared, the baseline first.
    pub(super) versions: &'e [(Version, ToolSet)],
}

/// The replies of an evaluation.
pub(super) struct Evaluated {
    /// The names of the models.
    pub(super) models: Vec<String>,
    pub(super) runs: u32,
    pub(super) replies: Replies,
    /// The recording of the replies that were sent, to be closed.
    pub(super) recorder: Option<Arc<Recorder>>,
}

impl Evaluation<'_> {
    /// Replays the replies of a recording. Asks without a recorded reply are named. `None`: the user interrupted.
    ///
    /// # Errors
    /// If the recording contains no reply to the asks.
    pub(super) async fn replayed(
        &self,
        recorded: &Recorded,
        interrupts: &mut Interrupts,
    ) -> Result<Option<Evaluated>, CliError> {
        let models: Vec<Option<String>> = recorded.models.iter().cloned().map(Some).collect();
        let subjects = self.subjects(&models);
        let trials = self.trials(&subjects, recorded.runs);
        let is_stale = |trial: &&Trial| trial.run == 1 && !recorded.has(trial);
        let stale: BTreeSet<usize> = trials.iter().filter(is_stale).map(|trial| trial.ask).collect();
        let Some((ended, _)) = self.replay(recorded, trials, &subjects, interrupts).await else {
            return Ok(None);
        };
        if ended.is_empty() {
            return Err(CliError::Usage(format!(
                "{}: contains no reply to the {} with the current tools; record them again with `deftool eval --record FILE`",
                clean(&recorded.path().display().to_string()),
                count(self.asks.len(), "ask")
            )));
        }
        report::eprint_stale(&stale, self.asks, &self.opened.tools.project().current().load.sources);
        let replies = Replies { ended, stopped: None };
        let models = models.into_iter().flatten().collect();
        Ok(Some(Evaluated { models, runs: recorded.runs, replies, recorder: None }))
    }

    /// Sends the asks whose replies are not recorded, and replays the others. Models to which nothing is sent are not
    /// connected. `None`: the user interrupted before the first reply.
    ///
    /// # Errors
    /// If no worker can be connected, or the recording cannot be used.
    pub(super) async fn sent(
        &self,
        models: &[Option<String>],
        interrupts: &mut Interrupts,
    ) -> Result<Option<Evaluated>, CliError> {
        let options = self.options;
        let mut subjects = self.subjects(models);
        let (recorder, recorded) = self.recording()?;
        // The name is a part of what a recorded reply belongs to.
        let is_unnamed = |subject: &Subject| subject.offer.model.is_empty();
        if !self.connect(&mut subjects, is_unnamed, interrupts).await? {
            return Ok(None);
        }
        let of_model = |index| subjects.iter().find(|subject| subject.model == index);
        let names: Vec<String> =
            (0..models.len()).filter_map(of_model).map(|subject| subject.offer.model.clone()).collect();
        let mut trials = self.trials(&subjects, options.runs);
        let mut known = Vec::new();
        if let Some(recorded) = &recorded {
            match self.replay(recorded, trials, &subjects, interrupts).await {
                Some(found) => (known, trials) = found,
                None => return Ok(None),
            }
        }
        let total = options.max_requests.map_or(trials.len(), |limit| limit.min(trials.len()));
        let sent = trials.get(..total).unwrap_or_default();
        let used: HashSet<(usize, Version)> = sent.iter().map(|trial| (trial.model, trial.version)).collect();
        let is_used = |subject: &Subject| used.contains(&(subject.model, subject.version));
        if !self.connect(&mut subjects, is_used, interrupts).await? {
            return Ok(None);
        }
        let slots = u32::try_from(self.opened.config.slots).unwrap_or(u32::MAX).max(1);
        let expected = recorded.as_ref().and_then(|recorded| recorded.duration(sent, &names));
        let estimate = Estimate::start(trials.len(), known.len(), expected.map(|expected| expected / slots));
        drop(recorded);
        let limits = Limits { requests: total, failures: options.max_failures };
        let pace = (limits, estimate);
        let mut replies = live::run(trials, self.asks, &subjects, recorder.as_ref(), pace, interrupts).await;
        replies.ended.extend(known);
        for worker in subjects.iter().filter_map(|subject| subject.worker.as_ref()) {
            close(worker, interrupts).await;
        }
        let is_nothing = replies.ended.is_empty() && replies.stopped == Some(Stopped::Interrupted);
        let evaluated = Evaluated { models: names, runs: options.runs, replies, recorder };
        Ok((!is_nothing).then_some(evaluated))
    }

    /// Returns the models with each version of the tools, without a worker. The name of a model is empty if neither the
    /// command line nor the worker has it.
    fn subjects(&self, models: &[Option<String>]) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for (model, name) in models.iter().enumerate() {
            let name = name.as_ref().or(self.opened.spec.model.as_ref());
            for (version, tools) in self.versions {
                let is_alone = self.options.tools == Company::Only;
                let name = name.cloned().unwrap_or_default();
                let offer = Offer::new(name, tools.clone(), is_alone, self.opened.config.clone());
                subjects.push(Subject { model, version: *version, offer, worker: None });
            }
        }
        subjects
    }

    /// Returns the trials of the subjects in all runs. The subjects alternate.
    fn trials(&self, subjects: &[Subject], runs: u32) -> Vec<Trial> {
        let mut trials = Vec::new();
        for run in 1..=runs {
            for (index, ask) in self.asks.iter().enumerate() {
                for Subject { model, version, offer, .. } in subjects {
                    let job = offer.job(ask, run);
                    trials.push(Trial { ask: index, model: *model, version: *version, run, job });
                }
            }
        }
        trials
    }

    /// Replays the recorded replies. Returns them, and the trials without one; `None`: the user interrupted.
    async fn replay(
        &self,
        recorded: &Recorded,
        trials: Vec<Trial>,
        subjects: &[Subject],
        interrupts: &mut Interrupts,
    ) -> Option<(Vec<Ended>, Vec<Trial>)> {
        let (mut known, mut missing) = (Vec::new(), Vec::new());
        for trial in trials {
            let (Some(ask), Some(subject)) = (self.asks.get(trial.ask), Subject::of(subjects, &trial)) else {
                continue;
            };
            let reply = tokio::select! {
                biased;
                () = interrupts.next() => return None,
                reply = recorded.reply(&subject.offer, &trial, ask) => reply,
            };
            match reply {
                Some(reply) => known.push((trial, Ok(reply))),
                None => missing.push(trial),
            }
        }
        Some((known, missing))
    }

    /// Connects the subjects that `is_used` selects and that have no worker. Returns `false` if the user interrupted.
    ///
    /// # Errors
    /// If one cannot be connected.
    async fn connect(
        &self,
        subjects: &mut [Subject],
        is_used: impl Fn(&Subject) -> bool,
        interrupts: &mut Interrupts,
    ) -> Result<bool, CliError> {
        let (options, opened) = (self.options, self.opened);
        // A server that the worker starts is started once for each model.
        let mut started: Option<(usize, String)> = None;
        for subject in subjects {
            if let Some(worker) = &subject.worker {
                started = worker.status().endpoint.map(|endpoint| (subject.model, endpoint)).or(started);
                continue;
            }
            if !is_used(subject) {
                continue;
            }
            let of_model = started.as_ref().filter(|(model, _)| *model == subject.model);
            let endpoint =
                of_model.map(|(_, endpoint)| endpoint.clone()).or_else(|| options.endpoint.clone());
            let name = Some(subject.offer.model.clone()).filter(|name| !name.is_empty());
            let of_subject = worker_options(options, endpoint, name);
            let connected = connect(
                &of_subject,
                (&opened.spec, &opened.root),
                subject.offer.config.clone(),
                Arc::clone(&subject.offer.tools) as Arc<dyn ToolSource>,
                true,
            );
            let worker = tokio::select! {
                worker = connected => worker?,
                () = interrupts.next() => return Ok(false),
            };
            subject.offer.model = worker.model();
            started = worker.status().endpoint.map(|endpoint| (subject.model, endpoint)).or(started);
            subject.worker = Some(worker);
        }
        Ok(true)
    }

    /// Opens the recording of `--record`. Returns it with what it contains.
    fn recording(&self) -> Result<(Option<Arc<Recorder>>, Option<Recorded>), CliError> {
        let Some(path) = &self.options.record else { return Ok((None, None)) };
        let secrets = secrets(&[], &self.opened.tools.project().current())?;
        let key = api_key(&self.opened.spec);
        let (recorder, recording) = recordings::resume(path, key.as_deref(), secrets)?;
        Ok((Some(recorder), recording.map(Recorded::of)))
    }
}
