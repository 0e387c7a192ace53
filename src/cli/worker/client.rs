//! Serves the clients of `deftool rpc` and `deftool acp`, and opens their workers. stdin belongs to the client, so nothing is asked there.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deftool_acp::ClientServer;
use deftool_lang::spec::WorkerSpec;
use deftool_mcp::RemoteTools;
use deftool_project::{Generation, LiveProject, PermissionRequest, Trust};
use deftool_record::Journal;
use deftool_script::ScriptRunner;
use deftool_worker::{ToolSource, Worker, WorkerConfig, api_of};
use tokio_util::sync::CancellationToken;

use super::journal::context::JournalContext;
use super::options::WorkerOptions;
use super::requirements::Requirements;
use super::{OpenWorker, connect, endpoint_requirements, join};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::trust::{ProjectTrust, report_untrusted, stored_trust, untrusted};
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::{clean, eprint_line};

/// Maximum number of requests that wait for a slot of a worker.
const MAX_QUEUE: usize = 64;

/// Returns the journal of the requests of a worker.
type WorkerJournal = dyn Fn(&OpenWorker) -> Arc<dyn Journal> + Send + Sync;

/// The workers of a project.
pub(in crate::cli) struct ClientWorkers {
    pub(in crate::cli) options: WorkerOptions,
    pub(in crate::cli) root: PathBuf,
    /// The folder whose trust applies, and whether the project is the user's own.
    pub(in crate::cli) trusted: (PathBuf, bool),
    pub(in crate::cli) project: Arc<LiveProject>,
    pub(in crate::cli) scripts: Arc<ScriptRunner>,
    /// `--trust`: all permissions, for this run.
    pub(in crate::cli) trusts_all: bool,
    /// Whether a person sees the replies: errors are reported to the model where the spec does not set it, and tools
    /// that are not trusted are left out.
    pub(in crate::cli) is_conversation: bool,
    /// Returns the journal of the requests of a worker.
    pub(in crate::cli) journal: Option<Box<WorkerJournal>>,
}

/// A worker with the connections of its tools.
pub(in crate::cli) struct OpenedWorker {
    pub(in crate::cli) worker: Worker,
    pub(in crate::cli) tools: Arc<dyn ToolSource>,
    /// What the journal of its requests stores with each of them, if there is one.
    pub(in crate::cli) context: Option<JournalContext>,
    pub(in crate::cli) remote: Option<Arc<RemoteTools>>,
    /// The MCP servers and tools that cannot be used, one clause each.
    pub(in crate::cli) left_out: Vec<String>,
}

impl ClientWorkers {
    /// Connects a worker to its server. `added`: MCP servers of the client, and the folder in which they run.
    ///
    /// # Errors
    /// If a required permission is not trusted, or if a server cannot be used.
    pub(in crate::cli) async fn open(
        &self,
        mut spec: WorkerSpec,
        (added, folder): (Vec<ClientServer>, &Path),
    ) -> Result<OpenedWorker, CliError> {
        spec.api = Some(api_of(&spec, self.options.endpoint.as_deref()));
        let generation = self.project.current();
        let (folder_of_trust, is_user) = &self.trusted;
        let mut requirements = Requirements::of((&self.root, *is_user), &generation, &spec);
        if !is_user {
            requirements.own.extend(endpoint_requirements(&self.options, &generation, &spec));
        }
        let missing = self.leave_out(&generation, &mut requirements)?;
        requirements.servers.add(added, folder.to_owned());
        let trust = ProjectTrust::without_prompt(folder_of_trust, self.trusts_all);
        let scripts = Arc::clone(&self.scripts);
        let mut opened = OpenWorker::new(
            Arc::clone(&self.project),
            self.root.clone(),
            spec,
            (trust, scripts),
            requirements,
        )?
        .observed(&generation);
        if self.is_conversation {
            opened = opened.reporting_errors();
        }
        let journal = self.journal.as_ref().map(|of_worker| of_worker(&opened));
        let context = self.journal.is_some().then(|| JournalContext::of(&opened, &self.options, &[]));
        let remote = opened.servers.connect().await?;
        let mut left_out = opened.servers.unsupported();
        left_out.extend(
            remote.iter().flat_map(|remote| remote.left_out()).map(|error| clean(&error.to_string())),
        );
        for server in &left_out {
            eprint_line(&format!("warning: {server}; its tools are left out"));
        }
        report_untrusted(&missing);
        left_out.extend((!missing.is_empty()).then(|| untrusted(&missing)));
        let tools = join(opened.tools, remote.as_ref());
        let config = WorkerConfig { queue: MAX_QUEUE, journal, ..opened.config };
        let spec = (&opened.spec, &*opened.root);
        let worker = connect(&self.options, spec, config, Arc::clone(&tools), true).await?;
        Ok(OpenedWorker { worker, tools, context, remote, left_out })
    }

    /// Leaves out the tools of a conversation that are not trusted. Returns what they lack.
    ///
    /// # Errors
    /// If a required permission is not trusted.
    fn leave_out(
        &self,
        generation: &Generation,
        requirements: &mut Requirements,
    ) -> Result<Vec<PermissionRequest>, CliError> {
        if self.trusts_all {
            return Ok(Vec::new());
        }
        let granted = stored_trust(&self.trusted.0);
        let missing = granted.missing_requests(requirements.all());
        // A project without trust is an error for a program, and a tool of the user that may not change the folder is not.
        let may_leave_out = self.is_conversation || missing.iter().all(PermissionRequest::is_of_user);
        if missing.is_empty() || may_leave_out && requirements.are_enough(&granted) {
            return Ok(requirements.leave_out(generation, &Trust::Only(Arc::new(granted))));
        }
        Err(CliError::Usage(format!(
            "the project requires permissions that are not trusted: {}; review the specs, then run `deftool trust grant`",
            PermissionRequest::lines(&missing).join("; ")
        )))
    }
}

/// Closes the connections of the tools of a worker that has ended.
pub(in crate::cli) async fn close_remote(remote: Option<Arc<RemoteTools>>) {
    if let Some(remote) = remote {
        remote.close().await;
    }
}

/// Time limit for blocked threads at the end: one may wait for stdin.
const LAST_WORK: Duration = Duration::from_millis(100);

/// Serves a client on stdin and stdout until it is gone or a signal arrives. `client` names it for a user who runs the
/// command in a terminal.
///
/// # Errors
/// If the connection fails.
pub(in crate::cli) fn serve_client<S>(
    client: &str,
    serve: impl FnOnce(CancellationToken) -> S,
) -> Result<Exit, CliError>
where
    S: Future<Output = io::Result<()>>,
{
    if io::stdin().is_terminal() {
        eprint_line(&format!(
            "note: {client} starts this command and sends messages on stdin; press Ctrl-C to stop"
        ));
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        let serving = serve(stop.clone());
        tokio::pin!(serving);
        tokio::select! {
            served = &mut serving => served.map(|()| Exit::Clean),
            () = signals.next() => {
                stop.cancel();
                serving.await.map(|()| Exit::Interrupted)
            }
        }
    });
    runtime.shutdown_timeout(LAST_WORK);
    served.map_err(CliError::Runtime)
}
