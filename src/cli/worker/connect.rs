//! From a worker's spec to a worker that talks to its server.

use std::sync::Arc;
use std::time::Duration;

use super::{api_key, environment, managed};
use crate::cli::CliError;
use crate::cli::args::WorkerOptions;
use crate::cli::output::stderr_is_terminal;
use crate::cli::spinner::Spinner;
use crate::spec::WorkerSpec;
use crate::worker::{EndpointOptions, ToolSource, Worker, WorkerConfig, names_key};

/// A server that says sooner what it is needs no word about it.
const SOON: Duration = Duration::from_millis(500);

/// Settles the endpoint and starts the worker. `must_listen`: a server that is not there is an error at once, and not
/// that of the first request.
///
/// # Errors
/// When there is no endpoint, nobody listens there though somebody must, or the worker's own server cannot be started.
pub(in crate::cli) async fn connect(
    options: &WorkerOptions,
    spec: &WorkerSpec,
    config: WorkerConfig,
    tools: Arc<dyn ToolSource>,
    must_listen: bool,
) -> Result<Worker, CliError> {
    let key = api_key(spec);
    if let (None, Some(server)) = (&options.endpoint, &spec.server) {
        return managed::start(
            options,
            server,
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
    let what = match &options.endpoint {
        Some(url) => format!("asking {url} what it is"),
        None => String::from("looking for a server on this machine"),
    };
    Ok(told(&what, Worker::connect(config, tools, options)).await?)
}

/// Says on a terminal what is waited for, if it takes long.
async fn told<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(SOON, &mut work).await {
        return done;
    }
    let _spinner = stderr_is_terminal().then(|| Spinner::start(what));
    work.await
}
