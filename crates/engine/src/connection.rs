//! How a worker reaches its model server.

use std::path::Path;
use std::sync::Arc;

use deftool_lang::spec::WorkerSpec;
use deftool_process::has_guard;
use deftool_project::{Load, PermissionRequest};
use deftool_worker::{
    EndpointOptions, HttpTransport, NotReady, ServerOptions, ToolSource, Worker, WorkerConfig,
    endpoint_permission_request, names_key, server_permission_request,
};

use crate::OpenError;
use crate::folders::environment;

/// Where requests go if no server was searched for: the default port of llama.cpp.
const LOCAL: &str = "http://127.0.0.1:8080/v1";

/// What the caller sets for the model server. Replaces what the spec of a worker sets.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// Base URL, including `/v1`.
    pub endpoint: Option<String>,
    /// Model name.
    pub model: Option<String>,
    /// API key.
    pub api_key: Option<String>,
}

/// What names the URL of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointOrigin {
    /// The caller.
    Caller,
    /// The spec of the worker.
    Worker,
    /// `OPENAI_BASE_URL`.
    Environment,
}

impl Connection {
    /// Returns the URL of the server of a worker, and what names it: the caller, then the spec, then `OPENAI_BASE_URL`.
    /// `None`: a server on this machine is searched for.
    pub fn endpoint_of(&self, spec: &WorkerSpec) -> Option<(String, EndpointOrigin)> {
        let by_caller = self.endpoint.clone().map(|url| (url, EndpointOrigin::Caller));
        let by_worker = || spec.endpoint.clone().map(|url| (url, EndpointOrigin::Worker));
        let by_environment =
            || Some((environment("OPENAI_BASE_URL")?.trim().to_owned(), EndpointOrigin::Environment));
        by_caller.or_else(by_worker).or_else(by_environment)
    }

    /// Returns the API key of a worker: that of the caller, then that of its environment variable.
    pub fn key_of(&self, spec: &WorkerSpec) -> Option<String> {
        self.api_key.clone().or_else(|| Some(environment(&spec.api_key_env)?.trim().to_owned()))
    }

    /// Returns the name of the model, if it is set.
    pub fn model_of(&self, spec: &WorkerSpec) -> Option<String> {
        self.model.clone().or_else(|| spec.model.clone())
    }

    /// Returns whether the worker starts its own server.
    pub fn starts_server(&self, spec: &WorkerSpec) -> bool {
        self.endpoint.is_none() && spec.server.is_some()
    }

    /// Returns the permissions that a worker requires for its server and its key. A key of the caller requires none.
    pub fn permission_requests(&self, load: &Load, spec: &WorkerSpec) -> Vec<PermissionRequest> {
        let named = self.endpoint.as_deref();
        let sends_key = self.api_key.is_none() && self.key_of(spec).is_some();
        let endpoint = endpoint_permission_request(load, spec, named, sends_key);
        endpoint.into_iter().chain(server_permission_request(load, spec, named)).collect()
    }

    /// Connects a worker of the project at `root` to its server. If the worker starts its own server, this returns before
    /// it is ready. If `must_listen` is set, an unreachable server is reported now instead of at the first request.
    ///
    /// # Errors
    /// If there is no endpoint, if `must_listen` is set and nothing listens there, or if the worker starts its own server and
    /// there is no guard.
    pub async fn connect(
        &self,
        (spec, root): (&WorkerSpec, &Path),
        config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        must_listen: bool,
    ) -> Result<Worker, OpenError> {
        let (key, model, dialect) = (self.key_of(spec), self.model_of(spec), config.dialect);
        if let (None, Some(server)) = (&self.endpoint, &spec.server) {
            if !has_guard() {
                return Err(OpenError::NoGuard);
            }
            let server = ServerOptions::of_spec(server, root).map_err(OpenError::Unusable)?;
            let dialects = config.dialects.clone();
            let key_variable = spec.api_key_env.clone();
            let server = ServerOptions { key, key_variable, model, dialect, dialects, ..server };
            return Ok(Worker::start_managed(config, tools, server));
        }
        let options = EndpointOptions {
            endpoint: self.endpoint_of(spec).map(|(url, _)| url),
            model,
            key,
            connect: spec.timers.connect,
            dialect,
            key_for_found: self.api_key.is_some() || names_key(spec),
            must_listen,
            dialects: config.dialects.clone(),
        };
        Ok(Worker::connect(config, tools, options).await?)
    }

    /// Returns a worker that sends nothing before its first request: it needs no server for requests that have ended.
    ///
    /// # Errors
    /// If the URL of the endpoint is invalid.
    pub fn without_probes(
        &self,
        spec: &WorkerSpec,
        config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
    ) -> Result<Worker, OpenError> {
        let base = self.endpoint_of(spec).map_or_else(|| String::from(LOCAL), |(url, _)| url);
        let transport = HttpTransport::new(&base, self.key_of(spec), spec.timers.connect);
        Ok(Worker::start(config, tools, Arc::new(transport.map_err(OpenError::Unusable)?)))
    }
}

/// Waits until the server of a worker is ready, with `wait`, and stops the worker if it will not be.
///
/// # Errors
/// If the server cannot be started, exits, or is not ready in time.
pub async fn ready_or_stopped(
    worker: Worker,
    wait: impl AsyncFnOnce(&Worker) -> Result<(), NotReady>,
) -> Result<Worker, NotReady> {
    match wait(&worker).await {
        Ok(()) => Ok(worker),
        Err(error) => {
            worker.stop();
            worker.stopped().await;
            Err(error)
        }
    }
}
