//! A worker of a project on disk, opened by a program: the front door of the library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::calls::Approvals;
use super::choose::{ChooseError, choose_worker};
use super::config::WorkerConfig;
use super::endpoint::{EndpointError, EndpointOptions, find_endpoint};
use super::handle::Worker;
use super::http::HttpTransport;
use super::project_tools::{ProjectTools, TrustSource};
use super::record::ResultError;
use super::server::{GuardProgram, NotReady, ServerOptions};
use super::submit::{SubmitError, SubmitRequest};
use super::toolbox::ToolSource;
use super::wishes::{endpoint_wish, names_key, server_wish};
use crate::project::{Grants, LiveProject, ProjectError, Trust, Wish, find_root, read_bios};
use crate::request::{BiosProvider, BiosTemplate, Outcome};
use crate::script::{RunnerOptions, ScriptRunner};

/// Why a worker could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no project, or it cannot be read.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// No worker is meant.
    #[error(transparent)]
    Worker(#[from] ChooseError),
    /// The file of its `:bios` cannot be had.
    #[error("{0}")]
    Bios(String),
    /// There is no server to talk to.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Its spec needs permissions that were not granted: to start a server, to contact one that is not on this machine, or to
    /// send a key.
    #[error("not trusted: {}; read the specs, then say so with `OpenWorker::trust`", wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NotTrusted {
        /// What it wants.
        wanted: Vec<Wish>,
    },
    /// It starts a server of its own, and nothing would end that server with this process.
    #[error(
        "the worker starts a server of its own, which needs a program that ends it: see `OpenWorker::guard`"
    )]
    NoGuard,
    /// Its server did not start.
    #[error(transparent)]
    NotReady(#[from] NotReady),
}

/// Why a question has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It was not taken.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// Its result went before it was looked at: the worker keeps too few.
    #[error(transparent)]
    Result(#[from] ResultError),
}

/// How a worker is to be opened; made by [`Worker::open`]. What is not said comes from the worker's spec.
pub struct OpenWorker {
    folder: PathBuf,
    name: Option<String>,
    endpoint: Option<String>,
    model: Option<String>,
    api_key: Option<String>,
    trust: Box<dyn TrustSource>,
    approvals: Approvals,
    queue: usize,
    bios: Option<Arc<dyn BiosProvider>>,
    guard: Option<GuardProgram>,
    scripts: RunnerOptions,
}

/// Without the key.
impl std::fmt::Debug for OpenWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { folder, name, endpoint, model, .. } = self;
        f.debug_struct("OpenWorker")
            .field("folder", folder)
            .field("name", name)
            .field("endpoint", endpoint)
            .field("model", model)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker of the project that `folder` lies in, not yet started. Its tools are the project's, hot-reloaded.
    ///
    /// Its scripts may read the project and nothing else, whatever its specs want: say more with
    /// [`OpenWorker::trust`].
    pub fn open(folder: impl AsRef<Path>) -> OpenWorker {
        OpenWorker {
            folder: folder.as_ref().to_owned(),
            name: None,
            endpoint: None,
            model: None,
            api_key: None,
            trust: Box::new(Trust::Only(Arc::new(Grants::default()))),
            approvals: Approvals::default(),
            queue: 0,
            bios: None,
            guard: None,
            scripts: RunnerOptions::default(),
        }
    }
}

impl OpenWorker {
    /// The worker called `name`; needed where the project has several.
    #[must_use]
    pub fn worker(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Base URL of the server, `/v1` included. Without it, and without one in the spec, `OPENAI_BASE_URL` is read and then
    /// the usual local servers are looked for.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// The model's name. Without it, and without one in the spec, the server's first.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// The API key. Without it the variable is read that the spec names, `OPENAI_API_KEY` where it names none; what is read
    /// from the latter goes to no server that nobody named.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// What the project's scripts may use of what their specs want: [`Trust::Everything`], or as you decide for each
    /// generation.
    #[must_use]
    pub fn trust(mut self, trust: impl TrustSource + 'static) -> Self {
        self.trust = Box::new(trust);
        self
    }

    /// What is done where a tool has `:confirm`; by default an `approval` event is told and
    /// [`Worker::approve`] waited for.
    #[must_use]
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = approvals;
        self
    }

    /// As many requests may wait for a slot; without it a request that finds none is refused.
    #[must_use]
    pub fn queue(mut self, requests: usize) -> Self {
        self.queue = requests;
        self
    }

    /// Makes the engine's own system message, in place of the built-in one and of the spec's `:bios`.
    #[must_use]
    pub fn bios(mut self, bios: impl BiosProvider + 'static) -> Self {
        self.bios = Some(Arc::new(bios));
        self
    }

    /// The program that ends a managed server when this process is gone: one that calls
    /// [`guard_server`](super::guard_server) when it is started so. Needed where the worker's spec has `:server`.
    #[must_use]
    pub fn guard(mut self, program: GuardProgram) -> Self {
        self.guard = Some(program);
        self
    }

    /// How scripts are run: threads, limits, isolation, where their log lines go.
    #[must_use]
    pub fn scripts(mut self, options: RunnerOptions) -> Self {
        self.scripts = options;
        self
    }

    /// Opens the project and starts the worker; a server that it manages is waited for. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// When there is no project, no such worker, no server to talk to, or no trust in what the worker's spec wants.
    pub async fn start(self) -> Result<Worker, OpenError> {
        let Self { folder, name, endpoint, model, api_key, trust, approvals, queue, bios, guard, scripts } =
            self;
        let root = find_root(&std::path::absolute(&folder).unwrap_or(folder))?;
        let project = LiveProject::open(&root, &root, None)?;
        let generation = project.current();
        let spec = choose_worker(&generation.load, name.as_deref())?;
        let key = api_key.clone().or_else(|| environment(&spec.api_key_env));
        // What the caller gave itself is nobody's wish.
        let sends_key = api_key.is_none() && key.is_some();
        let wanted = server_wish(&generation.load, &spec, endpoint.as_deref()).into_iter();
        let wanted =
            wanted.chain(endpoint_wish(&generation.load, &spec, endpoint.as_deref(), sends_key)).collect();
        let wanted = trust.of(&generation).refused(wanted);
        if !wanted.is_empty() {
            return Err(OpenError::NotTrusted { wanted });
        }
        let mut config = WorkerConfig { queue, approvals, ..WorkerConfig::of_spec(&spec) };
        if let Some(bios) = bios {
            config.bios = bios;
        } else if let Some(text) = read_bios(&root, &spec).map_err(OpenError::Bios)? {
            config.bios = Arc::new(BiosTemplate { text });
        }
        let model = model.or_else(|| spec.model.clone());
        let scripts = Arc::new(ScriptRunner::new(scripts));
        let tools = Arc::new(ProjectTools::new(project, spec.clone(), trust, scripts));
        if let (None, Some(server)) = (&endpoint, &spec.server) {
            let guard = guard.ok_or(OpenError::NoGuard)?;
            let dialect = spec.dialect;
            let options =
                ServerOptions { key, model, dialect, ..ServerOptions::of_spec(server, &root, guard) };
            let worker = Self::managed(config, tools, options).await?;
            return Ok(worker);
        }
        let options = EndpointOptions {
            endpoint: endpoint.or_else(|| spec.endpoint.clone()).or_else(|| environment("OPENAI_BASE_URL")),
            model,
            key,
            connect: spec.timers.connect,
            dialect: spec.dialect,
            key_for_found: api_key.is_some() || names_key(&spec),
            must_listen: false,
        };
        Ok(Worker::connect(config, tools, options).await?)
    }

    async fn managed(
        config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        options: ServerOptions,
    ) -> Result<Worker, NotReady> {
        let worker = Worker::start_managed(config, tools, options);
        match worker.ready().await {
            Ok(()) => Ok(worker),
            Err(error) => {
                worker.stop();
                worker.gone().await;
                Err(error)
            }
        }
    }
}

impl Worker {
    /// A worker that talks to the endpoint that `options` lead to, with what the server told of itself.
    ///
    /// # Errors
    /// When there is none.
    pub async fn connect(
        config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        options: EndpointOptions,
    ) -> Result<Self, EndpointError> {
        let (key, connect) = (options.key.clone(), options.connect);
        let endpoint = find_endpoint(options).await?;
        let key = key.filter(|_| endpoint.takes_key);
        let transport = HttpTransport::new(&endpoint.base, key, connect).map_err(EndpointError::Invalid)?;
        Ok(Self::start(config.at(&endpoint), tools, Arc::new(transport)))
    }

    /// Submits a prompt and waits for the end.
    ///
    /// # Errors
    /// When it is not taken. A request that failed is no error: its outcome says so, and holds the text that came.
    pub async fn ask(&self, prompt: impl Into<String>) -> Result<Arc<Outcome>, AskError> {
        let id = self.submit(SubmitRequest::prompt(prompt))?;
        Ok(self.wait(&id).await?)
    }
}

/// The value of a variable that is set to something.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}
