//! `deftool watch`: keeps the project loaded and reports the effect of each change.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use deftool_lang::diagnostic::Summary;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::text::count;
use deftool_project::{Generation, LiveProject, ProjectError, find_root, permission_requests};
use tokio::sync::Notify;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::command_dirs;
use crate::cli::project::trust::missing_permissions;
use crate::cli::terminal::interrupt::interrupted;
use crate::cli::terminal::output::{describe_summary, eprint_error, eprint_line, print_lines, stdout_failed};

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the changed tools and the findings after each change, until Ctrl-C.

Examples:
  deftool watch
  deftool watch --project my-agent")]
pub(in crate::cli) struct WatchOptions {
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

/// Runs until Ctrl-C, or until stdout is closed.
pub(in crate::cli) fn run(options: &WatchOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.project.as_deref())?;
    let root = find_root(&dirs.project)?;
    let closed = Arc::new(Notify::new());
    let notify = Arc::clone(&closed);
    let listener = move |reloaded: Result<&Generation, &ProjectError>| {
        match reloaded {
            Ok(generation) => {
                let took = generation.took.as_millis();
                print_lines(&format!(
                    "generation {}: {} ({took} ms)\n",
                    generation.number, generation.changes
                ));
                print_untrusted(generation);
                print_findings(generation);
            }
            Err(error) => eprint_error(&error.to_string()),
        }
        if stdout_failed() {
            notify.notify_one();
        }
    };
    let project = LiveProject::open(&root, &dirs.current, Some(Box::new(listener)))?;
    let generation = project.current();
    print_lines(&format!("generation 1: {}\n", count(generation.tool_names().count(), "tool")));
    print_untrusted(&generation);
    print_findings(&generation);
    eprint_line("watching; press Ctrl-C to stop");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    runtime.block_on(async {
        tokio::select! {
            interrupted = interrupted() => match interrupted {
                Ok(()) => Ok(Exit::Interrupted),
                Err(error) => Err(CliError::Runtime(error)),
            },
            () = closed.notified() => Ok(Exit::Clean),
        }
    })
}

/// Prints the permissions that the project requires but does not have.
fn print_untrusted(generation: &Generation) {
    for request in missing_permissions(generation, permission_requests(&generation.load, generation.tools()))
    {
        print_lines(&format!("not trusted: {request}; see `deftool trust grant`\n"));
    }
}

/// Prints all findings and their number.
fn print_findings(generation: &Generation) {
    let load = &generation.load;
    for finding in &load.findings {
        print_lines(&format!("{}\n", render_concise(finding, &load.sources)));
    }
    if let Some(counts) = describe_summary(&Summary::of(&load.findings)) {
        print_lines(&format!("{counts}\n"));
    }
}
