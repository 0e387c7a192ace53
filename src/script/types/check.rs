//! Luau's type checker over scripts.
//!
//! In: the definitions of a project and its scripts with the types of their parameters. Out: what does not fit, by file
//! and line. The checker bounds depth and time itself, but not everywhere: it runs on threads of its own, with stacks
//! that its limits fit in, and one that does not come back in time is left behind and its script said to be unchecked.
//!
//! Source: luau-analysis 0.739 (Luau's analyser in Rust), the sources of November 2026.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use luau_analysis::diagnostics::TypeCheckLimits;
use luau_analysis::frontend::resolver::ModuleInfo;
use luau_analysis::{
    DefinitionEnvironment, FileResolver, Frontend, FrontendCancellationToken, FrontendOptions, ModuleName,
    NullConfigResolver, SourceCode, SourceCodeType,
};
use luau_common::BString;
use luau_config::Mode;
use luau_syntax::ast::{Expression, ExpressionKind};

use super::annotate::{Annotated, returned_function};
use super::trust::Known;
use crate::script::error::clean;
use crate::script::{Module, module_path};

/// How long one script may take; they take milliseconds.
pub(crate) const TYPE_LIMIT: Duration = Duration::from_secs(5);
/// The checker goes some hundred calls deep.
const STACK: usize = 256 << 20;
/// Longer sources are not checked: what the checker needs grows faster than they do.
const MAX_SOURCE: usize = 64 << 10;
/// How many limits may pass without any thread at work: the definitions are read before the first script.
const PATIENCE: usize = 6;
/// Most findings of one script.
const MAX_OF_SCRIPT: usize = 20;
/// Longest message, in characters.
const MAX_MESSAGE: usize = 400;

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

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeCheck {
    /// It was checked.
    Checked(Vec<TypeProblem>),
    /// It was not, and why.
    Skipped(String),
}

/// Checks `jobs` against `definitions`, on all cores; the results are in the order of the jobs. `limit`: how long one
/// may take, five seconds as a rule.
pub fn check_types(definitions: &str, jobs: &[TypeJob], limit: Duration) -> Vec<TypeCheck> {
    let (sender, events) = mpsc::channel();
    let crew = Crew {
        definitions: Arc::from(definitions),
        queue: Arc::new(Mutex::new(jobs.iter().cloned().enumerate().collect())),
        sender,
        limit,
    };
    let cores = thread::available_parallelism().map_or(1, usize::from).min(jobs.len().div_ceil(8));
    let mut alive = (0..cores).filter(|_| crew.start()).count();
    let mut done: Vec<Option<TypeCheck>> = vec![None; jobs.len()];
    let mut running: HashMap<usize, (Instant, Token)> = HashMap::new();
    let mut idle = 0;
    while done.iter().any(Option::is_none) && (alive > 0 || !running.is_empty()) {
        let oldest = running.values().map(|(since, _)| *since).min();
        let wait = oldest.map_or(limit, |since| (since + limit).saturating_duration_since(Instant::now()));
        match events.recv_timeout(wait) {
            Ok(Event::Began(index, token)) => drop(running.insert(index, (Instant::now(), token))),
            Ok(Event::Ended(index, result)) => {
                // One that was given up may come back after all.
                if running.remove(&index).is_some()
                    && let Some(slot) = done.get_mut(index)
                {
                    *slot = Some(result);
                }
            }
            Ok(Event::Idle) => alive = alive.saturating_sub(1),
            Err(RecvTimeoutError::Timeout) if running.is_empty() => {
                idle += 1;
                if idle >= PATIENCE {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let late = running.iter().filter(|(_, (since, _))| since.elapsed() >= limit);
                let late: Vec<usize> = late.map(|(index, _)| *index).collect();
                for index in late {
                    if let Some((_, token)) = running.remove(&index) {
                        token.cancel();
                    }
                    if let Some(slot) = done.get_mut(index) {
                        *slot = Some(TypeCheck::Skipped(too_long(limit)));
                    }
                    // The thread is lost; another takes its place.
                    if !crew.start() {
                        alive = alive.saturating_sub(1);
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let lost = || TypeCheck::Skipped(String::from("the checker does not start"));
    done.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}

fn too_long(limit: Duration) -> String {
    format!("the checker takes longer than {limit:?}")
}

/// Asks a thread to stop, which it does at the next place where the checker looks.
type Token = Arc<FrontendCancellationToken>;

enum Event {
    Began(usize, Token),
    Ended(usize, TypeCheck),
    Idle,
}

/// What the threads share.
struct Crew {
    definitions: Arc<str>,
    queue: Arc<Mutex<VecDeque<(usize, TypeJob)>>>,
    sender: mpsc::Sender<Event>,
    limit: Duration,
}

impl Crew {
    /// Whether there is one thread more.
    fn start(&self) -> bool {
        let (queue, sender) = (Arc::clone(&self.queue), self.sender.clone());
        let token = Token::default();
        let mut worker = Worker {
            definitions: Arc::clone(&self.definitions),
            limit: self.limit,
            token: Arc::clone(&token),
            checker: Err(String::new()),
        };
        let work = move || {
            worker.prepare();
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some((index, job)) = next else { break };
                let _ = sender.send(Event::Began(index, Arc::clone(&token)));
                let result = worker.check(&job);
                // Nobody waits for this thread any more.
                if token.requested() || sender.send(Event::Ended(index, result)).is_err() {
                    return;
                }
            }
            let _ = sender.send(Event::Idle);
        };
        thread::Builder::new().name(String::from("types")).stack_size(STACK).spawn(work).is_ok()
    }
}

/// A checker for one job after the other.
struct Worker {
    definitions: Arc<str>,
    limit: Duration,
    token: Token,
    checker: Result<Checker, String>,
}

impl Worker {
    /// Reads the definitions, which takes longer than most scripts.
    fn prepare(&mut self) {
        let made = catch_unwind(AssertUnwindSafe(|| new_checker(&self.definitions, self.limit, &self.token)));
        self.checker = made.unwrap_or_else(|_| Err(String::from("the checker failed on the definitions")));
    }

    fn check(&mut self, job: &TypeJob) -> TypeCheck {
        catch_unwind(AssertUnwindSafe(|| self.try_check(job))).unwrap_or_else(|_| {
            self.prepare();
            TypeCheck::Skipped(String::from("the checker failed on it"))
        })
    }

    fn try_check(&mut self, job: &TypeJob) -> TypeCheck {
        if job.source.len() > MAX_SOURCE {
            return TypeCheck::Skipped(format!("it is longer than {} KiB", MAX_SOURCE / 1024));
        }
        let Ok(text) = std::str::from_utf8(&job.source) else {
            return TypeCheck::Skipped(String::from("it is not UTF-8"));
        };
        let checker = match &mut self.checker {
            Ok(checker) => checker,
            Err(error) => return TypeCheck::Skipped(error.clone()),
        };
        check(checker, job, text, self.limit)
    }
}

type Checker = Frontend<Files, NullConfigResolver>;

/// The script that is checked, and what it requires.
#[derive(Default)]
struct Files {
    script: (String, String),
    modules: Arc<[Arc<Module>]>,
}

impl FileResolver for Files {
    fn read_source(&mut self, name: &ModuleName) -> Option<SourceCode> {
        let name = name.to_string();
        let source = if name == self.script.0 {
            BString::from(self.script.1.as_bytes())
        } else {
            BString::from(&*self.modules.iter().find(|module| module.file == name)?.source)
        };
        Some(SourceCode { source, kind: SourceCodeType::Module })
    }

    fn resolve_module(
        &mut self,
        context: Option<&ModuleInfo>,
        wanted: Expression<'_>,
        _: &TypeCheckLimits,
    ) -> Option<ModuleInfo> {
        let ExpressionKind::String { value, .. } = wanted.kind() else { return None };
        let wanted = std::str::from_utf8(value.as_bytes()).ok()?;
        let path = module_path(&context?.name.to_string(), wanted).ok()?;
        let module = self.modules.iter().find(|module| module.path() == path)?;
        Some(ModuleInfo { name: BString::from(module.file.as_bytes()), optional: false })
    }
}

fn new_checker(definitions: &str, limit: Duration, token: &Token) -> Result<Checker, String> {
    let mut config = NullConfigResolver::default();
    config.default_config.mode = Mode::Strict;
    let options = FrontendOptions {
        retain_full_type_graphs: true,
        module_time_limit_sec: Some(limit.as_secs_f64() / 2.0),
        cancellation_token: Some(Arc::clone(token)),
        ..FrontendOptions::default()
    };
    let mut checker = Frontend::new(Files::default(), config, options);
    let failed = |error| format!("the checker cannot start: {error}");
    checker.register_builtin_globals(DefinitionEnvironment::Globals).map_err(failed)?;
    let scope = checker.global_scope(DefinitionEnvironment::Globals);
    let loaded = checker.load_definition_file(scope, definitions, "@deftool", false).map_err(failed)?;
    if loaded.success {
        return Ok(checker);
    }
    let syntax = loaded.source_module.parse_errors.first().map(|error| format!("{error:?}"));
    let model = loaded.semantic_model(&checker);
    let types = model.as_ref().and_then(|model| {
        let view = model.module();
        view.errors().first().map(|error| model.error_message(error).to_string())
    });
    let why = syntax.or(types).unwrap_or_default();
    Err(format!("the checker does not take the definitions: {}", clean(&why, MAX_MESSAGE)))
}

fn check(checker: &mut Checker, job: &TypeJob, text: &str, limit: Duration) -> TypeCheck {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mode = mode_of(text);
    let annotated = match mode {
        Some(Mode::NoCheck) => return TypeCheck::Checked(Vec::new()),
        Some(Mode::Strict | Mode::Nonstrict) | None => Annotated::of(text, &job.parameters),
    };
    checker.clear();
    let files = checker.file_resolver_mut();
    files.script = (job.file.clone(), annotated.text.clone());
    files.modules = Arc::clone(&job.modules);
    let name = BString::from(job.file.as_bytes());
    let result = match checker.check(&name, None) {
        Ok(result) => result,
        Err(error) => return TypeCheck::Skipped(clean(&error.to_string(), MAX_MESSAGE)),
    };
    if !result.timeout_hits.is_empty() {
        return TypeCheck::Skipped(too_long(limit));
    }
    let mut problems = Vec::new();
    for file in std::iter::once(&job.file).chain(job.modules.iter().map(|module| &module.file)) {
        let is_script = *file == job.file;
        let Some(model) = checker.semantic_model(&BString::from(file.as_bytes())) else { continue };
        let view = model.module();
        let Some(root) = view.source().map(|source| source.root()) else { continue };
        // A module's own wish counts for the module.
        let module = job.modules.iter().find(|module| module.file == *file);
        let wish = module.map_or(mode, |module| mode_of(&String::from_utf8_lossy(&module.source)));
        let known = Known::of(&model, root, returned_function(root).filter(|_| is_script));
        let column = |line, column| if is_script { annotated.column(line, column) } else { column };
        let mut add = |at: luau_syntax::location::Location, message: &str| {
            let start = column(at.begin.line, at.begin.column) as usize;
            let end = if at.end.line == at.begin.line {
                column(at.end.line, at.end.column) as usize
            } else {
                usize::MAX
            };
            let problem = TypeProblem {
                file: file.clone(),
                line: at.begin.line as usize + 1,
                columns: (start, end),
                message: tidy(message),
            };
            if !problems.contains(&problem) && problems.len() < MAX_OF_SCRIPT {
                problems.push(problem);
            }
        };
        for error in result.errors.iter().filter(|error| error.module_name == *file.as_str()) {
            let message = model.error_message(error).to_string();
            if wish.is_some() || known.holds(error, &message) {
                add(error.location, &message);
            }
        }
        for (at, message) in &known.comparisons {
            add(*at, message);
        }
    }
    problems.sort_by(|one, other| {
        (&one.file, one.line, one.columns).cmp(&(&other.file, other.line, other.columns))
    });
    TypeCheck::Checked(problems)
}

/// What a script asks for in the comments at its top: `--!strict`.
fn mode_of(text: &str) -> Option<Mode> {
    let mut comments =
        text.lines().map(str::trim).take_while(|line| line.is_empty() || line.starts_with("--"));
    comments.find_map(|line| match line.strip_prefix("--!")?.trim() {
        "strict" => Some(Mode::Strict),
        "nonstrict" => Some(Mode::Nonstrict),
        "nocheck" => Some(Mode::NoCheck),
        _ => None,
    })
}

/// One clause, with names between backticks, without the reasons below it.
fn tidy(message: &str) -> String {
    let first = message.split("; \n").next().unwrap_or_default();
    let first = first.split("; there is no corresponding").next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    let mut text = words.join(" ").replace('\'', "`");
    // Names are not changed: they stand between quotes.
    if let Some(letter) = text.get(..1).map(str::to_lowercase) {
        text.replace_range(..1, &letter);
    }
    clean(&text, MAX_MESSAGE)
}
