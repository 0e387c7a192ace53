//! The `deftool` command: `commands`, and what commands share, each part above the next: `worker`, `project`, `terminal`.
//!
//! Results go to stdout, all other messages to stderr. Exit codes of every command: 0 success, 1 error findings or a
//! failed request or call, 2 nothing was attempted, 128 plus the number of the signal that ended it.

mod commands;
mod options;
mod outcome;
mod project;
mod terminal;
mod worker;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use deftool_engine::serve_parent;
use serde_json::json;

use commands::Arguments;
use outcome::{CliError, Exit};
use project::engine::{self, Isolate};
use project::preview;
use terminal::output;

/// Runs the command given on the command line.
pub fn main() -> ExitCode {
    deftool_script::return_large_blocks();
    // The processes that deftool starts itself have no options.
    match serve_parent() {
        Some(served) => finish(served.map(|()| Exit::Clean).map_err(CliError::Runtime), false),
        None => run(),
    }
}

/// Parses the command line and runs the command. clap exits with 2 on usage errors and with 0 on --help and --version.
fn run() -> ExitCode {
    // The text of the help is made only if it is printed.
    let matches = Arguments::command().try_get_matches().or_else(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            commands::command().try_get_matches()
        }
        _ => Err(error),
    });
    let matches = matches.unwrap_or_else(|error| commands::with_new_name(error, &words()).exit());
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    output::choose_color(arguments.color);
    output::set_quiet(arguments.quiet);
    preview::enable(arguments.preview.clone());
    let options = innermost(&matches);
    let isolate = options.try_get_one::<Isolate>("isolate").ok().flatten();
    let result = check_directory(&arguments, &matches)
        .and_then(|()| engine::prepare(isolate.copied()))
        .and_then(|()| arguments.command.run());
    finish(result, prints_json(options))
}

/// Returns the command line.
fn words() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the options of the command or subcommand.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, options)| innermost(options))
}

/// Refuses `-C` for a command that does not use a project. clap passes it to every command.
///
/// # Errors
/// If `-C` is given and the command has no such option.
fn check_directory(arguments: &Arguments, matches: &ArgMatches) -> Result<(), CliError> {
    if arguments.directory.is_none() {
        return Ok(());
    }
    let names = std::iter::successors(matches.subcommand(), |(_, options)| options.subcommand());
    let names: Vec<&str> = names.map(|(name, _)| name).collect();
    let mut whole = Arguments::command();
    whole.build();
    let command = names.iter().try_fold(&whole, |command, name| command.find_subcommand(name));
    // The option that clap passes to every command is hidden.
    let uses_project = command.is_some_and(|command| {
        command.get_arguments().any(|argument| argument.get_id() == "directory" && !argument.is_hide_set())
    });
    if !uses_project {
        let names = names.join(" ");
        return Err(CliError::Usage(format!("`deftool {names}` does not use a project; omit `-C`")));
    }
    Ok(())
}

/// Returns whether the command has the option `--format json`, or its short form.
fn prints_json(options: &ArgMatches) -> bool {
    let format = options.try_get_raw("format").ok().flatten();
    format.is_some_and(|mut words| words.any(|word| word == "json"))
}

/// Ends the programs of scripts and the export of telemetry, reports errors, also on stdout with `json`, and returns the
/// exit code.
fn finish(result: Result<Exit, CliError>, json: bool) -> ExitCode {
    // No program started by a script may outlive this process.
    deftool_process::kill_programs();
    deftool_engine::telemetry::finish(&output::notices());
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
