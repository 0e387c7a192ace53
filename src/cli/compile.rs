//! `deftool compile`.

use super::args::CompileOptions;
use super::output::{describe_summary, print, say, say_findings};
use super::{CliError, Exit, locate};
use crate::diagnostic::{Severity, Summary};
use crate::project::{load_specs, resolve_inputs};
use crate::schema::emit;

/// Tools with errors are left out and told; the others are printed all the same.
pub(super) fn run(options: &CompileOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let load = load_specs(&resolve_inputs(&options.paths, &place.folder)?, &place.current)?;
    let json = emit(options.target, load.valid_tools().map(|loaded| &loaded.tool));
    print(&format!("{}\n", serde_json::to_string_pretty(&json).unwrap_or_default()));
    let errors: Vec<_> =
        load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    say_findings(&errors, &load.sources);
    if let Some(counts) = describe_summary(&Summary::of(&errors)) {
        say(&format!("{counts}; tools with errors are left out"));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Clean)
}
