//! The workers of a project, which are opened when they are needed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use deftool_engine::{
    Connection, Notices, OpenError, OpenedWorker, PreparedWorker, ProjectRoots, ProjectWorkers,
    WorkerProject, close_remote, script_line, start_scripts,
};
use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::text::readable;
use deftool_project::{LiveProject, find_root};
use deftool_record::Journal;
use deftool_script::{LogLevel, ScriptEvent, ScriptSink};
use deftool_worker::{ChooseError, Worker, WorkerState, choose_worker};
use tokio::sync::Mutex;

/// The options of the workers.
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// Use the project that contains DIR
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Worker to use [default: all workers of the project]
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// Base URL of the server, including /v1; overrides the worker's [env: OPENAI_BASE_URL]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Model name; overrides the worker's
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Offer your tools for all projects to the workers, too
    #[arg(long)]
    user_tools: bool,
    /// Where scripts run; `process` uses child processes that can be killed, for untrusted scripts
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Isolate::Threads)]
    isolate: Isolate,
    /// Grant all permissions that the specs require, for this run only
    #[arg(long)]
    trust: bool,
}

/// Where scripts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Isolate {
    /// Threads of this process
    Threads,
    /// Child processes
    Process,
}

impl ServeOptions {
    /// Returns whether scripts run in child processes.
    pub fn is_isolated(&self) -> bool {
        self.isolate == Isolate::Process
    }
}

/// Writes a line to stderr, without hidden characters.
pub fn report(line: &str) {
    use std::io::Write;
    // Nobody is left to be told about an error.
    let _ = writeln!(std::io::stderr(), "{}", readable(line));
}

fn open_project(folder: &Path, user_tools: bool) -> Result<WorkerProject, OpenError> {
    let root = find_root(folder)?;
    let mut project = LiveProject::open(&root, &root, None)?;
    if user_tools {
        let roots = ProjectRoots::find(&root, &Notices::new(report))?;
        // The user's own project has its tools already.
        if roots.project.is_some() {
            project = roots.add_user(project, &root, None);
        }
    }
    Ok(WorkerProject { folder: root.clone(), root, project: Arc::new(project), is_user: false })
}

/// The reason why a worker cannot be used, for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenFailure {
    /// The project has no such worker.
    #[error("{0}")]
    Unknown(String),
    /// The worker may be usable later.
    #[error("{0}")]
    Unavailable(String),
}

/// The workers of a project. Each is opened once.
pub struct Workers {
    opener: ProjectWorkers,
    /// The worker of `--worker`.
    default: Option<String>,
    journal: Arc<dyn Journal>,
    opened: Mutex<HashMap<String, OpenedWorker>>,
}

impl Workers {
    /// Opens the project of the options.
    ///
    /// # Errors
    /// If there is no project, or if a file of it cannot be read.
    pub fn of_project(options: ServeOptions, journal: Arc<dyn Journal>) -> Result<Self, String> {
        let is_isolated = options.is_isolated();
        let folder = std::path::absolute(options.directory.unwrap_or_else(|| PathBuf::from(".")))
            .map_err(|error| error.to_string())?;
        let project = open_project(&folder, options.user_tools).map_err(|error| error.for_command())?;
        let load = &project.project.current().load;
        for finding in load.findings.iter().filter(|finding| finding.severity == Severity::Error) {
            report(&render_concise(finding, &load.sources));
        }
        let sink = ScriptSink::new(|event| {
            if !matches!(event, ScriptEvent::Logged { level: LogLevel::Debug, .. }) {
                report(&script_line(&event));
            }
        });
        let opener = ProjectWorkers {
            project,
            connection: Connection {
                endpoint: options.endpoint,
                model: options.model,
                ..Connection::default()
            },
            scripts: start_scripts(is_isolated, sink).map_err(|error| error.to_string())?,
            trusts_all: options.trust,
            is_conversation: false,
            notices: Notices::new(report),
        };
        Ok(Self { opener, default: options.worker, journal, opened: Mutex::default() })
    }

    /// Opens the worker of `--worker`, or all workers of the project, and reports those that cannot be used.
    ///
    /// # Errors
    /// If none can be used.
    pub async fn open_all(&self) -> Result<(), String> {
        let project = self.opener.project.project.current();
        let mut names: Vec<Option<&str>> =
            project.load.workers.iter().map(|worker| Some(worker.name.value.as_str())).collect();
        if names.is_empty() || self.default.is_some() {
            names = vec![None];
        }
        let mut failures = Vec::new();
        for name in &names {
            if let Err(failure) = self.open(*name).await {
                failures.push(match name {
                    Some(name) if names.len() > 1 => format!("worker `{name}`: {failure}"),
                    _ => failure.to_string(),
                });
            }
        }
        if failures.len() == names.len() {
            return Err(failures.join("; "));
        }
        for failure in failures {
            report(&format!("warning: {failure}"));
        }
        Ok(())
    }

    /// Returns a worker, and opens it if it is not open. `None`: the worker of `--worker`, or the only one. A new worker is
    /// returned only if its model server answers.
    ///
    /// # Errors
    /// If the worker cannot be used.
    pub async fn open(&self, name: Option<&str>) -> Result<Worker, OpenFailure> {
        let named = name.or(self.default.as_deref());
        let generation = self.opener.project.project.current();
        let spec = choose_worker(&generation.load, named).map_err(|error| {
            let advice =
                if matches!(error, ChooseError::Several { .. }) { " with --worker NAME" } else { "" };
            OpenFailure::Unknown(format!("{error}{advice}"))
        })?;
        let mut opened = self.opened.lock().await;
        if let Some(OpenedWorker { worker, .. }) = opened.get(&spec.name.value) {
            // A managed server that failed too often. Others are found out by the requests.
            if worker.state() == WorkerState::Failed {
                return Err(OpenFailure::Unavailable(worker.status().reason.unwrap_or_default()));
            }
            return Ok(worker.clone());
        }
        let key = spec.name.value.clone();
        let journal = Some(Arc::clone(&self.journal));
        let adjust = |prepared: &mut PreparedWorker| prepared.config.journal = journal;
        let new = Box::pin(self.opener.open(spec, (Vec::new(), &self.opener.project.root), adjust))
            .await
            .map_err(|error| OpenFailure::Unavailable(error.for_command()))?;
        if let Err(error) = new.worker.ready().await {
            close(new).await;
            let reason = error.reason.unwrap_or_default();
            let advice = "`deftool doctor` examines the server";
            return Err(OpenFailure::Unavailable(format!("{reason}; {advice}")));
        }
        let worker = new.worker.clone();
        opened.insert(key, new);
        Ok(worker)
    }

    /// Stops the workers.
    pub async fn close(&self) {
        for (_, opened) in self.opened.lock().await.drain() {
            close(opened).await;
        }
    }
}

async fn close(opened: OpenedWorker) {
    opened.worker.stop();
    close_remote(opened.remote).await;
}
