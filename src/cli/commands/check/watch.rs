//! `deftool check --watch`: checks again after each change.

use std::path::PathBuf;

use deftool_lang::diagnostic::render::json_report;
use deftool_project::Load;

use super::report::{Format, describe, print_report};
use super::selection::Selection;
use super::{CheckOptions, announce_previews};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::CommandDirs;
use crate::cli::project::rerun::Rerun;
use crate::cli::terminal::output::print_json;

/// Checks `paths` until Ctrl-C, or until stdout is closed.
///
/// # Errors
/// If `--format` is a format that requires one file per run.
pub(in crate::cli) fn run(
    options: &CheckOptions,
    paths: &[PathBuf],
    selection: Selection,
    dirs: &CommandDirs,
) -> Result<Exit, CliError> {
    let format = options.format.value;
    match format {
        Format::Human | Format::Concise | Format::Json => {}
        Format::Sarif | Format::Github | Format::Junit => {
            let message = "--watch supports only `--format` human, concise and json";
            return Err(CliError::Usage(String::from(message)));
        }
    }
    let (strict, types) = (options.strict, options.types);
    let report = move |mut load: Load, _| {
        selection.apply(&mut load);
        announce_previews(types, &load);
        print_load(&load, format, strict)
    };
    Rerun { options: options.load_options()?, clears_screen: format != Format::Json, report }
        .watch(paths, dirs)
}

/// Prints the report and returns the summary for stderr.
fn print_load(load: &Load, format: Format, strict: bool) -> String {
    if format == Format::Json {
        print_json(&json_report(&load.findings, &load.sources), false);
    } else {
        print_report(load, format, strict);
    }
    describe(load)
}
