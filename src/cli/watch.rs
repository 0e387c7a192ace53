//! `deftool watch`: hold the project loaded, say what each save changes.

use std::sync::Arc;

use tokio::sync::Notify;

use super::args::WatchOptions;
use super::interrupt::interrupted;
use super::output::{describe_summary, print_lines, say, say_error, stdout_failed};
use super::trust::not_remembered;
use super::{CliError, Exit, locate};
use crate::diagnostic::Summary;
use crate::diagnostic::render::render_concise;
use crate::project::{Generation, LiveProject, ProjectError, find_root, wishes};
use crate::text::count;

/// Until Ctrl-C, or until nobody reads any more.
pub(super) fn run(options: &WatchOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let root = find_root(&place.folder)?;
    let unread = Arc::new(Notify::new());
    let notify = Arc::clone(&unread);
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
            Err(error) => say_error(&error.to_string()),
        }
        if stdout_failed() {
            notify.notify_one();
        }
    };
    let project = LiveProject::open(&root, &place.current, Some(Box::new(listener)))?;
    let generation = project.current();
    print_lines(&format!("generation 1: {}\n", count(generation.tool_names().count(), "tool")));
    print_untrusted(&generation);
    print_findings(&generation);
    say("watching; Ctrl-C ends");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    runtime.block_on(async {
        tokio::select! {
            interrupted = interrupted() => match interrupted {
                Ok(()) => Ok(Exit::Interrupted),
                Err(error) => Err(CliError::Runtime(error)),
            },
            () = unread.notified() => Ok(Exit::Clean),
        }
    })
}

/// What would be asked about before a script runs, and is refused where one runs already.
fn print_untrusted(generation: &Generation) {
    for wanted in not_remembered(generation, wishes(&generation.load, generation.tools())) {
        print_lines(&format!("not trusted: {wanted}; see `deftool trust grant`\n"));
    }
}

fn print_findings(generation: &Generation) {
    let load = &generation.load;
    for finding in &load.findings {
        print_lines(&format!("{}\n", render_concise(finding, &load.sources)));
    }
    if let Some(counts) = describe_summary(&Summary::of(&load.findings)) {
        print_lines(&format!("{counts}\n"));
    }
}
