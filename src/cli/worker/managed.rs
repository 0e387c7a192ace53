//! A worker that starts its own server: what is said while it loads, and its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Interrupts;
use crate::cli::args::WorkerOptions;
use crate::cli::output::{clean, cut, say, stderr_is_terminal};
use crate::cli::spinner::Spinner;
use crate::cli::{CliError, locate};
use crate::project::find_root;
use crate::spec::{Dialect, ServerSpec};
use crate::worker::{GuardProgram, NotReady, ServerOptions, ToolSource, Worker, WorkerConfig};

/// How often what the server says is shown anew.
const PACE: Duration = Duration::from_millis(200);
/// As much of it as a line holds.
const MAX_SHOWN: usize = 100;

/// Starts the server and waits until it is ready.
///
/// # Errors
/// When it cannot be started, ends, or does not answer in time: with its last lines.
pub(super) async fn start(
    options: &WorkerOptions,
    server: &ServerSpec,
    key: Option<String>,
    (model, dialect): (Option<String>, Option<Dialect>),
    config: WorkerConfig,
    tools: Arc<dyn ToolSource>,
) -> Result<Worker, CliError> {
    let root = find_root(&locate(options.project.as_deref())?.folder)?;
    let guard = GuardProgram::this_program(["server-guard"]).map_err(CliError::Runtime)?;
    let server = ServerOptions { key, model, dialect, ..ServerOptions::of_spec(server, &root, guard) };
    let begun = Instant::now();
    let worker = Worker::start_managed(config, tools, server);
    let ready = wait_until_ready(&worker).await;
    if let Err(error) = ready {
        worker.stop();
        worker.gone().await;
        return Err(CliError::Usage(error.reason.unwrap_or_else(|| String::from("the server is not ready"))));
    }
    let endpoint = worker.status().endpoint.unwrap_or_default();
    say(&format!("server ready at {endpoint} after {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(worker)
}

/// Waits for a managed server, through its restarts, and shows what it says meanwhile.
///
/// # Errors
/// When it will not be ready without a person's doing.
pub(super) async fn wait_until_ready(worker: &Worker) -> Result<(), NotReady> {
    let loading = Loading::new();
    let ready = worker.ready();
    tokio::pin!(ready);
    loop {
        tokio::select! {
            ready = &mut ready => return ready,
            () = tokio::time::sleep(PACE) => {
                loading.show(worker.recent_logs(1).first().map(String::as_str));
            }
        }
    }
}

/// Stops a worker and, where it has one, waits for its server's end; not if the user asks again.
pub(in crate::cli) async fn close(worker: &Worker, interrupts: &mut Interrupts) {
    worker.stop();
    tokio::select! {
        () = worker.gone() => {}
        // Its guard sees to it.
        () = interrupts.next() => {}
    }
}

/// What is said while a server loads: a line that moves on a terminal, one that stands elsewhere.
struct Loading(Option<Spinner>);

impl Loading {
    fn new() -> Self {
        const WHAT: &str = "starting the server";
        if stderr_is_terminal() {
            return Self(Some(Spinner::start(WHAT)));
        }
        say(WHAT);
        Self(None)
    }

    fn show(&self, line: Option<&str>) {
        if let (Some(spinner), Some(line)) = (&self.0, line) {
            spinner.say(&format!("starting the server: {}", cut(&clean(line), MAX_SHOWN)));
        }
    }
}
