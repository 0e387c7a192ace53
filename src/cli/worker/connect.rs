//! Connects a worker to its server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::spec::WorkerSpec;
use deftool_worker::{EndpointOptions, HttpTransport, ToolSource, Worker, WorkerConfig, names_key};

use super::managed;
use super::options::WorkerOptions;
use crate::cli::outcome::{CliError, environment};
use crate::cli::terminal::output::shows_progress;
use crate::cli::terminal::spinner::Spinner;

/// Delay before the spinner is shown.
const SPINNER_DELAY: Duration = Duration::from_millis(500);

/// Returns the API key of the worker, if its environment variable is set.
pub(in crate::cli) fn api_key(spec: &WorkerSpec) -> Option<String> {
    environment(&spec.api_key_env).map(|key| key.trim().to_owned())
}

/// Resolves the endpoint and starts the worker of the project at `root`. If `must_listen` is set, an unreachable server is
/// reported now instead of at the first request.
///
/// # Errors
/// If there is no endpoint, if `must_listen` is set and nothing listens there, or if the managed server does not start.
pub(in crate::cli) async fn connect(
    options: &WorkerOptions,
    (spec, root): (&WorkerSpec, &Path),
    config: WorkerConfig,
    tools: Arc<dyn ToolSource>,
    must_listen: bool,
) -> Result<Worker, CliError> {
    let key = api_key(spec);
    if let (None, Some(server)) = (&options.endpoint, &spec.server) {
        return managed::start(
            (server, root),
            key,
            (options.model.clone().or_else(|| spec.model.clone()), spec.dialect),
            config,
            tools,
        )
        .await;
    }
    let configured = options.endpoint.clone().or_else(|| spec.endpoint.clone());
    let options = EndpointOptions {
        endpoint: configured.or_else(|| environment("OPENAI_BASE_URL")),
        model: options.model.clone().or_else(|| spec.model.clone()),
        key,
        connect: spec.timers.connect,
        dialect: spec.dialect,
        key_for_found: names_key(spec),
        must_listen,
    };
    let message = match &options.endpoint {
        Some(url) => format!("connecting to {url}"),
        None => String::from("searching for a server on this machine"),
    };
    Ok(with_spinner(&message, Worker::connect(config, tools, options)).await?)
}

/// Returns a worker that sends nothing before its first request: it needs no server for requests that have ended.
///
/// # Errors
/// If the URL of the endpoint is invalid.
pub(in crate::cli) fn without_probes(
    options: &WorkerOptions,
    spec: &WorkerSpec,
    config: WorkerConfig,
    tools: Arc<dyn ToolSource>,
) -> Result<Worker, CliError> {
    let configured = options.endpoint.clone().or_else(|| spec.endpoint.clone());
    let base = configured.or_else(|| environment("OPENAI_BASE_URL"));
    let base = base.as_deref().unwrap_or("http://127.0.0.1:8080/v1");
    let transport = HttpTransport::new(base, api_key(spec), spec.timers.connect).map_err(CliError::Usage)?;
    Ok(Worker::start(config, tools, Arc::new(transport)))
}

/// Awaits `work` and shows a spinner with `message` if it takes longer than [`SPINNER_DELAY`].
pub(in crate::cli) async fn with_spinner<T>(message: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(SPINNER_DELAY, &mut work).await {
        return done;
    }
    let _spinner = shows_progress().then(|| Spinner::start(message));
    work.await
}
