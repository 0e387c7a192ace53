//! `deftool check`.

use super::args::{CheckOptions, Format};
use super::output::{describe_summary, print, print_findings, say};
use super::{CliError, Exit, locate};
use crate::diagnostic::{Summary, render};
use crate::project::{load, resolve_inputs};
use crate::text::count;

pub(super) fn run(options: &CheckOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let mut load = load(&resolve_inputs(&options.paths, &place.folder)?, &place.current)?;
    load.check_targets(&options.targets);
    let summary = Summary::of(&load.findings);
    match options.format {
        Format::Human => {
            print_findings(&load.findings, &load.sources);
            let files = load.sources.iter().count();
            let checked = format!("{} in {}", count(load.tools.len(), "tool"), count(files, "file"));
            say(&match describe_summary(&summary) {
                Some(counts) => format!("{checked}: {counts}"),
                None => format!("{checked}: all good"),
            });
        }
        Format::Concise => {
            for finding in &load.findings {
                print(&format!("{}\n", render::render_concise(finding, &load.sources)));
            }
        }
        Format::Json => {
            let report = render::json_report(&load.findings, &load.sources);
            print(&format!("{}\n", serde_json::to_string_pretty(&report).unwrap_or_default()));
        }
    }
    let failed = summary.errors > 0 || (options.strict && summary.warnings > 0);
    Ok(if failed { Exit::Failed } else { Exit::Clean })
}
