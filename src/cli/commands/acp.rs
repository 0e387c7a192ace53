//! `deftool acp`: an agent of the Agent Client Protocol, on stdin and stdout. Its sessions are those of `deftool chat`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use deftool_acp::{
    CallKind, ClientServer, ClientTransport, Host, OpenedSession, Progress, ProgressSender, SessionRequest,
    SessionStore, SessionWorker, StoredSession, serve,
};
use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_engine::{
    AddedServer, Choice, OpenedWorker, ProjectWorkers, WorkerProject, close_remote, is_usable,
};
use deftool_lang::spec::{Permissions, WorkerSpec};
use deftool_project::{LiveProject, find_root};
use deftool_record::Redaction;
use deftool_record::session::{Line, Session, SessionFile};
use deftool_script::{ScriptEvent, ScriptRunner, ScriptSink};
use deftool_worker::{SubmitRequest, usable_workers};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use tokio::sync::OnceCell;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::engine;
use crate::cli::project::engine::ScriptOptions;
use crate::cli::project::script_log;
use crate::cli::terminal::output::{clean, cut, eprint_line, notices};
use crate::cli::terminal::stdio::{stdin, stdout};
use crate::cli::worker::options::WorkerOptions;
use crate::cli::worker::session::{
    ListedSession, SessionWriter, all_sessions, begin, new_name, project_sessions, sessions_folder,
};
use crate::cli::worker::{api_key, choose_worker, secrets, serve_client, unusable_worker};

#[derive(Debug, Args)]
#[command(after_help = "\
An editor starts this command and sends messages of the Agent Client Protocol on stdin. Each session uses the project \
that contains its folder, or the project of -C. docs/editors.md describes the set-up.

Examples:
  deftool acp
  deftool acp -C my-agent --worker local")]
pub(in crate::cli) struct AcpOptions {
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

/// Maximum number of characters of the title of a stored session.
const MAX_TITLE: usize = 100;

/// The extension of session files.
const EXTENSION: &str = ".jsonl";

pub(in crate::cli) fn run(options: &AcpOptions) -> Result<Exit, CliError> {
    // Report an unusable -C now instead of in each session.
    let project = &options.worker.project;
    let project = project.directory().map(|_| project.dirs());
    let progress = ProgressSender::default();
    let agent = Agent {
        options: options.worker.clone(),
        folder: project.transpose()?.map(|dirs| dirs.project),
        scripts: engine::start_with(&options.scripts, sink(progress.clone()))?,
        progress,
        trusts_all: options.scripts.trust,
        workers: Mutex::default(),
    };
    serve_client("an editor", |stop| serve(agent, stdin(), stdout(), stop))
}

/// Opens the sessions of a client.
struct Agent {
    options: WorkerOptions,
    /// The folder of -C.
    folder: Option<PathBuf>,
    scripts: Arc<ScriptRunner>,
    progress: ProgressSender,
    /// `--trust`: all permissions, for this run.
    trusts_all: bool,
    workers: Mutex<SharedWorkers>,
}

/// The open workers. Sessions of one project share a worker if the client added the same MCP servers.
type SharedWorkers = HashMap<WorkerKey, Arc<OnceCell<SharedWorker>>>;

/// The project, the MCP servers of the client, and the name of the worker, if one is named.
type WorkerKey = (PathBuf, Vec<ClientServer>, Option<String>);

/// A worker of one or more sessions.
struct SharedWorker {
    spec: WorkerSpec,
    project: Arc<LiveProject>,
    opened: OpenedWorker,
}

impl Host for Agent {
    fn open(&self, request: SessionRequest) -> BoxFuture<'_, Result<OpenedSession, String>> {
        async move { self.open_session(request).await.map_err(|error| error.to_string()) }.boxed()
    }

    fn open_mode<'a>(
        &'a self,
        request: &'a SessionRequest,
        mode: &'a str,
    ) -> BoxFuture<'a, Result<SessionWorker, String>> {
        let worker = async move {
            let choice = Choice { worker: Some(mode), ..Choice::default() };
            let cell = self.worker_cell(request, choice);
            let shared = self.shared_worker(&cell, request, choice).await?;
            Ok(session_worker(shared))
        };
        worker.map_err(|error: CliError| error.to_string()).boxed()
    }

    fn stored(&self, folder: Option<PathBuf>) -> Vec<StoredSession> {
        let sessions = match self.folder.clone().or(folder) {
            Some(folder) => project_sessions(&root_of(&folder)),
            None => all_sessions(),
        };
        // A damaged session does not affect the others.
        let sessions =
            sessions.into_iter().filter_map(|(changed, path)| ListedSession::read(&path, changed).ok());
        sessions.filter_map(|(session, _)| stored(&session)).collect()
    }

    fn progress(&self) -> &ProgressSender {
        &self.progress
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        let shared = workers.into_values().filter_map(|cell| Arc::into_inner(cell)?.into_inner());
        let opened: Vec<OpenedWorker> = shared.map(|shared| shared.opened).collect();
        async move {
            for OpenedWorker { worker, .. } in &opened {
                worker.stop();
            }
            for OpenedWorker { worker, remote, .. } in opened {
                worker.stopped().await;
                close_remote(remote).await;
            }
        }
        .boxed()
    }
}

impl Agent {
    async fn open_session(&self, request: SessionRequest) -> Result<OpenedSession, CliError> {
        let root = self.root_of(&request);
        let stored = request.id.as_deref().map(|id| stored_session(&root, id)).transpose()?;
        let named = self.options.worker.as_deref();
        // Its errors are reported when it is opened.
        let chosen = stored.as_ref().and_then(|(_, path)| SessionFile::read(path).ok()?.worker);
        let chosen = chosen.filter(|_| named.is_none());
        let choice = Choice { worker: named, chosen: chosen.as_deref(), ..Choice::default() };
        let cell = self.worker_cell(&request, choice);
        let shared = self.shared_worker(&cell, &request, choice).await?;
        let SharedWorker { spec, project, opened } = shared;
        let mut worker = session_worker(shared);
        let unusable = chosen.filter(|chosen| *chosen != spec.name.value);
        worker.notices.extend(unusable.map(|chosen| unusable_worker(&chosen, spec)));
        let key = api_key(spec);
        let redaction = Arc::new(Redaction::new(key.as_deref(), secrets(&[], &project.current())?));
        let (id, session, writer) = match stored {
            Some((id, path)) => {
                let resumed = SessionFile::resume(&path, Arc::clone(&redaction));
                let (file, session) = resumed.map_err(|error| CliError::Usage(error.to_string()))?;
                (id, session.continued_by(&spec.name.value), SessionWriter::open(file, redaction))
            }
            None => {
                let (name, session) = (new_name(), Session::default());
                let first = Line::header(&root, &spec.name.value, &opened.worker.model());
                let writer = begin(&root, &name, first, &session, redaction);
                (name.trim_end_matches(EXTENSION).to_owned(), session, writer)
            }
        };
        let request = SubmitRequest {
            messages: session.messages,
            system_prompt: session.system,
            model: session.model.filter(|name| !name.is_empty()),
            ..SubmitRequest::default()
        };
        let modes = match named {
            Some(name) => vec![name.to_owned()],
            None => modes(project),
        };
        Ok(OpenedSession { id, modes, worker, request, store: Box::new(writer) })
    }

    /// Returns the folder of the project of a session. Outside of a project, sessions belong to the folder.
    fn root_of(&self, request: &SessionRequest) -> PathBuf {
        root_of(self.folder.as_ref().unwrap_or(&request.folder))
    }

    fn worker_cell(&self, request: &SessionRequest, choice: Choice<'_>) -> Arc<OnceCell<SharedWorker>> {
        let name = choice.worker.or(choice.chosen);
        let key = (self.root_of(request), request.servers.clone(), name.map(str::to_owned));
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(workers.entry(key).or_default())
    }

    /// Returns the worker in a cell. Opens the project of the session, or the user's own, and connects its worker, if
    /// no session did.
    async fn shared_worker<'a>(
        &self,
        cell: &'a OnceCell<SharedWorker>,
        request: &SessionRequest,
        choice: Choice<'_>,
    ) -> Result<&'a SharedWorker, CliError> {
        let folder = self.folder.as_ref().unwrap_or(&request.folder);
        let root = self.root_of(request);
        cell.get_or_try_init(|| self.open_worker(folder, &root, request.servers.clone(), choice)).await
    }

    async fn open_worker(
        &self,
        folder: &Path,
        root: &Path,
        servers: Vec<ClientServer>,
        choice: Choice<'_>,
    ) -> Result<SharedWorker, CliError> {
        let choice = Choice {
            user_tools: self.options.user_tools,
            // A server that the user names needs no project.
            is_optional: self.options.endpoint.is_some() && choice.worker.is_none(),
            ..choice
        };
        let opened = WorkerProject::open(choice, folder, root, &notices())?;
        let project = Arc::clone(&opened.project);
        let chosen = choice.chosen.filter(|name| is_usable(&project.current(), name));
        let spec = choose_worker(choice.worker.or(chosen), None, &project.current())?;
        let workers = ProjectWorkers {
            project: opened,
            connection: self.options.connection(),
            scripts: Arc::clone(&self.scripts),
            trusts_all: self.trusts_all,
            is_conversation: true,
            notices: notices(),
        };
        let (added, mut left_out) = added_servers(servers);
        let mut opened = Box::pin(workers.open(spec.clone(), (added, root), |_| {})).await?;
        left_out.append(&mut opened.left_out);
        opened.left_out = left_out;
        Ok(SharedWorker { spec, project, opened })
    }
}

/// Returns a sink that prints log lines to stderr, and reports progress to the client.
fn sink(progress: ProgressSender) -> ScriptSink {
    let log = script_log::sink();
    ScriptSink::new(move |event| match event {
        ScriptEvent::Progressed { request_id, call_id, fraction, text, .. } => {
            progress.send(&request_id, Progress { call_id, fraction, text });
        }
        ScriptEvent::Logged { .. } => log.send(event),
    })
}

fn root_of(folder: &Path) -> PathBuf {
    find_root(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Returns the names of a project's workers that can be used.
fn modes(project: &LiveProject) -> Vec<String> {
    usable_workers(&project.current().load).map(str::to_owned).collect()
}

fn session_worker(shared: &SharedWorker) -> SessionWorker {
    let SharedWorker { spec, project, opened } = shared;
    let project = Arc::clone(project);
    SessionWorker {
        mode: spec.name.value.clone(),
        worker: opened.worker.clone(),
        kind_of: Arc::new(move |tool| {
            project.current().tool(tool).map_or(CallKind::Other, |loaded| kind_of(&loaded.tool.permissions))
        }),
        notices: opened.left_out.clone(),
    }
}

/// Returns what a tool with these permissions does, at most.
fn kind_of(allowed: &Permissions) -> CallKind {
    let kinds = [
        (&allowed.run, CallKind::Execute),
        (&allowed.write, CallKind::Edit),
        (&allowed.net, CallKind::Fetch),
        (&allowed.read, CallKind::Read),
    ];
    let first = kinds.into_iter().find(|(allowed, _)| !allowed.is_empty());
    first.map_or(CallKind::Other, |(_, kind)| kind)
}

/// Returns a session that a client can load; `None` if it does not name its project.
fn stored(session: &ListedSession) -> Option<StoredSession> {
    let folder = PathBuf::from(&session.project);
    folder.is_absolute().then(|| StoredSession {
        id: session.name.clone(),
        folder,
        title: cut(&clean(session.prompt.trim().lines().next().unwrap_or_default()), MAX_TITLE),
        changed: session.changed().to_string(),
    })
}

/// Returns the MCP servers of a client, and those that cannot be used, one clause each.
fn added_servers(servers: Vec<ClientServer>) -> (Vec<AddedServer>, Vec<String>) {
    let (mut added, mut left_out) = (Vec::new(), Vec::new());
    for ClientServer { name, transport } in servers {
        match transport {
            ClientTransport::Program { command, env } => added.push(AddedServer { name, command, env }),
            ClientTransport::Unsupported => {
                let why = format!("MCP server `{}`: only programs can be used, not URLs", clean(&name));
                eprint_line(&format!("warning: {why}; its tools are left out"));
                left_out.push(why);
            }
        }
    }
    (added, left_out)
}

/// Returns the ID and the file of a stored session.
///
/// # Errors
/// If the ID is invalid, or if the project has no such session.
fn stored_session(root: &Path, id: &str) -> Result<(String, PathBuf), CliError> {
    let unknown = || CliError::Usage(format!("no session `{id}` of {}", root.display()));
    let name = format!("{id}{EXTENSION}");
    // The ID must not name a file in another folder.
    if Path::new(&name).file_name() != Some(name.as_ref()) {
        return Err(unknown());
    }
    let path = sessions_folder(root).ok_or_else(unknown)?.join(name);
    if path.is_file() { Ok((id.to_owned(), path)) } else { Err(unknown()) }
}

impl SessionStore for SessionWriter {
    fn store(&mut self, messages: &[Message]) {
        self.messages(messages);
    }

    fn store_event(&mut self, event: &Event) {
        self.event(event);
    }

    fn store_mode(&mut self, mode: &str) {
        self.setting(Line::Worker { name: mode.to_owned() });
    }
}
