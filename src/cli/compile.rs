//! `deftool compile`.

use super::args::CompileOptions;
use super::output::{describe_summary, print, say, say_findings};
use super::{CliError, Exit, locate};
use crate::diagnostic::{Severity, Summary};
use crate::project::{load_specs, resolve_inputs};
use crate::schema::{check_tools, emit};

/// Tools with errors are left out and told, and so are those that the target is certain to refuse; the others are printed
/// all the same. What the target drops or weakens is said, too.
pub(super) fn run(options: &CompileOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let load = load_specs(&resolve_inputs(&options.paths, &place.folder)?, &place.current)?;
    let tools = || load.valid_tools().map(|loaded| &loaded.tool);
    let json = emit(options.target, tools());
    print(&format!("{}\n", serde_json::to_string_pretty(&json).unwrap_or_default()));
    let errors = load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned();
    let findings: Vec<_> = errors.chain(check_tools(options.target, tools())).collect();
    say_findings(&findings, &load.sources);
    let summary = Summary::of(&findings);
    let Some(counts) = describe_summary(&summary) else { return Ok(Exit::Clean) };
    if summary.errors > 0 {
        say(&format!("{counts}; tools with errors are left out"));
        return Ok(Exit::Failed);
    }
    say(&counts);
    Ok(Exit::Clean)
}
