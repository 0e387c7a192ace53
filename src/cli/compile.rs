//! `deftool compile`: prints the tool definitions for an API or for Emacs.

use deftool_lang::diagnostic::{Diagnostic, Group, Severity, Summary};
use deftool_lang::schema::{emit, emit_gptel};
use deftool_lang::spec::{FileKind, format_generated};
use deftool_project::{LoadOptions, load_with};

use super::args::{CompileOptions, CompileTarget};
use super::command::{CliError, Exit, command_dirs, inputs_of};
use super::output::{clean, describe_summary, eprint_findings, eprint_line, print, print_json};

/// Prints all valid tools. Tools with errors and tools that the target rejects are omitted and reported. Keywords that
/// the target drops or weakens are reported.
pub(super) fn run(options: &CompileOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.project.as_deref())?;
    let targets = match options.target {
        CompileTarget::Api(target) => vec![target],
        CompileTarget::Gptel => Vec::new(),
    };
    let inputs = inputs_of(&options.paths, &dirs.project)?;
    let load = load_with(&inputs, &dirs.current, &LoadOptions { targets, ..LoadOptions::default() })?;
    let tools = load.valid_tools().map(|loaded| &*loaded.tool);
    match options.target {
        CompileTarget::Api(target) => print_json(&emit(target, tools), true),
        CompileTarget::Gptel => {
            let tools: Vec<_> = tools.collect();
            print(&format_generated(emit_gptel(tools.iter().copied()), FileKind::EmacsLisp));
            for tool in tools.iter().filter(|tool| !tool.confirm.conditions().is_empty()) {
                eprint_line(&format!(
                    "note: gptel does not support conditions in `:confirm`; Emacs asks before every call of `{}`",
                    clean(&tool.name.value)
                ));
            }
        }
    }
    let is_relevant =
        |finding: &&Diagnostic| finding.severity == Severity::Error || finding.rule.group() == Group::Targets;
    let findings: Vec<_> = load.findings.iter().filter(is_relevant).cloned().collect();
    eprint_findings(&findings, &load.sources);
    let summary = Summary::of(&findings);
    let Some(counts) = describe_summary(&summary) else { return Ok(Exit::Clean) };
    if summary.errors > 0 {
        eprint_line(&format!("{counts}; tools with errors are omitted"));
        return Ok(Exit::Failed);
    }
    eprint_line(&counts);
    Ok(Exit::Clean)
}
