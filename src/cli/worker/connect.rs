//! From a worker's spec to a worker that talks to its server.

use std::sync::Arc;

use super::{api_key, environment, managed};
use crate::cli::CliError;
use crate::cli::args::WorkerOptions;
use crate::spec::WorkerSpec;
use crate::worker::{EndpointOptions, ToolSource, Worker, WorkerConfig};

/// Settles the endpoint and starts the worker.
///
/// # Errors
/// When there is no endpoint, or the worker's own server cannot be started.
pub(in crate::cli) async fn connect(
    options: &WorkerOptions,
    spec: &WorkerSpec,
    config: WorkerConfig,
    tools: Arc<dyn ToolSource>,
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
    };
    Ok(Worker::connect(config, tools, options).await?)
}
