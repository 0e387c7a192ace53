//! The `deftool` command. Only this module depends on all other modules.
//!
//! Results go to stdout, all other messages to stderr. Exit codes of every command: 0 success, 1 error findings or a
//! failed request or call, 2 nothing was attempted, 128 plus the
//! number of the signal that ended it.

mod acp;
mod approve;
mod args;
mod arguments;
mod bench;
mod call;
mod chat;
mod check;
mod check_watch;
mod command;
mod compare;
mod compile;
mod demo;
mod diff;
mod doctor;
mod engine;
mod fix;
mod fmt;
mod generated;
mod import;
mod init;
mod interrupt;
mod journal;
mod lsp;
mod mcp;
mod new;
mod online;
mod output;
mod prompt;
mod replay;
mod report;
mod rerun;
mod revision;
mod rpc;
mod rule;
mod run;
mod script_log;
mod secrets;
mod selection;
#[cfg(feature = "restate")]
mod serve;
mod session;
mod show;
mod spinner;
mod stub;
mod targets;
mod telemetry;
mod test;
mod tool_help;
mod tools;
mod trace;
mod trust;
mod types;
mod version;
mod view;
mod watch;
mod worker;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches};
use clap_complete::Shell;
use serde_json::json;

use args::{Arguments, Command};
use command::{CliError, Exit};

/// Runs the command given on the command line.
pub fn main() -> ExitCode {
    deftool_script::return_large_blocks();
    // The processes that deftool starts itself have no options.
    let result = match std::env::args_os().nth(1).as_deref().and_then(OsStr::to_str) {
        Some(engine::SCRIPT_HOST) => {
            engine::prepare(None).and_then(|()| deftool_script::serve_isolated().map_err(CliError::Runtime))
        }
        Some(engine::GUARD) => deftool_process::serve_guard().map_err(CliError::Runtime),
        _ => return run(),
    };
    finish(result.map(|()| Exit::Clean), false)
}

/// Parses the command line and runs the command. clap exits with 2 on usage errors and with 0 on --help and --version.
fn run() -> ExitCode {
    let matches = args::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    output::choose_color(arguments.color);
    let prepared = engine::prepare(arguments.command.scripts());
    let result = prepared.and_then(|()| match arguments.command {
        Command::Check(options) => check::run(&options),
        Command::Fmt(options) => fmt::run(&options),
        Command::Compile(options) => compile::run(&options),
        Command::Diff(options) => compare::run(&options),
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
        Command::View(options) => view::run(&options),
        Command::Watch(options) => watch::run(&options),
        Command::Lsp(_) => Ok(lsp::run()),
        Command::Mcp(options) => mcp::run(&options),
        Command::Rpc(options) => rpc::run(&options),
        #[cfg(feature = "restate")]
        Command::Serve(options) => serve::run(&options),
        Command::Acp(options) => acp::run(&options),
        Command::Resume(options) => journal::run_resume(&options),
        Command::Requests(options) => journal::run_requests(&options),
        Command::Init(options) => init::run(&options),
        Command::Demo => demo::run(),
        Command::New(options) => new::run(&options),
        Command::Rule(options) => rule::run(&options),
        Command::Trust(options) => trust::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Tools(options) => tools::run(&options),
        Command::Completions(options) => Ok(completions(options.shell)),
        Command::Man(options) => write_manual(&options.folder),
    });
    finish(result, prints_json(&matches))
}

/// Returns whether the command has the option `--json` or `--format json`.
fn prints_json(matches: &ArgMatches) -> bool {
    let Some((_, options)) = matches.subcommand() else {
        let has_flag = matches.try_get_one::<bool>("json").is_ok_and(|flag| flag == Some(&true));
        let format = matches.try_get_raw("format").ok().flatten();
        return has_flag || format.is_some_and(|mut words| words.any(|word| word == "json"));
    };
    prints_json(options)
}

fn completions(shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "deftool", &mut script);
    output::print(&String::from_utf8_lossy(&script));
    Exit::Clean
}

fn write_manual(folder: &Path) -> Result<Exit, CliError> {
    let unwritable = |source| CliError::Unwritable { path: folder.display().to_string(), source };
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    clap_mangen::generate_to(args::command(), folder).map_err(unwritable)?;
    Ok(Exit::Clean)
}

/// Ends the programs of scripts and the export of telemetry, reports errors, also on stdout with `json`, and returns the
/// exit code.
fn finish(result: Result<Exit, CliError>, json: bool) -> ExitCode {
    // No program started by a script may outlive this process.
    deftool_process::kill_programs();
    telemetry::finish();
    match result {
        Ok(exit) => match output::stdout_error() {
            Some(error) => {
                output::eprint_error(&format!("cannot write the result to stdout: {error}"));
                Exit::Failed.into()
            }
            None => exit.into(),
        },
        Err(error) => {
            if json {
                let error = json!({"kind": "not_attempted", "message": error.to_string()});
                output::print_json(&json!({"error": error}), false);
            }
            output::eprint_error(&error.to_string());
            Exit::NotAttempted.into()
        }
    }
}
