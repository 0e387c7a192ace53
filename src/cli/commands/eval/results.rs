//! The results of an evaluation, by model and ask.

use std::collections::BTreeMap;
use std::time::Duration;

use deftool_eval::judge::{Choice, Confusion, Verdict, confusions, judge};
use deftool_eval::statistics::{
    Comparison, Outcome, PairedTally, PassRate, Tally, compare, distinct_replies, pass_hat_k, pass_rate,
};
use deftool_lang::schema::ToolSet;
use deftool_lang::spec::{Ask, ExpectedReply};
use deftool_lang::text::Sources;
use serde::Serialize;
use serde_json::Value;

use super::live::{Replies, Stopped};
use super::reply::ModelReply;
use super::trials::Version;
use crate::cli::outcome::Exit;

/// The results of all models.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) runs: u32,
    pub(super) models: Vec<ModelResults>,
    /// Why not all asks were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<String>,
    #[serde(skip)]
    is_interrupted: bool,
}

/// The results of a model.
#[derive(Debug, Serialize)]
pub(super) struct ModelResults {
    pub(super) model: String,
    /// The replies that pass, over all asks; `None` without a reply.
    pub(super) passed: Option<PassRate>,
    /// The share of replies with the right calls, with only valid calls, and with the right arguments.
    pub(super) scores: Scores,
    /// The probability that an ask passes in all of its runs.
    pub(super) pass_hat_k: Option<f64>,
    /// The wrong choices of tools, the most frequent first.
    pub(super) confusions: Vec<Confusion>,
    pub(super) engine: EngineCounts,
    pub(super) tokens: Tokens,
    /// The mean time of a reply, in milliseconds.
    pub(super) mean_ms: u64,
    /// The requests that failed because of the server, by message.
    pub(super) failures: BTreeMap<String, usize>,
    pub(super) asks: Vec<AskResult>,
    /// The tools of the most frequent wrong choice, with their descriptions.
    pub(super) confused: Vec<Definition>,
    /// The comparison with the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comparison: Option<Comparison>,
}

/// A tool and its description.
#[derive(Debug, Serialize)]
pub(super) struct Definition {
    pub(super) tool: String,
    pub(super) description: String,
}

/// Replies with each score.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Scores {
    pub(super) replies: u32,
    pub(super) choice: u32,
    pub(super) validity: u32,
    pub(super) arguments: u32,
}

/// What the engine did beside reading structured calls.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct EngineCounts {
    /// Calls whose arguments were repaired, by tool.
    pub(super) repaired: BTreeMap<String, usize>,
    /// Calls written as text, by tool.
    pub(super) written_as_text: BTreeMap<String, usize>,
    /// Warnings, such as text that looks like a call and was not read.
    pub(super) warnings: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Tokens {
    pub(super) prompt: u64,
    pub(super) completion: u64,
}

/// The replies to one ask.
#[derive(Debug, Serialize)]
pub(super) struct AskResult {
    /// `file:line:column`.
    pub(super) at: String,
    /// The tool that the ask belongs to; `None` for an ask of the project.
    pub(super) tool: Option<String>,
    pub(super) prompt: String,
    #[serde(flatten)]
    pub(super) tally: Tally,
    #[serde(flatten)]
    pub(super) scores: Scores,
    /// The number of distinct replies.
    pub(super) distinct: usize,
    /// The problems, each with the number of replies that have it.
    pub(super) problems: BTreeMap<String, usize>,
    /// The tools that were expected and called in a wrong choice.
    #[serde(skip)]
    pub(super) confused: Vec<Choice>,
    /// The passes with the tools of the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baseline: Option<Tally>,
}

/// The replies to one ask of one version.
#[derive(Default)]
struct Judged {
    tally: Tally,
    scores: Scores,
    digests: Vec<String>,
    problems: BTreeMap<String, usize>,
    choices: Vec<Choice>,
    /// The runs, and whether they passed.
    by_run: BTreeMap<u32, bool>,
}

impl Judged {
    fn add(&mut self, run: u32, reply: &ModelReply, verdict: Verdict) {
        let passes = verdict.passes();
        self.tally.runs += 1;
        self.tally.passes += u32::from(passes);
        self.scores.add(&verdict);
        self.digests.push(reply.digest());
        self.by_run.insert(run, passes);
        let mut problems: Vec<String> = verdict.problems.iter().map(ToString::to_string).collect();
        problems.dedup();
        for problem in problems {
            *self.problems.entry(problem).or_default() += 1;
        }
        self.choices.extend(verdict.choices);
    }
}

impl Scores {
    fn add(&mut self, verdict: &Verdict) {
        self.replies += 1;
        self.choice += u32::from(verdict.choice);
        self.validity += u32::from(verdict.validity);
        self.arguments += u32::from(verdict.arguments);
    }

    fn sum(mut self, other: Self) -> Self {
        self.replies += other.replies;
        self.choice += other.choice;
        self.validity += other.validity;
        self.arguments += other.arguments;
        self
    }
}

impl Results {
    /// Judges the replies. `versions`: the tools that were offered.
    pub(super) fn of(
        asks: &[&Ask],
        models: Vec<String>,
        runs: u32,
        replies: &Replies,
        versions: &[(Version, ToolSet)],
        sources: &Sources,
    ) -> Self {
        let models = models
            .into_iter()
            .enumerate()
            .map(|(index, model)| ModelResults::of(asks, (index, model), runs, replies, versions, sources));
        let stopped = replies.stopped.as_ref().map(|stopped| match stopped {
            Stopped::Interrupted => String::from("interrupted"),
            Stopped::Requests => String::from("the budget of requests is used"),
            Stopped::Server(why) => why.clone(),
        });
        let is_interrupted = replies.stopped == Some(Stopped::Interrupted);
        Self { runs, models: models.collect(), stopped, is_interrupted }
    }

    /// Returns how the command ends. `min`: the lowest share of replies that must pass.
    pub(super) fn exit(&self, min: Option<f64>) -> Exit {
        let outcome = |outcome: Outcome| {
            let mut compared = self.models.iter().filter_map(|model| model.comparison);
            compared.any(|comparison| comparison.outcome == outcome)
        };
        let below = |min: f64| {
            let mut measured = self.models.iter().filter_map(|model| model.passed);
            measured.any(|passed| passed.rate < min)
        };
        if self.is_interrupted {
            Exit::Interrupted
        } else if self.models.iter().any(|model| model.passed.is_none()) {
            Exit::NotAttempted
        } else if outcome(Outcome::Worse) || min.is_some_and(below) {
            Exit::Failed
        } else if outcome(Outcome::CannotTell) || self.stopped.is_some() {
            Exit::Undecided
        } else {
            Exit::Clean
        }
    }
}

impl ModelResults {
    fn of(
        asks: &[&Ask],
        (index, model): (usize, String),
        runs: u32,
        replies: &Replies,
        versions: &[(Version, ToolSet)],
        sources: &Sources,
    ) -> Self {
        let mut judged: BTreeMap<(usize, bool), Judged> = BTreeMap::new();
        let (mut engine, mut tokens, mut elapsed) =
            (EngineCounts::default(), Tokens::default(), Duration::ZERO);
        let (mut failures, mut replied): (BTreeMap<String, usize>, u64) = (BTreeMap::new(), 0);
        for (trial, reply) in replies.ended.iter().filter(|(trial, _)| trial.model == index) {
            let version = versions.iter().find(|(version, _)| *version == trial.version);
            let (Some(ask), Some((version, tools))) = (asks.get(trial.ask), version) else { continue };
            match reply {
                Ok(reply) => {
                    let verdict = verdict_of(ask, reply, tools);
                    judged
                        .entry((trial.ask, *version == Version::Baseline))
                        .or_default()
                        .add(trial.run, reply, verdict);
                    if *version == Version::Current {
                        engine.add(reply);
                    }
                    tokens.add(reply);
                    elapsed += reply.elapsed;
                    replied += 1;
                }
                Err(failure) => *failures.entry(failure.detail.clone()).or_default() += 1,
            }
        }
        let mut results = Vec::new();
        let mut pairs = Vec::new();
        for (at, ask) in asks.iter().enumerate() {
            let baseline = judged.remove(&(at, true));
            let Some(current) = judged.remove(&(at, false)) else { continue };
            pairs.extend(baseline.as_ref().map(|baseline| pair(baseline, &current)));
            results.push(AskResult::of(ask, current, baseline.map(|baseline| baseline.tally), sources));
        }
        let confusions = confusions(results.iter().flat_map(|result| result.confused.iter().cloned()));
        let tools = versions.iter().find(|(version, _)| *version == Version::Current).map(|(_, tools)| tools);
        let tallies: Vec<Tally> = results.iter().map(|result| result.tally).collect();
        Self {
            model,
            passed: pass_rate(&tallies),
            scores: results.iter().map(|result| result.scores).fold(Scores::default(), Scores::sum),
            pass_hat_k: pass_hat_k(&tallies, runs),
            confused: definitions(confusions.first(), tools),
            confusions,
            engine,
            tokens,
            mean_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX) / replied.max(1),
            failures,
            asks: results,
            comparison: compare(&pairs),
        }
    }
}

/// Returns the tools of a wrong choice, if a model called another tool than the expected one.
fn definitions(confusion: Option<&Confusion>, tools: Option<&ToolSet>) -> Vec<Definition> {
    let Some(Choice { expected: Some(expected), called: Some(called) }) = confusion.map(|row| &row.choice)
    else {
        return Vec::new();
    };
    let definition = |name: &String| {
        let entry = tools?.get(name)?;
        let description = entry.definition.pointer("/function/description").and_then(Value::as_str);
        Some(Definition { tool: name.clone(), description: description.unwrap_or_default().to_owned() })
    };
    [expected, called].into_iter().filter_map(definition).collect()
}

/// Returns the runs that both versions have.
fn pair(baseline: &Judged, current: &Judged) -> PairedTally {
    let mut tally = PairedTally { before: 0, after: 0, runs: 0 };
    for (run, after) in &current.by_run {
        if let Some(before) = baseline.by_run.get(run) {
            tally.before += u32::from(*before);
            tally.after += u32::from(*after);
            tally.runs += 1;
        }
    }
    tally
}

/// Judges a reply. One that was cut off or repeats itself has no valid call.
fn verdict_of(ask: &Ask, reply: &ModelReply, tools: &ToolSet) -> Verdict {
    let verdict = judge(ask, &reply.calls, tools);
    match &reply.defect {
        None => verdict,
        Some(_) => Verdict { validity: false, ..verdict },
    }
}

impl AskResult {
    fn of(ask: &Ask, judged: Judged, baseline: Option<Tally>, sources: &Sources) -> Self {
        let tool = match &ask.expected {
            ExpectedReply::NoCall => None,
            ExpectedReply::NoCallOf(tool) => Some(tool.clone()),
            ExpectedReply::Calls { calls, .. } => calls.first().map(|call| call.tool.value.clone()),
        };
        let Judged { tally, scores, digests, problems, choices, by_run: _ } = judged;
        Self {
            at: sources.describe(ask.location()),
            tool,
            prompt: ask.prompt.value.clone(),
            tally,
            scores,
            distinct: distinct_replies(&digests),
            problems,
            confused: choices.into_iter().filter(|choice| !choice.is_right()).collect(),
            baseline,
        }
    }
}

impl EngineCounts {
    fn add(&mut self, reply: &ModelReply) {
        for call in &reply.calls {
            if call.repairs > 0 {
                *self.repaired.entry(call.tool.clone()).or_default() += 1;
            }
            if call.written_as_text {
                *self.written_as_text.entry(call.tool.clone()).or_default() += 1;
            }
        }
        for warning in &reply.warnings {
            *self.warnings.entry(warning.clone()).or_default() += 1;
        }
    }
}

impl Tokens {
    fn add(&mut self, reply: &ModelReply) {
        if let Some(usage) = reply.usage {
            self.prompt += usage.prompt_tokens;
            self.completion += usage.completion_tokens;
        }
    }
}
