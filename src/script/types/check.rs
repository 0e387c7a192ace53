//! Luau's type checker over scripts, in a program of its own.
//!
//! The checker is `deftool-types`, a second binary of this package behind the feature `types`: it links a second Luau,
//! goes hundreds of calls deep, and would run what a script says at the level of types. So it runs beside deftool, under
//! the limits of a script host, and is killed when it takes too long over a script. In: the definitions of a project and
//! its scripts with the types of their parameters. Out: what does not fit, by file and line. What the checker answers is
//! believed about the script that it was asked about only.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::script::DEFAULT_MEMORY;
use crate::script::isolate::{Octets, confine, protocol};
use crate::script::module::{Module, module_path};

/// How long one script may take; they take milliseconds.
pub(crate) const TYPE_LIMIT: Duration = Duration::from_secs(5);
/// How long the definitions may take, which are read before the first script.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Longer sources are not checked: what the checker needs grows faster than they do.
const MAX_SOURCE: usize = 64 << 10;
/// Most findings of one script.
const MAX_OF_SCRIPT: usize = 20;
/// Longest message, in characters.
const MAX_MESSAGE: usize = 400;
/// What a checker says first: both sides are of one version.
const GREETING: &str = concat!("deftool type checker ", env!("CARGO_PKG_VERSION"));

/// A script to check.
#[derive(Debug, Clone)]
pub struct TypeJob {
    /// The file as findings name it.
    pub file: String,
    /// The source.
    pub source: Arc<[u8]>,
    /// What it requires.
    pub modules: Arc<[Arc<Module>]>,
    /// The type of each parameter of the function that it returns; `None` where none is known.
    pub parameters: Vec<Option<String>>,
}

impl TypeJob {
    /// The module that the file `file` of this job means by `wanted`.
    pub fn required(&self, file: &str, wanted: &str) -> Option<&Arc<Module>> {
        let path = module_path(file, wanted).ok()?;
        self.modules.iter().find(|module| module.path() == path)
    }
}

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeProblem {
    /// The file: the script's or that of a module.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The first byte in the line and the one behind the last, from 0; the second may be in a later line.
    pub columns: (usize, usize),
    /// One clause.
    pub message: String,
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TypeCheck {
    /// It was checked.
    Checked(Vec<TypeProblem>),
    /// It was not, and why.
    Skipped(String),
}

/// What a checker is asked.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Read these definitions. Answered by a `Result`.
    Define(String),
    /// Check a script. Answered by a [`TypeCheck`].
    Check(WireJob),
}

#[derive(Serialize, Deserialize)]
struct WireJob {
    file: String,
    source: Octets,
    modules: Vec<(String, Octets)>,
    parameters: Vec<Option<String>>,
}

impl WireJob {
    fn of(job: &TypeJob) -> Self {
        let modules = job.modules.iter().map(|module| (module.file.clone(), Octets::of(&module.source)));
        Self {
            file: job.file.clone(),
            source: Octets::of(&job.source),
            modules: modules.collect(),
            parameters: job.parameters.clone(),
        }
    }

    fn into_job(self) -> TypeJob {
        let modules = self.modules.into_iter();
        let modules = modules.map(|(file, source)| Arc::new(Module::new(file, source.bytes())));
        TypeJob {
            file: self.file,
            source: Arc::from(self.source.bytes()),
            modules: modules.collect(),
            parameters: self.parameters,
        }
    }
}

/// Checks `jobs` against `definitions` with the checker `program`, on all processors; the results are in the order of the
/// jobs. `limit`: how long one may take, five seconds as a rule.
#[cfg(unix)]
pub fn check_types(program: &Path, definitions: &str, jobs: &[TypeJob], limit: Duration) -> Vec<TypeCheck> {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![None; jobs.len()]);
    let checkers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len().div_ceil(8));
    std::thread::scope(|scope| {
        for _ in 0..checkers {
            scope.spawn(|| {
                let mut checker = None;
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    let result = check(&mut checker, program, definitions, job, limit);
                    if let Some(slot) = crate::script::control::lock(&done).get_mut(index) {
                        *slot = Some(result);
                    }
                }
            });
        }
    });
    let lost = || TypeCheck::Skipped(String::from("the checker does not start"));
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}

/// Nothing is checked on this system as yet.
#[cfg(not(unix))]
pub fn check_types(_: &Path, _: &str, jobs: &[TypeJob], _: Duration) -> Vec<TypeCheck> {
    vec![TypeCheck::Skipped(String::from("types are not checked on this system as yet")); jobs.len()]
}

/// Checks one job with `checker`, or a new one; one that fails is not used again.
#[cfg(unix)]
fn check(
    checker: &mut Option<crate::script::isolate::Peer>,
    program: &Path,
    definitions: &str,
    job: &TypeJob,
    limit: Duration,
) -> TypeCheck {
    if job.source.len() > MAX_SOURCE {
        return TypeCheck::Skipped(format!("it is longer than {} KiB", MAX_SOURCE / 1024));
    }
    let started = match checker.take() {
        Some(checker) => Ok(checker),
        None => start(program, definitions),
    };
    let mut started = match started {
        Ok(started) => started,
        Err(error) => return TypeCheck::Skipped(clean(&error)),
    };
    match started.ask::<TypeCheck>(&Order::Check(WireJob::of(job)), limit) {
        Ok(result) => {
            *checker = Some(started);
            cleaned(result, job)
        }
        Err(None) => TypeCheck::Skipped(format!("the checker takes longer than {limit:?}")),
        Err(Some(error)) => TypeCheck::Skipped(clean(&format!("the checker failed on it: {error}"))),
    }
}

#[cfg(unix)]
fn start(program: &Path, definitions: &str) -> Result<crate::script::isolate::Peer, String> {
    use crate::script::isolate::Peer;

    let failed = |error: Option<io::Error>| {
        let why = error.map_or_else(|| String::from("it takes too long"), |error| error.to_string());
        format!("the checker {} does not start: {why}", program.display())
    };
    let mut checker = Peer::start(program, [""; 0]).map_err(|error| failed(Some(error)))?;
    let greeting: String = checker.hear(START_LIMIT).map_err(failed)?;
    if greeting != GREETING {
        return Err(format!("the checker {} is of another version of deftool", program.display()));
    }
    let defined: Result<(), String> =
        checker.ask(&Order::Define(definitions.to_owned()), START_LIMIT).map_err(failed)?;
    defined.map(|()| checker)
}

#[cfg(unix)]
fn clean(text: &str) -> String {
    crate::script::error::clean(text, MAX_MESSAGE)
}

/// `result` as a checker of good will would have sent it.
#[cfg(unix)]
fn cleaned(result: TypeCheck, job: &TypeJob) -> TypeCheck {
    let problems = match result {
        TypeCheck::Skipped(why) => return TypeCheck::Skipped(clean(&why)),
        TypeCheck::Checked(problems) => problems.into_iter(),
    };
    let is_of_job = |problem: &TypeProblem| {
        problem.file == job.file || job.modules.iter().any(|module| module.file == problem.file)
    };
    let problems = problems.filter(is_of_job).take(MAX_OF_SCRIPT);
    let problems = problems.map(|problem| TypeProblem { message: clean(&problem.message), ..problem });
    TypeCheck::Checked(problems.collect())
}

/// Makes this process a type checker, which serves the deftool that started it until that goes away. `define` makes a
/// checker of definitions, `check` has it check one script.
///
/// # Errors
/// When what comes over stdin makes no sense, or nobody reads stdout.
pub fn serve_type_checks<C>(
    define: impl Fn(&str) -> Result<C, String>,
    check: impl Fn(&mut C, &TypeJob) -> TypeCheck,
) -> io::Result<()> {
    confine::begin_session();
    confine::limit_memory(Some(DEFAULT_MEMORY));
    let (mut input, output) = (io::stdin().lock(), io::stdout());
    say(&output, &GREETING)?;
    let mut checker = None;
    while let Some(body) = protocol::read_frame(&mut input)? {
        let (order, _) = protocol::head::<Order>(&body)?;
        match order {
            Order::Define(definitions) => {
                let defined = define(&definitions);
                let answer = defined.as_ref().map(|_| ()).map_err(Clone::clone);
                checker = defined.ok();
                say(&output, &answer)?;
            }
            Order::Check(job) => {
                let result = match &mut checker {
                    Some(checker) => check(checker, &job.into_job()),
                    None => TypeCheck::Skipped(String::from("the checker has no definitions")),
                };
                say(&output, &result)?;
            }
        }
    }
    Ok(())
}

fn say(output: &io::Stdout, answer: &impl Serialize) -> io::Result<()> {
    let mut frame = Vec::new();
    protocol::write_frame(&mut frame, answer, protocol::ALONE)?;
    let mut output = output.lock();
    io::Write::write_all(&mut output, &frame)?;
    io::Write::flush(&mut output)
}
