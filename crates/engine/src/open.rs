//! Opens a worker of a project on disk: the entry point of the library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_chat::request::BiosProvider;
use deftool_lang::tool::JoinedTools;
use deftool_project::{PermissionRequest, PermissionSet, ProjectError, Trust};
use deftool_script::{RunnerOptions, ScriptRunner};
use deftool_worker::{
    Approvals, ChooseError, EndpointError, NotReady, Observer, OwnTool, TrustSource, Worker, choose_worker,
    own_tools as source_of_own_tools,
};

use crate::connection::ready_or_stopped;
use crate::project::{Choice, WorkerProject};
use crate::servers::join;
use crate::trust::untrusted;
use crate::{Connection, Notices};

/// The reason why a worker cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The project does not exist or cannot be read.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The worker is unknown, ambiguous or has errors.
    #[error(transparent)]
    Worker(#[from] ChooseError),
    /// No server was found.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Permissions were not granted: those without which the worker does not start, or those of all of its tools.
    #[error("{}; review the specs, then grant trust with `OpenWorker::trust`", required(missing))]
    NotTrusted {
        /// The missing permissions.
        missing: Vec<PermissionRequest>,
    },
    /// The worker starts its own server, and [`set_guard`](deftool_process::set_guard) was not called.
    #[error(
        "the worker starts its own server, which requires a guard: call `deftool::process::set_guard` first"
    )]
    NoGuard,
    /// The server did not start.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// A file or a server of the project, or a folder of the user, cannot be used.
    #[error("{0}")]
    Unusable(String),
}

impl OpenError {
    /// Returns the message for the user of a command, who grants permissions with another command.
    pub fn for_command(&self) -> String {
        match self {
            Self::NotTrusted { missing } => {
                format!("{}; review the specs, then run `deftool trust grant`", required(missing))
            }
            other => other.to_string(),
        }
    }
}

fn required(missing: &[PermissionRequest]) -> String {
    let lines = PermissionRequest::lines(missing).join("; ");
    format!("the project requires permissions that are not trusted: {lines}")
}

/// A builder of a worker, created by [`open`]. Defaults come from the worker's spec.
pub struct OpenWorker {
    folder: PathBuf,
    name: Option<String>,
    connection: Connection,
    trust: Box<dyn TrustSource>,
    approvals: Approvals,
    queue: usize,
    bios: Option<Arc<dyn BiosProvider>>,
    scripts: RunnerOptions,
    user_tools: bool,
    own_tools: Vec<OwnTool>,
    observer: Option<Arc<dyn Observer>>,
    notices: Notices,
}

/// Does not print the key.
impl std::fmt::Debug for OpenWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { folder, name, connection: Connection { endpoint, model, .. }, .. } = self;
        f.debug_struct("OpenWorker")
            .field("folder", folder)
            .field("name", name)
            .field("endpoint", endpoint)
            .field("model", model)
            .finish_non_exhaustive()
    }
}

/// Creates a builder for a worker of the project that contains `folder`, or of the user's own project. The tools are those of
/// the project and of its MCP servers. They are hot-reloaded.
///
/// By default, scripts may only read the project. Use [`OpenWorker::trust`] to grant what the specs request.
pub fn open(folder: impl AsRef<Path>) -> OpenWorker {
    OpenWorker {
        folder: folder.as_ref().to_owned(),
        name: None,
        connection: Connection::default(),
        trust: Box::new(Trust::Only(Arc::new(PermissionSet::default()))),
        approvals: Approvals::Refuse,
        queue: 0,
        bios: None,
        scripts: RunnerOptions::default(),
        user_tools: false,
        own_tools: Vec::new(),
        observer: None,
        notices: Notices::default(),
    }
}

impl OpenWorker {
    /// Selects the worker `name`. Required if the project has several.
    #[must_use]
    pub fn worker(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the base URL of the server, including `/v1`. Without it and without `:endpoint` in the spec, deftool uses
    /// `OPENAI_BASE_URL` or looks for a server at the default local ports.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.connection.endpoint = Some(url.into());
        self
    }

    /// Sets the model name. Default: the model of the spec, then the first model of the server.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.connection.model = Some(name.into());
        self
    }

    /// Sets the API key. Default: the environment variable of `:api-key-env` in the spec, then `OPENAI_API_KEY`. The
    /// key from `OPENAI_API_KEY` is not sent to a server that deftool found by itself.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.connection.api_key = Some(key.into());
        self
    }

    /// Sets the permissions that are granted to the project's scripts: [`Trust::Everything`], those that the user has stored
    /// ([`ProjectTrust`](crate::ProjectTrust)), or a decision for each generation. Tools and MCP servers that require more
    /// when the worker is opened are left out.
    #[must_use]
    pub fn trust(mut self, trust: impl TrustSource + 'static) -> Self {
        self.trust = Box::new(trust);
        self
    }

    /// Sets the handling of calls of tools with `:confirm`. By default, they are refused, because nobody is asked. With
    /// [`Approvals::Ask`], the worker emits an `approval` event and waits for [`Worker::approve`].
    #[must_use]
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = approvals;
        self
    }

    /// Sets the maximum number of requests that wait for a slot. Default: 0, so a request without a free slot is
    /// rejected.
    #[must_use]
    pub fn queue(mut self, requests: usize) -> Self {
        self.queue = requests;
        self
    }

    /// Sets the provider of deftool's own system message. Replaces the built-in provider and the spec's `:bios`.
    #[must_use]
    pub fn bios(mut self, bios: impl BiosProvider + 'static) -> Self {
        self.bios = Some(Arc::new(bios));
        self
    }

    /// Sets how scripts run: threads, limits, isolation, destination of log lines.
    #[must_use]
    pub fn scripts(mut self, options: RunnerOptions) -> Self {
        self.scripts = options;
        self
    }

    /// Adds a tool that the program implements. Every worker may call it, whatever its `:tools`.
    #[must_use]
    pub fn tool(mut self, tool: OwnTool) -> Self {
        self.own_tools.push(tool);
        self
    }

    /// Also offers the tools of the user to a worker of the project.
    #[must_use]
    pub fn user_tools(mut self) -> Self {
        self.user_tools = true;
        self
    }

    /// Receives what the user should know: the tools that are left out, and why.
    #[must_use]
    pub fn notices(mut self, notices: Notices) -> Self {
        self.notices = notices;
        self
    }

    /// Observes all requests of the worker, for example to export them.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Opens the project, starts the worker, and waits for its managed server. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// When the project, the worker or a server is not found, or a permission of the worker's spec is not granted.
    pub async fn start(self) -> Result<Worker, OpenError> {
        let Self { folder, name, connection, trust, approvals, user_tools, notices, .. } = self;
        let Self { queue, bios, scripts, own_tools, observer, .. } = self;
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let choice = Choice { worker: name.as_deref(), user_tools, ..Choice::default() };
        let opened = WorkerProject::open(choice, &folder, &folder, &notices)?;
        let spec = choose_worker(&opened.project.current().load, name.as_deref())?;
        let plan = opened.plan(spec, &connection);
        let prepared = plan.prepare(trust, Arc::new(ScriptRunner::new(scripts)))?;
        if !prepared.untrusted.is_empty() {
            notices.send(&untrusted(&prepared.untrusted));
        }
        let mut config = prepared.config;
        (config.queue, config.approvals, config.observer) = (queue, approvals, observer);
        if let Some(bios) = bios {
            config.bios = bios;
        }
        let remote = prepared.servers.connect(&notices).await?;
        let mut tools = join(prepared.tools, remote.as_ref());
        if !own_tools.is_empty() {
            tools = Arc::new(JoinedTools::new(tools, Arc::new(source_of_own_tools(own_tools))));
        }
        let spec = &prepared.spec;
        let worker = connection.connect((spec, &prepared.root), config, tools, false).await?;
        if connection.starts_server(spec) {
            return Ok(ready_or_stopped(worker, async |worker| worker.ready().await).await?);
        }
        Ok(worker)
    }
}
