//! `deftool types`: generates Luau type definitions for scripts.

use std::path::PathBuf;

use clap::Args;
use deftool_lang::diagnostic::{Diagnostic, Severity, Summary};
use deftool_lang::spec::Tool;
use deftool_project::{display_name, find_root, load_specs, resolve_inputs};
use deftool_script::definitions;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::generated::{Written, compare_generated, write_generated};
use crate::cli::project::inputs::command_dirs;
use crate::cli::terminal::output::{describe_summary, eprint_findings, eprint_line, print};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool types --output types
  deftool types --output types --check")]
pub(in crate::cli) struct TypesOptions {
    /// Write deftool.d.luau to this folder [default: print it to stdout]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Compare without writing; exit with 1 if the file is out of date
    #[arg(long, requires = "output")]
    pub(in crate::cli) check: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

/// The generated file. luau-lsp accepts any name; editors do not check files with the extension `.d.luau`.
const FILE: &str = "deftool.d.luau";

/// Prints or writes the definitions of all valid tools. Tools with errors are omitted and reported.
pub(in crate::cli) fn run(options: &TypesOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.project.as_deref())?;
    let root = find_root(&dirs.project)?;
    let load = load_specs(&resolve_inputs(&[], &root)?, &dirs.current)?;
    let text = definitions(load.valid_tools().map(|loaded| -> &Tool { &loaded.tool }));
    let errors: Vec<Diagnostic> =
        load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    eprint_findings(&errors, &load.sources);
    if let Some(counts) = describe_summary(&Summary::of(&errors)) {
        eprint_line(&format!("{counts}; these tools are omitted"));
    }
    let is_written = match &options.output {
        None => {
            print(&text);
            true
        }
        Some(folder) => {
            let path = dirs.current.join(folder).join(FILE);
            let name = display_name(&path, &dirs.current);
            if options.check {
                let command = format!("deftool types --output {}", folder.display());
                compare_generated(&path, &name, &text, &command)?
            } else {
                // Replace a link itself, and never overwrite its target.
                if path.is_symlink() {
                    let unwritable = |source| CliError::Unwritable { path: name.clone(), source };
                    std::fs::remove_file(&path).map_err(unwritable)?;
                }
                if write_generated(&path, &name, &text)? == Written::Created {
                    eprint_line(
                        "next:    add it to `luau-lsp.types.definitionFiles` of your editor; see docs/scripting.md",
                    );
                }
                true
            }
        }
    };
    Ok(if is_written && errors.is_empty() { Exit::Clean } else { Exit::Failed })
}
