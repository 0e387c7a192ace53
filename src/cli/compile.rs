//! `deftool compile`: what an API gets, or Emacs.

use super::args::{CompileOptions, CompileTarget};
use super::output::{clean, describe_summary, print, print_json, say, say_findings};
use super::{CliError, Exit, inputs_of, locate};
use crate::diagnostic::{Diagnostic, Group, Severity, Summary};
use crate::project::{LoadOptions, load_with};
use crate::schema::{emit, emit_gptel};
use crate::spec::{FileKind, lay_out};

/// Tools with errors are left out and told, and so are those that the target is certain to refuse; the others are printed
/// all the same. What the target drops or weakens is said, too.
pub(super) fn run(options: &CompileOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let targets = match options.target {
        CompileTarget::Api(target) => vec![target],
        CompileTarget::Gptel => Vec::new(),
    };
    let inputs = inputs_of(&options.paths, &place.folder)?;
    let load = load_with(&inputs, &place.current, &LoadOptions { targets, ..LoadOptions::default() })?;
    let tools = load.valid_tools().map(|loaded| &*loaded.tool);
    match options.target {
        CompileTarget::Api(target) => print_json(&emit(target, tools), true),
        CompileTarget::Gptel => {
            let tools: Vec<_> = tools.collect();
            print(&lay_out(emit_gptel(tools.iter().copied()), FileKind::EmacsLisp));
            for tool in tools.iter().filter(|tool| !tool.confirm.conditions().is_empty()) {
                say(&format!(
                    "note: gptel knows no conditions of `:confirm`; in Emacs every call of {} is asked about",
                    clean(&tool.name.value)
                ));
            }
        }
    }
    let matters =
        |finding: &&Diagnostic| finding.severity == Severity::Error || finding.rule.group() == Group::Targets;
    let findings: Vec<_> = load.findings.iter().filter(matters).cloned().collect();
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
