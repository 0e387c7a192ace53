//! The thread that uses the analyzer. Requests come first; a check runs when nothing arrived for a while.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use deftool_ide::ProjectUses;
use deftool_script::{
    Analysed, Definitions, Description, Inlay, NameToken, OutlineItem, ScriptAnalyzer, ScriptUnit,
    Signatures, Suggestions, TypeProblem,
};

/// The time without requests and changes after which a check runs.
const QUIET: Duration = Duration::from_millis(200);

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
    let mut checks: HashMap<PathBuf, (Definitions, ScriptUnit)> = HashMap::new();
    loop {
        let job = match next_check(&checks) {
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => jobs.recv_timeout(QUIET),
        };
        match job {
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let Some(path) = next_check(&checks).map(Path::to_owned) else { continue };
                let Some((definitions, unit)) = checks.remove(&path) else { continue };
                let problems = analyzer.define(&definitions).and_then(|()| analyzer.check(&unit));
                on_done(Done(Outcome::Checked { path, unit, problems }));
            }
            Ok(Job { definitions, unit, task: Task::Check(path) }) => {
                checks.insert(path, (definitions, unit));
            }
            Ok(Job { definitions, unit, task: Task::Ask { ticket, question, offset } }) => {
                let answer = analyzer.define(&definitions);
                let answer = answer.and_then(|()| ask(&mut *analyzer, &unit, question, offset));
                on_done(Done(Outcome::Answered { ticket, answer }));
            }
        }
    }
}

fn next_check(checks: &HashMap<PathBuf, (Definitions, ScriptUnit)>) -> Option<&Path> {
    checks.keys().min().map(PathBuf::as_path)
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
