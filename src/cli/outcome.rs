//! Shared by all commands: the exit codes, the errors, and the runtime.

use std::net::SocketAddr;
use std::process::ExitCode;

use deftool_engine::OpenError;
use deftool_project::ProjectError;
use deftool_record::{StoredFileError, TimelineError};
use deftool_worker::EndpointError;
use tokio::runtime::{Builder, Runtime};

use crate::cli::terminal::interrupt::{exit_code, is_ending};

pub(in crate::cli) use deftool_engine::environment;

/// The outcome of a command, mapped to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Exit {
    /// Success: no error findings, or completed.
    Clean,
    /// Error findings, or a failed request or call.
    Failed,
    /// Nothing was attempted.
    NotAttempted,
    /// The results are not enough to decide.
    Undecided,
    /// Ctrl-C or another signal.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            // A signal killed the program of the failed call.
            Exit::Failed if is_ending() => exit_code(),
            Exit::Clean => 0,
            Exit::Failed => 1,
            Exit::NotAttempted => 2,
            Exit::Undecided => 3,
            Exit::Interrupted => exit_code(),
        })
    }
}

/// The reason why nothing was attempted, printed to stderr on one line.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum CliError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Stored(#[from] StoredFileError),
    #[error(transparent)]
    Timeline(#[from] TimelineError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("cannot write {path}: {source}")]
    Unwritable { path: String, source: std::io::Error },
}

/// Creates a runtime on the current thread.
pub(in crate::cli) fn runtime() -> Result<Runtime, CliError> {
    Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)
}

/// Returns the message for an address that cannot be listened on.
pub(in crate::cli) fn listen_error(address: SocketAddr, error: &std::io::Error) -> String {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => "; choose a different --port, or 0 for a free one",
        std::io::ErrorKind::AddrNotAvailable => "; choose an --address of this machine, or omit it",
        _ => "",
    };
    format!("cannot listen on {address}: {error}{hint}")
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Project(error) => Self::Project(error),
            OpenError::Endpoint(error) => Self::Endpoint(error),
            error => Self::Usage(error.for_command()),
        }
    }
}
