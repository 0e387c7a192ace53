//! Analysis of scripts: requests of the editor, and type findings in the background.
//!
//! A request about a script is sent to a thread with the analyzer, and its response follows when the thread is done.
//! Meanwhile the server handles other messages. If there is no analyzer, or if it fails, the request is answered from the
//! project alone, as for a spec. Checks of open scripts run when nothing else is to do.

mod answers;
mod worker;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use deftool_ide::{Language, Project, ScriptTypes, script_unit};
use deftool_jsonrpc::{Error, Id};
use deftool_project::{display_name, type_findings};
use deftool_script::{Analysed, Definitions, ScriptAnalyzer, ScriptUnit, TypeProblem};
use gen_lsp_types as lsp;
use serde_json::Value;

use crate::convert::{parse, path_of};
use crate::state::State;
use answers::Asked;
use worker::{Job, Outcome, Question, Task, Worker};

pub(crate) use worker::Done;

/// Maximum number of different errors of the analyzer that are shown.
const MAX_ERRORS: usize = 5;

/// What became of a request.
pub(crate) enum Taken {
    /// It is not about a script, or must be answered from the project.
    No,
    /// The response follows.
    Waiting,
    /// The result.
    Result(Value),
}

/// The requests that wait for the analyzer, and the checks.
pub(crate) struct Analysis {
    /// The thread with the analyzer, or what is missing.
    worker: Result<Worker, String>,
    /// The requests that wait, by ticket.
    waiting: HashMap<u64, Asked>,
    last_ticket: u64,
    /// The types of each project, by its folder.
    types: HashMap<PathBuf, ScriptTypes>,
    /// The units that were last sent for a check.
    sent: HashMap<PathBuf, (Definitions, ScriptUnit)>,
    /// Whether anything may have changed since the last checks were sent.
    is_stale: bool,
    /// The errors and hints that the user has seen.
    shown: HashSet<String>,
}

impl Analysis {
    /// Starts the thread with the analyzer, if there is one. `analyzer`: it, or what is missing. `on_done` is called after
    /// each job; pass its argument to [`finish`](Self::finish).
    pub(crate) fn new(
        analyzer: Result<Box<dyn ScriptAnalyzer + Send>, String>,
        on_done: impl Fn(Done) + Send + 'static,
    ) -> Self {
        let worker = analyzer.and_then(|analyzer| {
            Worker::start(analyzer, on_done).map_err(|error| format!("cannot start a thread: {error}"))
        });
        Self {
            worker,
            waiting: HashMap::new(),
            last_ticket: 0,
            types: HashMap::new(),
            sent: HashMap::new(),
            is_stale: false,
            shown: HashSet::new(),
        }
    }

    /// Notes that documents or files may have changed.
    pub(crate) fn note_change(&mut self) {
        self.is_stale = true;
    }

    /// Takes a request about a script.
    pub(crate) fn take(&mut self, state: &mut State, id: &Id, method: &str, params: &Value) -> Taken {
        self.try_taking(state, id, method, params).unwrap_or(Taken::No)
    }

    /// Returns `None` for a request that the project answers, also if its parameters are invalid.
    fn try_taking(&mut self, state: &mut State, id: &Id, method: &str, params: &Value) -> Option<Taken> {
        if !METHODS.contains(&method) {
            return None;
        }
        let document: lsp::TextDocumentIdentifier = parse(params["textDocument"].clone()).ok()?;
        let path = path_of(&document.uri).filter(|path| Language::of(path) == Some(Language::Script))?;
        let State { workspace, settings, .. } = state;
        let project = workspace.fresh(&path)?;
        let text = project.text(&path)?;
        let offset = match params.get("position") {
            Some(position) => settings.encoding.offset(&text, parse(position.clone()).ok()?),
            None => 0,
        };
        if method == "textDocument/completion" {
            let known = answers::completions_of_project(project, &path, offset, params, settings);
            if let Some(known) = known {
                return Some(Taken::Result(known));
            }
        }
        let worker = self.worker.as_ref().ok()?;
        let types = types_of(&mut self.types, project);
        let unit = script_unit(project, types, &path)?;
        let question = question(method, project, types, &path, offset)?;
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        let task = Task::Ask { ticket, question, offset };
        let job = Job { definitions: types.definitions().clone(), unit: unit.clone(), task };
        if !worker.send(job) {
            return None;
        }
        let (id, method, params) = (id.clone(), method.to_owned(), params.clone());
        self.waiting.insert(ticket, Asked { id, method, params, path, unit, offset });
        Some(Taken::Waiting)
    }

    /// Handles a finished job. Returns the response to a request.
    pub(crate) fn finish(&mut self, state: &mut State, done: Done) -> Option<(Id, Result<Value, Error>)> {
        match done.0 {
            Outcome::Checked { path, unit, problems } => {
                self.set_findings(state, &path, unit, problems);
                None
            }
            Outcome::Answered { ticket, answer } => {
                let asked = self.waiting.remove(&ticket)?;
                match answer {
                    Ok(answer) => Some((asked.id.clone(), asked.result(state, answer))),
                    Err(why) => {
                        self.show(state, &why);
                        Some((asked.id, state.answer(&asked.method, asked.params)))
                    }
                }
            }
        }
    }

    /// Sends open scripts that changed to be checked.
    pub(crate) fn check_changed(&mut self, state: &mut State) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let State { workspace, settings, type_findings } = state;
        let scripts = settings.documents.paths().filter(|path| Language::of(path) == Some(Language::Script));
        let scripts: HashSet<PathBuf> = scripts.cloned().collect();
        self.sent.retain(|path, _| scripts.contains(path));
        type_findings.retain(|path| scripts.contains(path));
        let worker = match &self.worker {
            Ok(worker) => worker,
            Err(missing) => {
                if !scripts.is_empty() && self.shown.insert(missing.clone()) {
                    settings.messages.push((lsp::MessageType::Info, missing.clone()));
                }
                return;
            }
        };
        for path in scripts {
            let Some(project) = workspace.fresh(&path) else { continue };
            let types = types_of(&mut self.types, project);
            let Some(unit) = script_unit(project, types, &path) else { continue };
            let now = (types.definitions().clone(), unit);
            if self.sent.get(&path) == Some(&now) {
                continue;
            }
            let (definitions, unit) = now.clone();
            if worker.send(Job { definitions, unit, task: Task::Check(path.clone()) }) {
                self.sent.insert(path, now);
            } else {
                self.is_stale = true;
            }
        }
    }

    fn set_findings(
        &mut self,
        state: &mut State,
        path: &Path,
        unit: ScriptUnit,
        problems: Analysed<Vec<TypeProblem>>,
    ) {
        let problems = match problems {
            // `check --types` does not check test scripts.
            Ok(_) if unit.is_test => Vec::new(),
            Ok(problems) => problems,
            Err(why) => {
                self.show(state, &why);
                Vec::new()
            }
        };
        let State { workspace, type_findings: found, .. } = state;
        let Some(project) = workspace.fresh(path) else { return };
        let file = display_name(path, project.root());
        let findings = type_findings(project.load(), project.root(), &file, &unit.text, &problems);
        // A newer check may be under way; its findings replace these.
        found.set(path, unit.text, findings);
    }

    /// Shows an error of the analyzer, once.
    fn show(&mut self, state: &mut State, why: &str) {
        if self.shown.len() < MAX_ERRORS && self.shown.insert(why.to_owned()) {
            let message = format!("{why}; this script has the features of deftool without types");
            state.settings.messages.push((lsp::MessageType::Warning, message));
        }
    }
}

/// The requests about scripts that an analyzer can answer.
const METHODS: [&str; 11] = [
    "textDocument/completion",
    "textDocument/hover",
    "textDocument/signatureHelp",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/documentSymbol",
    "textDocument/inlayHint",
    "textDocument/semanticTokens/full",
];

/// Returns what to ask for a request. Returns `None` for tools, arguments and modules, which the project knows.
fn question(
    method: &str,
    project: &Project,
    types: &ScriptTypes,
    path: &Path,
    offset: usize,
) -> Option<Question> {
    let is_entity = || deftool_ide::rename_target(project, path, offset).is_ok();
    let others = || deftool_ide::other_units(project, types, path);
    Some(match method {
        "textDocument/completion" => Question::Complete,
        "textDocument/hover" => Question::Describe,
        "textDocument/signatureHelp" => Question::Signatures,
        "textDocument/documentSymbol" => Question::Outline,
        "textDocument/inlayHint" => Question::Inlays,
        "textDocument/semanticTokens/full" => Question::Tokens,
        "textDocument/documentHighlight" => Question::Uses(Vec::new()),
        "textDocument/definition" if deftool_ide::definition(project, path, offset).is_empty() => {
            Question::Describe
        }
        "textDocument/prepareRename" if !is_entity() => Question::Uses(Vec::new()),
        "textDocument/references" | "textDocument/rename" if !is_entity() => Question::Uses(others()),
        _ => return None,
    })
}

/// Returns the types of a project, made again if its tools changed.
fn types_of<'t>(types: &'t mut HashMap<PathBuf, ScriptTypes>, project: &Project) -> &'t ScriptTypes {
    let known = types.entry(project.root().to_owned()).or_insert_with(|| ScriptTypes::of(project));
    if !known.is_current(project) {
        *known = ScriptTypes::of(project);
    }
    known
}
