//! The `deftool` command. Only this module combines all other modules.
//!
//! Results go to stdout, all other messages to stderr. Exit codes of every command: 0 success, 1 error findings or a
//! failed request or call, 2 nothing was attempted, 130 interrupted.

mod approve;
mod args;
mod arguments;
mod bench;
mod call;
mod chat;
mod check;
mod check_watch;
mod compile;
mod diff;
mod doctor;
mod engine;
mod fix;
mod fmt;
mod import;
mod init;
mod interrupt;
mod new;
mod output;
mod replay;
mod report;
mod rerun;
mod rule;
mod run;
mod script_log;
mod secrets;
mod show;
mod spinner;
mod stub;
mod targets;
mod test;
mod trust;
mod types;
mod watch;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use deftool_project::{Input, ProjectError, resolve_inputs};
use deftool_worker::{EndpointError, RecordingError};

use args::{Arguments, Command};

/// The outcome of a command, mapped to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// Success: no error findings, or completed.
    Clean,
    /// Error findings, or a failed request or call.
    Failed,
    /// Nothing was attempted.
    NotAttempted,
    /// Ctrl-C.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::Failed => 1,
            Exit::NotAttempted => 2,
            Exit::Interrupted => interrupt::EXIT_CODE,
        })
    }
}

/// The reason why nothing was attempted, printed to stderr on one line.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("cannot write {path}: {source}")]
    Unwritable { path: String, source: std::io::Error },
}

/// The folders that a command starts from.
struct CommandDirs {
    /// The current folder. File names in messages are relative to it.
    current: PathBuf,
    /// `--project`, or the current folder. The project root is this folder or one of its parents.
    project: PathBuf,
}

/// Returns the folders that a command starts from.
///
/// # Errors
/// If `project` cannot be read or is not a folder.
fn command_dirs(project: Option<&Path>) -> Result<CommandDirs, CliError> {
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
fn inputs_of(paths: &[PathBuf], folder: &Path) -> Result<Vec<Input>, CliError> {
    let inputs = resolve_inputs(paths, folder)?;
    if !paths.is_empty() && inputs.iter().all(Input::is_empty) {
        let message = "no spec files found; spec files have the extension .eld, .el, .lisp or .sexp";
        return Err(CliError::Usage(String::from(message)));
    }
    Ok(inputs)
}

/// Runs a child process of `--isolate process`.
fn script_host() -> Result<Exit, CliError> {
    deftool_script::serve_isolated().map(|()| Exit::Clean).map_err(CliError::Runtime)
}

/// Runs the guard process between a worker and its managed server.
fn server_guard() -> Result<Exit, CliError> {
    deftool_worker::guard_server().map(|()| Exit::Clean).map_err(CliError::Runtime)
}

/// Runs the command given on the command line.
pub fn main() -> ExitCode {
    // clap exits with 2 on usage errors and with 0 on --help and --version.
    let arguments = Arguments::parse();
    output::choose_color(arguments.color);
    let prepared = engine::prepare(&arguments.command);
    let result = prepared.and_then(|()| match arguments.command {
        Command::Check(options) => check::run(&options),
        Command::Fmt(options) => fmt::run(&options),
        Command::Compile(options) => compile::run(&options),
        Command::Targets(options) => Ok(targets::run(&options)),
        Command::Import(options) => import::run(&options),
        Command::Types(options) => types::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Call(options) => call::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Run(options) => run::run(&options),
        Command::Chat(options) => chat::run(&options),
        Command::Stub(options) => stub::run(&options),
        Command::Replay(options) => replay::run(&options),
        Command::Watch(options) => watch::run(&options),
        Command::Init(options) => init::run(&options),
        Command::New(options) => new::run(&options),
        Command::Rule(options) => rule::run(&options),
        Command::Trust(options) => trust::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::ScriptHost { .. } => script_host(),
        Command::ServerGuard => server_guard(),
    });
    // No program started by a script may outlive this process.
    deftool_script::kill_programs();
    match result {
        Ok(exit) => match output::stdout_error() {
            Some(error) => {
                output::eprint_error(&format!("cannot write the result to stdout: {error}"));
                Exit::Failed.into()
            }
            None => exit.into(),
        },
        Err(error) => {
            output::eprint_error(&error.to_string());
            Exit::NotAttempted.into()
        }
    }
}
