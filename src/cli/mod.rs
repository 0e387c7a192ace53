//! The `deftool` command. The only place where everything meets.
//!
//! stdout is the result, stderr is everything said about it. Exit codes, the same for every command: 0 clean or
//! completed, 1 an error finding or a failed request or call, 2 nothing was attempted, 130 interrupted.

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

use crate::project::{Input, ProjectError, resolve_inputs};
use crate::worker::{EndpointError, RecordingError};
use args::{Arguments, Command};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// Clean, or completed.
    Clean,
    /// An error finding, a failed request or call.
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
            Exit::Interrupted => interrupt::CODE,
        })
    }
}

/// Why nothing was attempted. One line, said on stderr.
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
    #[error("cannot start the engine: {0}")]
    Runtime(std::io::Error),
    #[error("cannot write {path}: {source}")]
    Unwritable { path: String, source: std::io::Error },
}

/// Where a command was started, and where its project is looked for.
struct Place {
    /// The current folder; names in messages are relative to it.
    current: PathBuf,
    /// `--project`, or the current folder.
    folder: PathBuf,
}

fn locate(project: Option<&Path>) -> Result<Place, CliError> {
    let unreadable = |path: &Path, source| ProjectError::Unreadable { path: path.to_owned(), source };
    let current = std::env::current_dir().map_err(|source| unreadable(Path::new("."), source))?;
    let folder = match project {
        None => current.clone(),
        Some(project) => {
            let folder = current.join(project);
            let metadata = std::fs::metadata(&folder).map_err(|source| unreadable(&folder, source))?;
            if !metadata.is_dir() {
                return Err(CliError::Usage(format!(
                    "--project takes a folder, and {} is none",
                    project.display()
                )));
            }
            folder
        }
    };
    Ok(Place { current, folder })
}

/// The files that `paths` name; none: the project's.
fn inputs_of(paths: &[PathBuf], folder: &Path) -> Result<Vec<Input>, CliError> {
    let inputs = resolve_inputs(paths, folder)?;
    if !paths.is_empty() && inputs.iter().all(Input::is_empty) {
        let message = "no spec files there: names of spec files end in .eld, .el, .lisp or .sexp";
        return Err(CliError::Usage(String::from(message)));
    }
    Ok(inputs)
}

/// The child's side of `--isolate process`.
fn script_host() -> Result<Exit, CliError> {
    crate::script::serve_isolated().map(|()| Exit::Clean).map_err(CliError::Runtime)
}

/// The process between a worker and the server that it manages.
fn server_guard() -> Result<Exit, CliError> {
    crate::worker::guard_server().map(|()| Exit::Clean).map_err(CliError::Runtime)
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    // clap itself exits with 2 on wrong usage and 0 on --help and --version.
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
    // No program that a script started outlives this one.
    crate::script::kill_programs();
    match result {
        Ok(exit) => match output::stdout_error() {
            Some(error) => {
                output::say_error(&format!("the result cannot be written to stdout: {error}"));
                Exit::Failed.into()
            }
            None => exit.into(),
        },
        Err(error) => {
            output::say_error(&error.to_string());
            Exit::NotAttempted.into()
        }
    }
}
