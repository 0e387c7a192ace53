//! `deftool types`: generates Luau type definitions for scripts.

use std::path::PathBuf;

use clap::Args;
use deftool_lang::diagnostic::{Diagnostic, Severity, Summary};
use deftool_lang::spec::Tool;
use deftool_project::{display_name, find_root, load_specs, resolve_inputs};
use deftool_script::definitions;

use crate::cli::options::ProjectOptions;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::generated::{Written, compare_generated, write_generated};
use crate::cli::terminal::output::{describe_summary, eprint_findings, eprint_progress, print};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool types -o types/deftool.d.luau
  deftool types --check types/deftool.d.luau")]
pub(in crate::cli) struct TypesOptions {
    /// Write to this file [default: print to stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Compare with this file without writing; print the difference and exit with 1 if it is out of date
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(in crate::cli) check: Option<PathBuf>,
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
    let is_current = match (&options.output, &options.check) {
        (Some(output), _) => {
            let path = dirs.current.join(output);
            let name = display_name(&path, &dirs.current);
            // A project may contain a link in place of the file: replace the link, and never overwrite its target.
            if path.is_symlink() && path.starts_with(&root) {
                let unwritable = |source| CliError::Unwritable { path: name.clone(), source };
                std::fs::remove_file(&path).map_err(unwritable)?;
            }
            if write_generated(&path, &name, &text)? == Written::Created {
                eprint_progress(
                    "next:    add it to `luau-lsp.types.definitionFiles` of your editor; see docs/scripting.md",
                );
            }
            true
        }
        (None, Some(file)) => {
            let path = dirs.current.join(file);
            let name = display_name(&path, &dirs.current);
            compare_generated(&path, &name, &text, &format!("deftool types -o {name}"))?
        }
        (None, None) => {
            print(&text);
            true
        }
    };
    Ok(if is_current && errors.is_empty() { Exit::Clean } else { Exit::Failed })
}
