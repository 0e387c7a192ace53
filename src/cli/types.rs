//! `deftool types`: generates Luau type definitions for scripts.

use std::path::Path;

use deftool_lang::diagnostic::{Diagnostic, Severity, Summary};
use deftool_lang::spec::Tool;
use deftool_project::{ProjectError, display_name, find_root, load_specs, replace_file, resolve_inputs};
use deftool_script::definitions;

use super::args::TypesOptions;
use super::command::{CliError, Exit, command_dirs};
use super::init::write_file;
use super::output::{clean, describe_summary, eprint_findings, eprint_line, print};

/// The generated file. luau-lsp accepts any name; editors do not check files with the extension `.d.luau`.
const FILE: &str = "deftool.d.luau";

/// Prints or writes the definitions of all valid tools. Tools with errors are omitted and reported.
pub(super) fn run(options: &TypesOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.project.as_deref())?;
    let root = find_root(&dirs.project)?;
    let load = load_specs(&resolve_inputs(&[], &root)?, &dirs.current)?;
    let text = definitions(load.valid_tools().map(|loaded| -> &Tool { &loaded.tool }));
    let errors: Vec<Diagnostic> =
        load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    eprint_findings(&errors, &load.sources);
    if let Some(counts) = describe_summary(&Summary::of(&errors)) {
        eprint_line(&format!("{counts}; tools with errors are omitted"));
    }
    let is_written = match &options.output {
        None => {
            print(&text);
            true
        }
        Some(folder) => {
            let path = dirs.current.join(folder).join(FILE);
            let name = display_name(&path, &dirs.current);
            if options.check { compare(&path, &name, folder, &text)? } else { write(&path, &name, &text)? }
        }
    };
    Ok(if is_written && errors.is_empty() { Exit::Clean } else { Exit::Failed })
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Compares the file with the generated text and reports the result.
fn compare(path: &Path, name: &str, folder: &Path, text: &str) -> Result<bool, CliError> {
    let found = read(path).map_err(|source| ProjectError::Unreadable { path: path.to_owned(), source })?;
    let is_same = found.as_deref() == Some(text);
    let shown = clean(name);
    let command = format!("deftool types --output {}", clean(&folder.display().to_string()));
    eprint_line(&match found {
        _ if is_same => format!("{shown} is up to date"),
        Some(_) => format!("{shown} is out of date; update it with `{command}`"),
        None => format!("{shown} does not exist; create it with `{command}`"),
    });
    Ok(is_same)
}

/// Writes the file only if its content changes, so that editors do not reload it unnecessarily.
fn write(path: &Path, name: &str, text: &str) -> Result<bool, CliError> {
    let unwritable = |source| CliError::Unwritable { path: name.to_owned(), source };
    let shown = clean(name);
    // Replace a link itself, and never overwrite its target.
    if path.is_symlink() {
        std::fs::remove_file(path).map_err(unwritable)?;
    }
    match read(path).map_err(unwritable)? {
        Some(found) if found == text => eprint_line(&format!("unchanged  {shown}")),
        Some(_) => {
            replace_file(path, text.as_bytes()).map_err(unwritable)?;
            eprint_line(&format!("written  {shown}"));
        }
        None => {
            write_file(path, text)?;
            eprint_line(&format!("created  {shown}"));
            eprint_line(
                "next:    add it to `luau-lsp.types.definitionFiles` of your editor; see docs/scripting.md",
            );
        }
    }
    Ok(true)
}
