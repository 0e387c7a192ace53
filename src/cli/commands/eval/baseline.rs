//! The tools of `--baseline`: those of another folder, or of a git revision of the project.

use std::path::Path;
use std::time::Instant;

use deftool_engine::PreparedWorker;
use deftool_lang::schema::ToolSet;
use deftool_project::{Generation, LoadOptions, load_with, resolve_inputs};

use crate::cli::outcome::CliError;
use crate::cli::project::inputs::CommandDirs;
use crate::cli::project::revision::Revision;
use crate::cli::terminal::output::{clean, eprint_line};

/// Returns the tools that the worker offers with the specs of `baseline`. Nothing of it is executed.
///
/// # Errors
/// If `baseline` is neither a folder nor a revision, or its specs cannot be read.
pub(super) fn tools(
    baseline: &Path,
    opened: &PreparedWorker,
    dirs: &CommandDirs,
) -> Result<ToolSet, CliError> {
    let folder = dirs.project.join(baseline);
    let mut options = LoadOptions::default();
    let inputs = if folder.symlink_metadata().is_ok() {
        resolve_inputs(&[folder], &dirs.project)?
    } else {
        let mut revision = Revision::open(baseline, &opened.root, &dirs.current)?;
        revision.add(&opened.root)?;
        options.overlay = revision.texts;
        revision.inputs
    };
    let load = load_with(&inputs, &dirs.current, &options)?;
    let errors = load.tools.iter().filter(|loaded| !loaded.tool.valid);
    for loaded in errors {
        eprint_line(&format!(
            "baseline: tool `{}` is omitted: its spec has errors",
            clean(&loaded.tool.name.value)
        ));
    }
    Ok(Generation::first(load, Instant::now()).tool_set(&opened.spec))
}
