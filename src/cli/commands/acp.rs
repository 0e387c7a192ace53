//! `deftool acp`: an agent of the Agent Client Protocol, on stdin and stdout. Its sessions are those of `deftool chat`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use deftool_acp::{ClientServer, ClientTransport, Host, OpenedSession, SessionRequest, SessionStore, serve};
use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_engine::{AddedServer, Choice, OpenedWorker, ProjectWorkers, WorkerProject, close_remote};
use deftool_lang::spec::WorkerSpec;
use deftool_project::{LiveProject, find_root};
use deftool_record::Redaction;
use deftool_record::session::{Line, Session, SessionFile};
use deftool_script::ScriptRunner;
use deftool_worker::SubmitRequest;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::engine;
use crate::cli::project::engine::ScriptOptions;
use crate::cli::terminal::output::{clean, eprint_line, notices};
use crate::cli::terminal::stdio::{stdin, stdout};
use crate::cli::worker::options::WorkerOptions;
use crate::cli::worker::session::{SessionWriter, begin, new_name, sessions_folder};
use crate::cli::worker::{api_key, choose_worker, secrets, serve_client};

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

/// The extension of session files.
const EXTENSION: &str = ".jsonl";

pub(in crate::cli) fn run(options: &AcpOptions) -> Result<Exit, CliError> {
    // Report an unusable -C now instead of in each session.
    let project = &options.worker.project;
    let project = project.directory().map(|_| project.dirs());
    let agent = Agent {
        options: options.worker.clone(),
        folder: project.transpose()?.map(|dirs| dirs.project),
        scripts: engine::start(&options.scripts)?,
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
    /// `--trust`: all permissions, for this run.
    trusts_all: bool,
    workers: Mutex<SharedWorkers>,
}

/// The open workers. Sessions of one project share a worker if the client added the same MCP servers.
type SharedWorkers = HashMap<(PathBuf, Vec<ClientServer>), Arc<OnceCell<SharedWorker>>>;

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
        let SessionRequest { folder, id, servers } = request;
        let folder = self.folder.clone().unwrap_or(folder);
        // Outside of a project, the sessions belong to the folder.
        let root = find_root(&folder).unwrap_or_else(|_| folder.clone());
        let stored = id.as_deref().map(|id| stored_session(&root, id)).transpose()?;
        let cell = {
            let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(workers.entry((root.clone(), servers.clone())).or_default())
        };
        let shared = cell.get_or_try_init(|| self.open_worker(&folder, &root, servers)).await?;
        let SharedWorker { spec, project, opened } = shared;
        let key = api_key(spec);
        let redaction = Arc::new(Redaction::new(key.as_deref(), secrets(&[], &project.current())?));
        let (id, session, writer) = match stored {
            Some((id, path)) => {
                let resumed = SessionFile::resume(&path, Arc::clone(&redaction));
                let (file, session) = resumed.map_err(|error| CliError::Usage(error.to_string()))?;
                (id, session, SessionWriter::open(file, redaction))
            }
            None => {
                let (name, session) = (new_name(), Session::default());
                let first = Line::header(&root, &spec.name.value, opened.worker.model());
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
        Ok(OpenedSession {
            id,
            worker: opened.worker.clone(),
            request,
            store: Box::new(writer),
            notices: opened.left_out.clone(),
        })
    }

    /// Opens the project at `root`, or the user's own, and connects its worker.
    async fn open_worker(
        &self,
        folder: &Path,
        root: &Path,
        servers: Vec<ClientServer>,
    ) -> Result<SharedWorker, CliError> {
        let named = self.options.worker.as_deref();
        let choice = Choice {
            worker: named,
            user_tools: self.options.user_tools,
            // A server that the user names needs no project.
            is_optional: self.options.endpoint.is_some() && named.is_none(),
            ..Choice::default()
        };
        let opened = WorkerProject::open(choice, folder, root, &notices())?;
        let project = Arc::clone(&opened.project);
        let spec = choose_worker(named, None, &project.current())?;
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
}
