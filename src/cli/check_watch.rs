//! `deftool check --watch`: the report again on every save.

use super::args::{CheckOptions, Format};
use super::output::print_json;
use super::report::{describe, print_report};
use super::rerun::Rerun;
use super::{CliError, Exit, Place};
use crate::diagnostic::render::json_report;
use crate::project::Load;

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
    let strict = options.strict;
    let report = move |load: Load, _| tell(&load, format, strict);
    Rerun { how: options.load_options()?, clears_screen: format != Format::Json, report }
        .watch(&options.paths, place)
}

/// What is left to say.
fn tell(load: &Load, format: Format, strict: bool) -> String {
    if format == Format::Json {
        print_json(&json_report(&load.findings, &load.sources), false);
    } else {
        print_report(load, format, strict);
    }
    // The human report ends in the summary; the other two are left to programs.
    if format == Format::Human { String::new() } else { describe(load) }
}
