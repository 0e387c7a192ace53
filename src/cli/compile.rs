//! `deftool compile`: what an API gets, or Emacs.

use super::args::{CompileOptions, CompileTarget};
use super::output::{describe_summary, print, say, say_findings};
use super::{CliError, Exit, locate};
use crate::diagnostic::{Severity, Summary};
use crate::project::{load_specs, resolve_inputs};
use crate::schema::{emit, emit_gptel};
use crate::spec::{FileKind, lay_out};

/// Tools with errors are left out and told; the others are printed all the same.
pub(super) fn run(options: &CompileOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let load = load_specs(&resolve_inputs(&options.paths, &place.folder)?, &place.current)?;
    let tools = load.valid_tools().map(|loaded| &loaded.tool);
    print(&match options.target {
        CompileTarget::Api(target) => {
            format!("{}\n", serde_json::to_string_pretty(&emit(target, tools)).unwrap_or_default())
        }
        CompileTarget::Gptel => lay_out(emit_gptel(tools), FileKind::EmacsLisp),
    });
    let errors: Vec<_> =
        load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    say_findings(&errors, &load.sources);
    if let Some(counts) = describe_summary(&Summary::of(&errors)) {
        say(&format!("{counts}; tools with errors are left out"));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Clean)
}
