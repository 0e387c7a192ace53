//! The `deftool` command. Only this module depends on all other modules.
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
mod command;
mod compile;
mod diff;
mod doctor;
mod engine;
mod fix;
mod fmt;
mod generated;
mod import;
mod init;
mod interrupt;
mod new;
mod output;
mod prompt;
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

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use command::{CliError, Exit};

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
