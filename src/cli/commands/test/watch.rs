//! `deftool test --watch`: tests again after each change, and reports what the change does to the project.

use std::time::Instant;

use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::text::count;
use deftool_project::{Generation, Load, LoadOptions, permission_requests, resolve_inputs};

use super::report::{describe, print_json_line, print_results};
use super::{TestFormat, TestOptions, TestSelection, no_match, run_once};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::CommandDirs;
use crate::cli::project::rerun::Rerun;
use crate::cli::project::trust::missing_permissions;
use crate::cli::terminal::output::{eprint_error, print_lines};

/// Runs until Ctrl-C, or until stdout is closed.
///
/// # Errors
/// If `--format` is a format that requires one file per run.
pub(super) fn run(
    options: &TestOptions,
    dirs: &CommandDirs,
    selection: TestSelection,
) -> Result<Exit, CliError> {
    let format = options.format.value;
    if format == TestFormat::Junit {
        let message = "--watch supports only `--format` human and json";
        return Err(CliError::Usage(String::from(message)));
    }
    let (options, folder, current) = (options.clone(), dirs.project.clone(), dirs.current.clone());
    let paths = selection.paths.clone();
    // Only the changes of a whole project are reported. One without other projects below it needs no path.
    let is_whole = options.paths.is_empty() && paths.is_empty() && options.filter.is_none();
    let reports_changes = is_whole && format == TestFormat::Human;
    let mut generation = None;
    let report = move |load: Load, started| {
        let next = next_generation(generation.take(), load, started);
        if reports_changes {
            print_changes(&next);
        }
        let load = &generation.insert(next).load;
        let run = resolve_inputs(&selection.paths, &folder)
            .map_err(CliError::from)
            .and_then(|inputs| run_once(load, &inputs, &selection, &options, &current));
        let run = match run {
            Ok(Some(run)) => run,
            Ok(None) => return no_match(options.filter.as_deref()),
            Err(error) => {
                eprint_error(&error.to_string());
                return String::new();
            }
        };
        if format == TestFormat::Json {
            print_json_line(&run, &load.sources);
            return describe(&run.summary);
        }
        print_results(&run, None, &load.sources, format);
        // The summary was already printed.
        String::new()
    };
    let options = LoadOptions { with_scripts: true, ..LoadOptions::default() };
    Rerun { options, clears_screen: format == TestFormat::Human, report }.watch(&paths, dirs)
}

fn next_generation(before: Option<Generation>, load: Load, started: Instant) -> Generation {
    match before {
        None => Generation::first(load, started),
        Some(before) => before.next(load, started),
    }
}

/// Prints the changed tools, the permissions that the project requires but does not have, and the warnings. Errors are
/// part of the results.
fn print_changes(generation: &Generation) {
    let Generation { number, load, took, changes, .. } = generation;
    print_lines(&match number {
        1 => format!("generation 1: {}\n", count(generation.tool_names().count(), "tool")),
        _ => format!("generation {number}: {changes} ({} ms)\n", took.as_millis()),
    });
    for request in missing_permissions(generation, permission_requests(load, generation.tools())) {
        print_lines(&format!("not trusted: {request}; see `deftool trust grant`\n"));
    }
    for finding in load.findings.iter().filter(|finding| finding.severity != Severity::Error) {
        print_lines(&format!("{}\n", render_concise(finding, &load.sources)));
    }
}
