//! Connects a worker to its servers, with progress for the user.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deftool_engine::{Connection, Servers};
use deftool_lang::spec::WorkerSpec;
use deftool_mcp::RemoteTools;
use deftool_project::Generation;
use deftool_record::Secrets;
use deftool_worker::{ToolSource, Worker, WorkerConfig};

use super::managed;
use super::options::WorkerOptions;
use crate::cli::outcome::CliError;
use crate::cli::terminal::output::{notices, shows_progress};
use crate::cli::terminal::spinner::Spinner;

/// Delay before the spinner is shown.
const SPINNER_DELAY: Duration = Duration::from_millis(500);

/// Returns the API key of the worker, if its environment variable is set.
pub(in crate::cli) fn api_key(spec: &WorkerSpec) -> Option<String> {
    Connection::default().key_of(spec)
}

/// Returns the secrets of a run with the tools of `generation`, and the matches of `--redact`.
///
/// # Errors
/// If a pattern is not a valid regular expression.
pub(in crate::cli) fn secrets(patterns: &[String], generation: &Generation) -> Result<Secrets, CliError> {
    deftool_engine::secrets(patterns, generation).map_err(CliError::Usage)
}

/// Connects a worker of the project at `root` to its server, and waits for a server that the worker starts. If `must_listen`
/// is set, an unreachable server is reported now instead of at the first request.
///
/// # Errors
/// If there is no endpoint, if `must_listen` is set and nothing listens there, or if the managed server does not start.
pub(in crate::cli) async fn connect(
    options: &WorkerOptions,
    of_worker: (&WorkerSpec, &Path),
    config: WorkerConfig,
    tools: Arc<dyn ToolSource>,
    must_listen: bool,
) -> Result<Worker, CliError> {
    let connection = options.connection();
    let message = match &options.endpoint {
        Some(url) => format!("connecting to {url}"),
        None => String::from("searching for a server on this machine"),
    };
    let worker = with_spinner(&message, connection.connect(of_worker, config, tools, must_listen)).await?;
    if connection.starts_server(of_worker.0) { managed::ready(worker).await } else { Ok(worker) }
}

/// Connects to the MCP servers of a worker.
///
/// # Errors
/// If a server cannot be used.
pub(in crate::cli) async fn connect_servers(servers: &Servers) -> Result<Option<Arc<RemoteTools>>, CliError> {
    Ok(with_spinner("starting the MCP servers", servers.connect(&notices())).await?)
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
