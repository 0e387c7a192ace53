//! Shared by all commands: the exit codes, the errors, the folders that a command starts from, and its inputs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use deftool_project::{Input, Load, ProjectError, projects_below, resolve_inputs};
use deftool_worker::{EndpointError, RecordingError, TimelineError};

use super::interrupt::exit_code;

/// The outcome of a command, mapped to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Success: no error findings, or completed.
    Clean,
    /// Error findings, or a failed request or call.
    Failed,
    /// Nothing was attempted.
    NotAttempted,
    /// Ctrl-C or another signal.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::Failed => 1,
            Exit::NotAttempted => 2,
            Exit::Interrupted => exit_code(),
        })
    }
}

/// The reason why nothing was attempted, printed to stderr on one line.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Timeline(#[from] TimelineError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("cannot write {path}: {source}")]
    Unwritable { path: String, source: std::io::Error },
}

/// Returns the message for an address that cannot be listened on.
pub(super) fn listen_error(address: SocketAddr, error: &std::io::Error) -> String {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => "; choose a different --port, or 0 for a free one",
        std::io::ErrorKind::AddrNotAvailable => "; choose an --address of this machine, or omit it",
        _ => "",
    };
    format!("cannot listen on {address}: {error}{hint}")
}

/// The folders that a command starts from.
pub(super) struct CommandDirs {
    /// The current folder. File names in messages are relative to it.
    pub(super) current: PathBuf,
    /// `--project`, or the current folder. The project root is this folder or one of its parents.
    pub(super) project: PathBuf,
}

/// Returns the folders that a command starts from.
///
/// # Errors
/// If `project` cannot be read or is not a folder.
pub(super) fn command_dirs(project: Option<&Path>) -> Result<CommandDirs, CliError> {
    let unreadable = |path: &Path, source| ProjectError::Unreadable { path: path.to_owned(), source };
    let current = std::env::current_dir().map_err(|source| unreadable(Path::new("."), source))?;
    let folder = match project {
        None => current.clone(),
        Some(project) => {
            let folder = current.join(project);
            let metadata = std::fs::metadata(&folder).map_err(|source| unreadable(&folder, source))?;
            if !metadata.is_dir() {
                return Err(CliError::Usage(format!(
                    "--project: `{}` is not a directory",
                    project.display()
                )));
            }
            folder
        }
    };
    Ok(CommandDirs { current, project: folder })
}

/// Resolves `paths` to inputs. Without paths, returns the files of the project.
///
/// # Errors
/// If the paths contain no spec file.
pub(super) fn inputs_of(paths: &[PathBuf], folder: &Path) -> Result<Vec<Input>, CliError> {
    let inputs = resolve_inputs(paths, folder)?;
    if !paths.is_empty() && inputs.iter().all(Input::is_empty) {
        let message = "no spec files found; spec files have the extension .eld, .el, .lisp or .sexp; Org files are read if they are named";
        return Err(CliError::Usage(String::from(message)));
    }
    Ok(inputs)
}

/// Refuses a project that defines nothing, unless its files were named: a check of nothing must not pass.
///
/// # Errors
/// If no paths were given and `load` is empty.
pub(super) fn refuse_nothing(paths: &[PathBuf], load: &Load) -> Result<(), CliError> {
    match &load.root {
        Some(root) if paths.is_empty() && load.is_empty() => {
            let (root, below) = (root.clone(), projects_below(root));
            Err(ProjectError::NothingDefined { root, below }.into())
        }
        _ => Ok(()),
    }
}

/// Returns the value of an environment variable, unless it is blank.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
