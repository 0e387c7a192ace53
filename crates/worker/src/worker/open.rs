//! Opens a worker of a project on disk: the entry point of the library. Selects the worker, checks its permissions,
//! and connects it to a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_chat::request::{BiosProvider, Outcome};
use deftool_lang::spec::WorkerSpec;
use deftool_lang::tool::{JoinedTools, ToolSource};
use deftool_process::has_guard;
use deftool_project::{LiveProject, Load, PermissionRequest, PermissionSet, ProjectError, Trust, find_root};
use deftool_script::{RunnerOptions, ScriptRunner};

use super::handle::Worker;
use super::submit::{SubmitError, SubmitRequest};
use crate::config::{Approvals, WorkerConfig};
use crate::driver::ResultError;
use crate::endpoint::{EndpointError, EndpointOptions, api_of, find_endpoint};
use crate::observer::Observer;
use crate::own_tool::{OwnTool, own_tools as source_of_own_tools};
use crate::permissions::{
    bios_permission_request, endpoint_permission_request, names_key, server_permission_request,
};
use crate::server::{NotReady, ServerOptions};
use crate::tools::{ProjectTools, TrustSource};
use crate::transport::HttpTransport;

/// An error of [`choose_worker`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// Unknown worker.
    #[error("unknown worker `{name}`; {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The known workers, as a clause.
        known: String,
    },
    /// The project has several workers, none of them is the default, and no name was given.
    #[error("the project has several workers ({}); set `:default t` in one, or select one", known.join(", "))]
    Several {
        /// The names of the workers.
        known: Vec<String>,
    },
    /// The spec of the worker has errors.
    #[error("the worker `{name}` has errors; see `deftool check`")]
    Broken {
        /// Its name.
        name: String,
    },
}

/// An error of [`OpenWorker::start`].
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The project does not exist or cannot be read.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The worker is unknown, ambiguous or has errors.
    #[error(transparent)]
    Worker(#[from] ChooseError),
    /// The file of `:bios` cannot be read.
    #[error("{0}")]
    Bios(String),
    /// The working directory of the managed server is not known.
    #[error("{0}")]
    Folder(String),
    /// No server was found.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The spec needs permissions that were not granted: to start a server, to contact a remote server, to send a key, or
    /// to read a BIOS outside of the project.
    #[error(
        "not trusted: {}; review the specs, then grant trust with `OpenWorker::trust`",
        missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
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
}

/// An error of [`Worker::ask`].
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The request was not accepted.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The result was dropped before it was read: the worker keeps too few results.
    #[error(transparent)]
    Result(#[from] ResultError),
}

/// A builder of a worker, created by [`Worker::open`]. Defaults come from the worker's spec.
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
    scripts: RunnerOptions,
    own_tools: Vec<OwnTool>,
    observer: Option<Arc<dyn Observer>>,
}

/// Does not print the key.
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
    /// Creates a builder for a worker of the project that contains `folder`. The tools are those of the project and are
    /// hot-reloaded.
    ///
    /// By default, scripts may only read the project. Use [`OpenWorker::trust`] to grant what the specs request.
    pub fn open(folder: impl AsRef<Path>) -> OpenWorker {
        OpenWorker {
            folder: folder.as_ref().to_owned(),
            name: None,
            endpoint: None,
            model: None,
            api_key: None,
            trust: Box::new(Trust::Only(Arc::new(PermissionSet::default()))),
            approvals: Approvals::default(),
            queue: 0,
            bios: None,
            scripts: RunnerOptions::default(),
            own_tools: Vec::new(),
            observer: None,
        }
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
        self.endpoint = Some(url.into());
        self
    }

    /// Sets the model name. Default: the model of the spec, then the first model of the server.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// Sets the API key. Default: the environment variable of `:api-key-env` in the spec, then `OPENAI_API_KEY`. The
    /// key from `OPENAI_API_KEY` is not sent to a server that deftool found by itself.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Sets the permissions that are granted to the project's scripts: [`Trust::Everything`], or a decision for each
    /// generation.
    #[must_use]
    pub fn trust(mut self, trust: impl TrustSource + 'static) -> Self {
        self.trust = Box::new(trust);
        self
    }

    /// Sets the handling of calls of tools with `:confirm`. By default, the worker emits an `approval` event and waits
    /// for [`Worker::approve`].
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
        let Self { folder, name, endpoint, model, api_key, trust, approvals, .. } = self;
        let Self { queue, bios, scripts, own_tools, observer, .. } = self;
        let root = find_root(&std::path::absolute(&folder).unwrap_or(folder))?;
        let project = LiveProject::open_for_worker(&root, &root, name.as_deref())?;
        let generation = project.current();
        let mut spec = choose_worker(&generation.load, name.as_deref())?;
        spec.api = Some(api_of(&spec, endpoint.as_deref()));
        let key = api_key.clone().or_else(|| environment(&spec.api_key_env));
        // A key from the caller needs no permission.
        let sends_key = api_key.is_none() && key.is_some();
        let missing = server_permission_request(&generation.load, &spec, endpoint.as_deref()).into_iter();
        let missing = missing
            .chain(bios_permission_request(&generation.load, &spec))
            .chain(endpoint_permission_request(&generation.load, &spec, endpoint.as_deref(), sends_key))
            .collect();
        let missing = trust.of(&generation).refused(missing);
        if !missing.is_empty() {
            return Err(OpenError::NotTrusted { missing });
        }
        let mut config = WorkerConfig::of_project(&root, &spec).map_err(OpenError::Bios)?;
        (config.queue, config.approvals, config.observer) = (queue, approvals, observer);
        if let Some(bios) = bios {
            config.bios = bios;
        }
        let model = model.or_else(|| spec.model.clone());
        let scripts = Arc::new(ScriptRunner::new(scripts));
        let tools: Arc<dyn ToolSource> =
            Arc::new(ProjectTools::new(Arc::new(project), spec.clone(), trust, scripts));
        let tools = if own_tools.is_empty() {
            tools
        } else {
            Arc::new(JoinedTools::new(tools, Arc::new(source_of_own_tools(own_tools))))
        };
        if let (None, Some(server)) = (&endpoint, &spec.server) {
            if !has_guard() {
                return Err(OpenError::NoGuard);
            }
            let dialect = spec.dialect;
            let server = ServerOptions::of_spec(server, &root).map_err(OpenError::Folder)?;
            let options = ServerOptions { key, model, dialect, ..server };
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
                worker.stopped().await;
                Err(error)
            }
        }
    }
}

impl Worker {
    /// Finds the endpoint and starts a worker for it, configured with the detected capabilities of the server.
    ///
    /// # Errors
    /// When no endpoint is found.
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

    /// Submits a prompt and waits for its outcome. Dropping the future cancels the request.
    ///
    /// # Errors
    /// When the request is not accepted. A failed request is not an error: its outcome has the failure and the text.
    pub async fn ask(&self, prompt: impl Into<String>) -> Result<Arc<Outcome>, AskError> {
        let mut reply = self.stream(SubmitRequest::prompt(prompt))?;
        while reply.next().await.is_some() {}
        Ok(reply.outcome()?)
    }
}

/// The worker of a project without workers.
pub const DEFAULT_WORKER: &str = "default";

/// Returns the named worker. Without a name: the one with `:default t`, the one called [`DEFAULT_WORKER`], or the only one.
///
/// # Errors
/// When the worker is unknown or has errors, or when the project has several workers and no name is given.
pub fn choose_worker(load: &Load, name: Option<&str>) -> Result<WorkerSpec, ChooseError> {
    let known = || load.workers.iter().map(|worker| worker.name.value.clone()).collect::<Vec<_>>();
    let chosen = match (name, load.workers.as_slice()) {
        (None | Some(DEFAULT_WORKER), []) => return Ok(WorkerSpec::named(DEFAULT_WORKER)),
        (Some(name), workers) => {
            let found = workers.iter().find(|worker| worker.name.value == name);
            found.ok_or_else(|| ChooseError::Unknown {
                name: name.to_owned(),
                known: if workers.is_empty() {
                    String::from("the project has no workers")
                } else {
                    format!("known workers: {}", known().join(", "))
                },
            })?
        }
        (None, [only]) => only,
        (None, workers) => default_of(workers).ok_or_else(|| ChooseError::Several { known: known() })?,
    };
    if chosen.valid {
        Ok(chosen.clone())
    } else {
        Err(ChooseError::Broken { name: chosen.name.value.clone() })
    }
}

/// Returns the worker that is used where none is named.
pub fn default_of(workers: &[WorkerSpec]) -> Option<&WorkerSpec> {
    let is_called_default = |worker: &&WorkerSpec| worker.name.value == DEFAULT_WORKER;
    let marked = workers.iter().find(|worker| worker.is_default);
    marked.or_else(|| workers.iter().find(is_called_default))
}

/// Returns the value of an environment variable that is not blank.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test of this crate sets a guard.
    #[tokio::test]
    async fn a_managed_server_requires_a_guard() {
        let folder = tempfile::tempdir().unwrap();
        let spec = r#"(defworker :name "w" :server (:command ["server" "{port}"]))"#;
        std::fs::create_dir(folder.path().join("specs")).unwrap();
        std::fs::write(folder.path().join("specs/w.eld"), spec).unwrap();
        let unguarded = Worker::open(folder.path()).trust(Trust::Everything).start().await.unwrap_err();
        assert!(matches!(unguarded, OpenError::NoGuard), "{unguarded}");
    }
}
