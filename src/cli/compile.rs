//! `deftool compile`: what an API gets, or Emacs.

use super::args::{CompileOptions, CompileTarget};
use super::output::{describe_summary, print, say, say_findings};
use super::{CliError, Exit, locate};
use crate::diagnostic::{Severity, Summary};
use crate::project::{load_specs, resolve_inputs};
use crate::schema::{check_tools, emit, emit_gptel};
use crate::spec::{FileKind, lay_out};

/// Tools with errors are left out and told, and so are those that the target is certain to refuse; the others are printed
/// all the same. What the target drops or weakens is said, too.
pub(super) fn run(options: &CompileOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let load = load_specs(&resolve_inputs(&options.paths, &place.folder)?, &place.current)?;
    let tools = || load.valid_tools().map(|loaded| &loaded.tool);
    let (text, losses) = match options.target {
        CompileTarget::Api(target) => {
            let json = serde_json::to_string_pretty(&emit(target, tools())).unwrap_or_default();
            (format!("{json}\n"), check_tools(target, tools()))
        }
        CompileTarget::Gptel => (lay_out(emit_gptel(tools()), FileKind::EmacsLisp), Vec::new()),
    };
    print(&text);
    let errors = load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned();
    let findings: Vec<_> = errors.chain(losses).collect();
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
