//! Type checking of scripts with Luau's type checker, in a separate program.
//!
//! The checker is `deftool-types`, a second binary of this package, behind the feature `types`. It links a second Luau,
//! uses deep recursion and executes the type functions of scripts. So it runs in its own process, with the limits of a
//! script host, and is killed when a script takes too long. Input: the definitions of a project and its scripts, with
//! the types of their parameters. Output: type errors by file and line. A result of the checker is used only for the
//! script that was checked.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(unix)]
use deftool_process::Peer;
use deftool_process::confine;
use deftool_process::frame::{NO_PAYLOAD, Octets, head, read_frame, write_frame};
use serde::{Deserialize, Serialize};

use crate::limits::DEFAULT_MEMORY;
use crate::script::module::{Module, module_path};

/// Time limit per script. Most take milliseconds.
pub const TYPE_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for the start and for reading the definitions.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Maximum length of a source, in bytes: the time and memory that the checker needs grow faster than linearly.
const MAX_SOURCE: usize = 64 << 10;
/// Maximum number of findings per script.
const MAX_FINDINGS: usize = 20;
/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 400;
/// The first message of a checker, which shows that both sides have the same version.
const GREETING: &str = concat!("deftool type checker ", env!("CARGO_PKG_VERSION"));

/// A script to check.
#[derive(Debug, Clone)]
pub struct TypeJob {
    /// The file name in findings.
    pub file: String,
    /// The source.
    pub source: Arc<[u8]>,
    /// The modules that it requires.
    pub modules: Arc<[Arc<Module>]>,
    /// The type of each parameter of the function that it returns. `None`: unknown.
    pub parameters: Vec<Option<String>>,
}

impl TypeJob {
    /// Returns the module that `file`, the script or one of its modules, requires as `path`.
    pub fn required(&self, file: &str, path: &str) -> Option<&Arc<Module>> {
        let path = module_path(file, path).ok()?;
        self.modules.iter().find(|module| module.path() == path)
    }
}

/// A type error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeProblem {
    /// The file of the script or of a module.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The columns, in bytes from 0: the start, and the exclusive end, which may be in a later line.
    pub columns: (usize, usize),
    /// The message, one clause.
    pub message: String,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TypeCheck {
    /// The type errors.
    Checked(Vec<TypeProblem>),
    /// The script was not checked. Holds the reason.
    Skipped(String),
}

/// A message to a checker.
#[derive(Serialize, Deserialize)]
enum Request {
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

/// Checks `jobs` against `definitions` with the checker `program`, on all processors. The results are in the order of
/// the jobs. `limit`: the time limit per job, usually `TYPE_LIMIT`.
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
                    if let Some(slot) = deftool_process::lock(&done).get_mut(index) {
                        *slot = Some(result);
                    }
                }
            });
        }
    });
    let lost = || TypeCheck::Skipped(String::from("the type checker was not started"));
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}

/// Not supported on this system.
#[cfg(not(unix))]
pub fn check_types(_: &Path, _: &str, jobs: &[TypeJob], _: Duration) -> Vec<TypeCheck> {
    vec![TypeCheck::Skipped(String::from("type checking is not supported on this system")); jobs.len()]
}

/// Checks one job with `checker`, or with a new checker. A checker that fails is not used again.
#[cfg(unix)]
fn check(
    checker: &mut Option<Peer>,
    program: &Path,
    definitions: &str,
    job: &TypeJob,
    limit: Duration,
) -> TypeCheck {
    if job.source.len() > MAX_SOURCE {
        return TypeCheck::Skipped(format!("the script is longer than {} KiB", MAX_SOURCE / 1024));
    }
    let started = match checker.take() {
        Some(checker) => Ok(checker),
        None => start(program, definitions),
    };
    let mut started = match started {
        Ok(started) => started,
        Err(error) => return TypeCheck::Skipped(clean(&error)),
    };
    match started.ask::<TypeCheck>(&Request::Check(WireJob::of(job)), limit) {
        Ok(result) => {
            *checker = Some(started);
            cleaned(result, job)
        }
        Err(None) => TypeCheck::Skipped(format!("the type checker took longer than {limit:?}")),
        Err(Some(error)) => TypeCheck::Skipped(clean(&format!("the type checker failed: {error}"))),
    }
}

#[cfg(unix)]
fn start(program: &Path, definitions: &str) -> Result<Peer, String> {
    let failed = |error: Option<io::Error>| {
        let reason = error.map_or_else(|| String::from("timed out"), |error| error.to_string());
        format!("cannot start the type checker `{}`: {reason}", program.display())
    };
    let mut checker = Peer::start(program, [""; 0]).map_err(|error| failed(Some(error)))?;
    let greeting: String = checker.receive(START_LIMIT).map_err(failed)?;
    if greeting != GREETING {
        return Err(format!("the type checker `{}` has a different version than deftool", program.display()));
    }
    let defined: Result<(), String> =
        checker.ask(&Request::Define(definitions.to_owned()), START_LIMIT).map_err(failed)?;
    defined.map(|()| checker)
}

#[cfg(unix)]
fn clean(text: &str) -> String {
    crate::error::clean(text, MAX_MESSAGE)
}

/// Removes invalid findings from `result` and cleans its texts: the checker is not trusted.
#[cfg(unix)]
fn cleaned(result: TypeCheck, job: &TypeJob) -> TypeCheck {
    let problems = match result {
        TypeCheck::Skipped(reason) => return TypeCheck::Skipped(clean(&reason)),
        TypeCheck::Checked(problems) => problems.into_iter(),
    };
    let is_of_job = |problem: &TypeProblem| {
        problem.file == job.file || job.modules.iter().any(|module| module.file == problem.file)
    };
    let problems = problems.filter(is_of_job).take(MAX_FINDINGS);
    let problems = problems.map(|problem| TypeProblem { message: clean(&problem.message), ..problem });
    TypeCheck::Checked(problems.collect())
}

/// Makes this process a type checker, which serves the deftool process that started it until stdin closes. `define`
/// creates a checker from definitions, `check` checks one script.
///
/// # Errors
/// When a message on stdin is invalid, or stdout is closed.
pub fn serve_type_checks<C>(
    define: impl Fn(&str) -> Result<C, String>,
    check: impl Fn(&mut C, &TypeJob) -> TypeCheck,
) -> io::Result<()> {
    confine::begin_session();
    confine::limit_memory(Some(DEFAULT_MEMORY));
    let (mut input, output) = (io::stdin().lock(), io::stdout());
    send(&output, &GREETING)?;
    let mut checker = None;
    while let Some(body) = read_frame(&mut input)? {
        let (request, _) = head::<Request>(&body)?;
        match request {
            Request::Define(definitions) => {
                let defined = define(&definitions);
                let answer = defined.as_ref().map(|_| ()).map_err(Clone::clone);
                checker = defined.ok();
                send(&output, &answer)?;
            }
            Request::Check(job) => {
                let result = match &mut checker {
                    Some(checker) => check(checker, &job.into_job()),
                    None => TypeCheck::Skipped(String::from("the type checker has no definitions")),
                };
                send(&output, &result)?;
            }
        }
    }
    Ok(())
}

fn send(output: &io::Stdout, answer: &impl Serialize) -> io::Result<()> {
    let mut frame = Vec::new();
    write_frame(&mut frame, answer, NO_PAYLOAD)?;
    let mut output = output.lock();
    io::Write::write_all(&mut output, &frame)?;
    io::Write::flush(&mut output)
}
