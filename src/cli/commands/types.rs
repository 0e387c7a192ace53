//! `deftool types`: generates Luau type definitions for scripts.

use clap::Args;
use deftool_lang::diagnostic::{Diagnostic, Severity, Summary};
use deftool_lang::spec::Tool;
use deftool_project::{display_name, find_root, load_specs, resolve_inputs};
use deftool_script::definitions;

use crate::cli::options::ProjectOptions;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::generated::{OutputOptions, Put};
use crate::cli::terminal::output::{describe_summary, eprint_findings, eprint_progress};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool types -o types/deftool.d.luau
  deftool types --check types/deftool.d.luau")]
pub(in crate::cli) struct TypesOptions {
    #[command(flatten)]
    pub(in crate::cli) output: OutputOptions,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// Prints or writes the definitions of all valid tools. Tools with errors are omitted and reported.
pub(in crate::cli) fn run(options: &TypesOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let root = find_root(&dirs.project)?;
    let load = load_specs(&resolve_inputs(&[], &root)?, &dirs.current)?;
    let text = definitions(load.valid_tools().map(|loaded| -> &Tool { &loaded.tool }));
    let errors: Vec<Diagnostic> =
        load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    eprint_findings(&errors, &load.sources);
    if let Some(counts) = describe_summary(&Summary::of(&errors)) {
        eprint_progress(&format!("{counts}; these tools are omitted"));
    }
    if let Some(output) = &options.output.output {
        let path = dirs.current.join(output);
        // A project may contain a link in place of the file: replace the link, and never overwrite its target.
        if path.is_symlink() && path.starts_with(&root) {
            let name = display_name(&path, &dirs.current);
            std::fs::remove_file(&path).map_err(|source| CliError::Unwritable { path: name, source })?;
        }
    }
    let put = options.output.put(&dirs.current, &text, |name| format!("deftool types -o {name}"))?;
    if put == Put::Created {
        eprint_progress(
            "next:    pass it to luau-lsp with `--definitions=FILE`, or name it in VS Code's setting \
             `luau-lsp.types.definitionFiles`",
        );
    }
    Ok(if put != Put::OutOfDate && errors.is_empty() { Exit::Clean } else { Exit::Failed })
}
