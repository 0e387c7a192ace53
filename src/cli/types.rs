//! `deftool types`: Luau definitions of what scripts are given.

use std::path::Path;

use super::args::TypesOptions;
use super::init::write_file;
use super::output::{clean, describe_summary, print, say, say_findings};
use super::{CliError, Exit, locate};
use crate::diagnostic::{Diagnostic, Severity, Summary};
use crate::project::{display_name, find_root, load_specs, replace_file, resolve_inputs};
use crate::script::definitions;
use crate::spec::Tool;

/// The file that is written; luau-lsp takes files of any name, and editors leave `.d.luau` out of what they check.
const FILE: &str = "deftool.d.luau";

/// Tools with errors are left out and told.
pub(super) fn run(options: &TypesOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let root = find_root(&place.folder)?;
    let load = load_specs(&resolve_inputs(&[], &root)?, &place.current)?;
    let text = definitions(load.valid_tools().map(|loaded| -> &Tool { &loaded.tool }));
    let errors: Vec<Diagnostic> =
        load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    say_findings(&errors, &load.sources);
    if let Some(counts) = describe_summary(&Summary::of(&errors)) {
        say(&format!("{counts}; tools with errors are left out"));
    }
    let is_written = match &options.output {
        None => {
            print(&text);
            true
        }
        Some(folder) => {
            let path = place.current.join(folder).join(FILE);
            let name = display_name(&path, &place.current);
            if options.check { compare(&path, &name, folder, &text)? } else { write(&path, &name, &text)? }
        }
    };
    Ok(if is_written && errors.is_empty() { Exit::Clean } else { Exit::Failed })
}

fn read(path: &Path) -> std::io::Result<Option<String>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the file holds what would be written.
fn compare(path: &Path, name: &str, folder: &Path, text: &str) -> Result<bool, CliError> {
    let found = read(path).map_err(|source| CliError::Unwritable { path: name.to_owned(), source })?;
    let is_same = found.as_deref() == Some(text);
    let shown = clean(name);
    let command = format!("deftool types --output {}", clean(&folder.display().to_string()));
    say(&match found {
        _ if is_same => format!("{shown} is what the specs say"),
        Some(_) => format!("{shown} is not what the specs say; `{command}` writes it anew"),
        None => format!("{shown} is not there; `{command}` writes it"),
    });
    Ok(is_same)
}

/// An editor that watches the file is not woken for nothing.
fn write(path: &Path, name: &str, text: &str) -> Result<bool, CliError> {
    let unwritable = |source| CliError::Unwritable { path: name.to_owned(), source };
    let shown = clean(name);
    // Of a link, what it leads to is nobody's to overwrite: the link itself gives way.
    if path.is_symlink() {
        std::fs::remove_file(path).map_err(unwritable)?;
    }
    match read(path).map_err(unwritable)? {
        Some(found) if found == text => say(&format!("unchanged  {shown}")),
        Some(_) => {
            replace_file(path, text.as_bytes()).map_err(unwritable)?;
            say(&format!("written  {shown}"));
        }
        None => {
            write_file(path, text)?;
            say(&format!("created  {shown}"));
            say("next:    name it in your editor's `luau-lsp.types.definitionFiles`; see docs/scripting.md");
        }
    }
    Ok(true)
}
