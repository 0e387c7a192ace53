//! Workers with a managed server: start-up progress and shutdown.

use std::time::{Duration, Instant};

use deftool_engine::{OpenError, ready_or_stopped};
use deftool_worker::{NotReady, Worker};

use crate::cli::outcome::CliError;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{clean, cut, eprint_progress, shows_progress};
use crate::cli::terminal::spinner::Spinner;

/// Refresh interval of the progress message.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum length of a log line in the progress message, in characters.
const MAX_SHOWN: usize = 100;

/// Waits until the server that a worker starts is ready.
///
/// # Errors
/// If the server cannot be started, exits, or is not ready in time. The error contains its last log lines.
pub(super) async fn ready(worker: Worker) -> Result<Worker, CliError> {
    let begun = Instant::now();
    let worker = ready_or_stopped(worker, wait_until_ready).await.map_err(OpenError::NotReady)?;
    let endpoint = worker.status().endpoint.unwrap_or_default();
    eprint_progress(&format!("server ready at {endpoint} after {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(worker)
}

/// Waits for a managed server, including restarts, and shows its log lines.
///
/// # Errors
/// If the server will not become ready without user action.
pub(super) async fn wait_until_ready(worker: &Worker) -> Result<(), NotReady> {
    let progress = StartupProgress::new();
    let ready = worker.ready();
    tokio::pin!(ready);
    loop {
        tokio::select! {
            ready = &mut ready => return ready,
            () = tokio::time::sleep(REFRESH_INTERVAL) => {
                progress.show(worker.recent_logs(1).first().map(String::as_str));
            }
        }
    }
}

/// Stops a worker and waits for the end of its managed server, unless the user interrupts again.
pub(in crate::cli) async fn close(worker: &Worker, interrupts: &mut Interrupts) {
    worker.stop();
    tokio::select! {
        () = worker.stopped() => {}
        // The guard process ends the server.
        () = interrupts.next() => {}
    }
}

/// Start-up progress of a server: a spinner on a terminal, otherwise a single line.
struct StartupProgress(Option<Spinner>);

impl StartupProgress {
    fn new() -> Self {
        const MESSAGE: &str = "starting the server";
        if shows_progress() {
            return Self(Some(Spinner::start(MESSAGE)));
        }
        eprint_progress(MESSAGE);
        Self(None)
    }

    fn show(&self, line: Option<&str>) {
        if let (Some(spinner), Some(line)) = (&self.0, line) {
            spinner.set_message(&format!("starting the server: {}", cut(&clean(line), MAX_SHOWN)));
        }
    }
}
