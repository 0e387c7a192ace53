//! The thread that uses the analyzer. Requests come first; a check runs when nothing arrived for a while, or after a longer
//! time if something always arrives.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use deftool_ide::ProjectUses;
use deftool_script::{
    Analysed, Definitions, Description, Inlay, NameToken, OutlineItem, ScriptAnalyzer, ScriptUnit,
    Signatures, Suggestions, TypeProblem,
};

/// The time without requests and changes after which a check runs.
const QUIET: Duration = Duration::from_millis(200);

/// The time after which a check runs although requests and changes go on. Long, because requests wait for it.
const OVERDUE: Duration = Duration::from_secs(5);

/// Maximum number of jobs that wait.
const MAX_JOBS: usize = 64;

/// What to do with a unit.
pub(super) struct Job {
    pub(super) definitions: Definitions,
    pub(super) unit: ScriptUnit,
    pub(super) task: Task,
}

pub(super) enum Task {
    /// Check the unit, which is the file at this path, unless another version of the file comes first.
    Check(PathBuf),
    /// Answer a question about an offset.
    Ask { ticket: u64, question: Question, offset: usize },
}

pub(super) enum Question {
    Complete,
    Describe,
    Signatures,
    /// The uses of a name; those of a field also in these units.
    Uses(Vec<ScriptUnit>),
    Outline,
    Inlays,
    Tokens,
}

/// The answer to a [`Question`].
pub(super) enum Answer {
    Completions(Suggestions),
    Description(Option<Description>),
    Signatures(Option<Signatures>),
    Uses(Option<ProjectUses>),
    Outline(Vec<OutlineItem>),
    Inlays(Vec<Inlay>),
    Tokens(Vec<NameToken>),
}

/// A finished job.
pub(crate) struct Done(pub(super) Outcome);

pub(super) enum Outcome {
    Checked { path: PathBuf, unit: ScriptUnit, problems: Analysed<Vec<TypeProblem>> },
    Answered { ticket: u64, answer: Analysed<Answer> },
}

/// The thread. It ends when this is dropped.
pub(super) struct Worker(SyncSender<Job>);

impl Worker {
    /// Starts the thread. `on_done` is called in it after each job.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        analyzer: Box<dyn ScriptAnalyzer + Send>,
        on_done: impl Fn(Done) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, jobs) = sync_channel(MAX_JOBS);
        let thread = std::thread::Builder::new().name(String::from("deftool-analysis"));
        thread.spawn(move || run(analyzer, &jobs, &on_done))?;
        Ok(Self(sender))
    }

    /// Sends a job. Returns whether there was room for it.
    pub(super) fn send(&self, job: Job) -> bool {
        match self.0.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}

fn run(mut analyzer: Box<dyn ScriptAnalyzer + Send>, jobs: &Receiver<Job>, on_done: &impl Fn(Done)) {
    let mut checks = Checks::default();
    loop {
        let job = match checks.time_left(Instant::now()) {
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            // Also if a job has arrived.
            Some(left) if left.is_zero() => Err(RecvTimeoutError::Timeout),
            Some(left) => jobs.recv_timeout(left),
        };
        match job {
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let Some((path, (definitions, unit))) = checks.take() else { continue };
                let problems = analyzer.define(&definitions).and_then(|()| analyzer.check(&unit));
                on_done(Done(Outcome::Checked { path, unit, problems }));
                checks.note_end(Instant::now());
            }
            Ok(Job { definitions, unit, task: Task::Check(path) }) => {
                checks.add(path, (definitions, unit), Instant::now());
            }
            Ok(Job { definitions, unit, task: Task::Ask { ticket, question, offset } }) => {
                let answer = analyzer.define(&definitions);
                let answer = answer.and_then(|()| ask(&mut *analyzer, &unit, question, offset));
                on_done(Done(Outcome::Answered { ticket, answer }));
            }
        }
    }
}

/// The units that wait for a check, by path.
struct Checks<U> {
    waiting: BTreeMap<PathBuf, U>,
    /// When the first of them arrived, or the last check ended.
    since: Option<Instant>,
    /// The path of the last check.
    last: PathBuf,
}

impl<U> Default for Checks<U> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), since: None, last: PathBuf::new() }
    }
}

impl<U> Checks<U> {
    /// Adds a unit, in place of an older one of the same file.
    fn add(&mut self, path: PathBuf, unit: U, now: Instant) {
        if self.waiting.is_empty() {
            self.since = Some(now);
        }
        self.waiting.insert(path, unit);
    }

    /// Returns how long the thread waits for other jobs before the next check. `None`: no unit waits.
    fn time_left(&self, now: Instant) -> Option<Duration> {
        let since = self.since.filter(|_| !self.waiting.is_empty())?;
        Some(QUIET.min(OVERDUE.saturating_sub(now.saturating_duration_since(since))))
    }

    /// Removes the unit to check next. Files take turns, so that one that always changes does not delay the others.
    fn take(&mut self) -> Option<(PathBuf, U)> {
        let after = (Bound::Excluded(self.last.as_path()), Bound::Unbounded);
        let next = self.waiting.range::<Path, _>(after).next().or_else(|| self.waiting.first_key_value());
        let path = next.map(|(path, _)| path.clone())?;
        self.last.clone_from(&path);
        self.waiting.remove_entry(&path)
    }

    /// Notes the end of a check. The next one waits for requests again.
    fn note_end(&mut self, now: Instant) {
        self.since = Some(now);
    }
}

fn ask(
    analyzer: &mut dyn ScriptAnalyzer,
    unit: &ScriptUnit,
    question: Question,
    offset: usize,
) -> Analysed<Answer> {
    Ok(match question {
        Question::Complete => Answer::Completions(analyzer.complete(unit, offset)?),
        Question::Describe => Answer::Description(analyzer.describe(unit, offset)?),
        Question::Signatures => Answer::Signatures(analyzer.signatures(unit, offset)?),
        Question::Uses(others) => Answer::Uses(uses(analyzer, unit, offset, &others)?),
        Question::Outline => Answer::Outline(analyzer.outline(unit)?),
        Question::Inlays => Answer::Inlays(analyzer.inlays(unit)?),
        Question::Tokens => Answer::Tokens(analyzer.tokens(unit)?),
    })
}

fn uses(
    analyzer: &mut dyn ScriptAnalyzer,
    unit: &ScriptUnit,
    offset: usize,
    others: &[ScriptUnit],
) -> Analysed<Option<ProjectUses>> {
    let Some(uses) = analyzer.uses(unit, offset)? else { return Ok(None) };
    let may_use = |other: &&ScriptUnit| {
        other.text_of(&uses.definition.file).is_some() && other.text.contains(&uses.name)
    };
    let mut found = Vec::new();
    for other in others.iter().filter(|_| uses.is_member).filter(may_use) {
        found.push((other.file.clone(), analyzer.member_uses(other, &uses.definition)?));
    }
    Ok(Some(ProjectUses { uses, others: found }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client sends a change of each file every 100 ms and never pauses.
    #[test]
    fn files_that_always_change_are_checked_in_turn() {
        let (start, mut checks, mut checked) = (Instant::now(), Checks::default(), Vec::new());
        assert_eq!(checks.time_left(start), None);
        for tenth in 0..=150 {
            let now = start + Duration::from_millis(100 * tenth);
            if checks.time_left(now).is_some_and(|left| left < Duration::from_millis(100)) {
                let (path, unit) = checks.take().expect("a unit waits");
                checked.push(format!("{} {unit}", path.display()));
                checks.note_end(now);
            }
            checks.add(PathBuf::from("a"), tenth, now);
            checks.add(PathBuf::from("b"), tenth, now);
            assert!(checks.time_left(now).is_some_and(|left| left <= QUIET));
        }
        assert_eq!(checked, ["a 49", "b 99", "a 149"]);
        while checks.take().is_some() {}
        assert_eq!(checks.time_left(start), None);
    }
}
