//! `deftool check --watch`: the report again on every save.

use std::io::Write;
use std::ops::ControlFlow;

use super::args::{CheckOptions, Format};
use super::output::{print, say, say_error, stdout_failed, stdout_is_terminal};
use super::report::{describe, print_report};
use super::{CliError, Exit, Place};
use crate::diagnostic::render::json_report;
use crate::project::{Load, ProjectError, keep_loading};

/// Until Ctrl-C, or until nobody reads any more.
pub(super) fn run(options: &CheckOptions, place: &Place) -> Result<Exit, CliError> {
    let format = options.format;
    match format {
        Format::Human | Format::Concise | Format::Json => {}
        Format::Sarif | Format::Github | Format::Junit => {
            let message = "--watch writes human, concise or json; the other formats are one file a run";
            return Err(CliError::Usage(String::from(message)));
        }
    }
    let (paths, strict, how) = (options.paths.clone(), options.strict, options.load_options());
    let (folder, current) = (place.folder.clone(), place.current.clone());
    let (ended, end) = tokio::sync::oneshot::channel();
    let watch = move || {
        let told = |loaded: Result<&Load, &ProjectError>| tell(loaded, format, strict);
        let _ = ended.send(keep_loading(&paths, &folder, &current, &how, told));
    };
    std::thread::Builder::new()
        .name(String::from("deftool-check"))
        .spawn(watch)
        .map_err(CliError::Runtime)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    runtime.block_on(async {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => match interrupted {
                Ok(()) => Ok(Exit::Interrupted),
                Err(error) => Err(CliError::Runtime(error)),
            },
            watched = end => match watched {
                Ok(Err(error)) => Err(error.into()),
                Ok(Ok(())) => Ok(Exit::Clean),
                Err(_) => Ok(Exit::Failed),
            },
        }
    })
}

fn tell(loaded: Result<&Load, &ProjectError>, format: Format, strict: bool) -> ControlFlow<()> {
    if format != Format::Json && stdout_is_terminal() {
        clear_screen();
    }
    let time = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
    match loaded {
        Ok(load) => {
            if format == Format::Json {
                let report = json_report(&load.findings, &load.sources);
                print(&format!("{}\n", serde_json::to_string(&report).unwrap_or_default()));
            } else {
                print_report(load, format, strict);
            }
            // The human report ends in the summary; the other two are left to programs.
            let summary =
                if format == Format::Human { String::new() } else { format!("{}; ", describe(load)) };
            say(&format!("{time} {summary}watching, Ctrl-C ends"));
        }
        Err(error) => say_error(&format!("{time} {error}")),
    }
    if stdout_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// What was scrolled away stays: it is not ours.
fn clear_screen() {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(b"\x1b[2J\x1b[H");
}
