//! Generated files: written only if their content changes, and compared in CI.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use deftool_process::files::{Readers, is_stream, open_regular};
use deftool_project::{ProjectError, display_name};

use super::outputs::write_output;
use crate::cli::outcome::CliError;
use crate::cli::terminal::diff::unified;
use crate::cli::terminal::output::{clean, eprint_progress, print, print_diff};

// Where a command puts generated text.
#[derive(Debug, Args)]
pub(in crate::cli) struct OutputOptions {
    /// Write to this file [default: print to stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Compare with this file without writing; print the difference and exit with 1 if it is out of date
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    check: Option<PathBuf>,
}

/// What happened to generated text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Put {
    Printed,
    Created,
    Replaced,
    /// The file has this text.
    Unchanged,
    /// The file was compared and has a different text.
    OutOfDate,
}

impl OutputOptions {
    /// Returns the options that write to `file`.
    pub(in crate::cli) fn to_file(file: &str) -> Self {
        Self { output: Some(PathBuf::from(file)), check: None }
    }

    /// Writes, compares or prints the text. Files are relative to `folder`. `command` returns the command that writes the
    /// file with a name.
    pub(in crate::cli) fn put(
        &self,
        folder: &Path,
        text: &str,
        command: impl Fn(&str) -> String,
    ) -> Result<Put, CliError> {
        let Some(file) = self.output.as_ref().or(self.check.as_ref()) else {
            print(text);
            return Ok(Put::Printed);
        };
        let path = folder.join(file);
        let name = display_name(&path, folder);
        if self.output.is_some() {
            write(&path, &name, text)
        } else {
            compare(&path, &name, text, &command(&name))
        }
    }
}

/// Writes the file `name` at `path` and reports the effect.
fn write(path: &Path, name: &str, text: &str) -> Result<Put, CliError> {
    let unwritable = |source| CliError::Unwritable { path: name.to_owned(), source };
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let found = if is_file { read(path).map_err(unwritable)? } else { None };
    if found.as_deref() == Some(text) {
        eprint_progress(&format!("unchanged  {}", clean(name)));
        return Ok(Put::Unchanged);
    }
    let is_new = path.symlink_metadata().is_err();
    if let Some(folder) = path.parent().filter(|_| is_new) {
        std::fs::create_dir_all(folder).map_err(unwritable)?;
    }
    write_output(path, text.as_bytes(), Readers::Default).map_err(unwritable)?;
    if is_stream(path) {
        return Ok(Put::Replaced);
    }
    let (put, effect) = if is_new { (Put::Created, "created") } else { (Put::Replaced, "written") };
    eprint_progress(&format!("{effect}  {}", clean(name)));
    Ok(put)
}

/// Compares the file `name` at `path` with the generated text and prints the difference. `command` is the command that
/// updates the file.
fn compare(path: &Path, name: &str, text: &str, command: &str) -> Result<Put, CliError> {
    let found = read(path).map_err(|source| ProjectError::Unreadable { path: path.to_owned(), source })?;
    let is_same = found.as_deref() == Some(text);
    if let Some(found) = found.as_deref().filter(|_| !is_same) {
        print_diff(&unified(name, found, text));
    }
    let (shown, command) = (clean(name), clean(command));
    eprint_progress(&match found {
        _ if is_same => format!("{shown} is up to date"),
        Some(_) => format!("{shown} is out of date; update it with `{command}`"),
        None => format!("{shown} does not exist; create it with `{command}`"),
    });
    Ok(if is_same { Put::Unchanged } else { Put::OutOfDate })
}

/// Reads a regular file; `None` if it does not exist.
pub(in crate::cli) fn read(path: &Path) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    match open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a new file and creates its parent folders.
pub(in crate::cli) fn write_file(path: &Path, content: &str) -> Result<(), CliError> {
    let unwritable = |source| CliError::Unwritable { path: path.display().to_string(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(unwritable)?;
    }
    let mut file = std::fs::File::create_new(path).map_err(unwritable)?;
    file.write_all(content.as_bytes()).map_err(|error| {
        // Do not leave an empty file on a full disk.
        let _ = std::fs::remove_file(path);
        unwritable(error)
    })
}
