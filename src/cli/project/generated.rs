//! Generated files: written only if their content changes, and compared in CI.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use deftool_process::files::replace_file;
use deftool_project::{ProjectError, display_name};

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

/// Writes the file `name` at `path` and reports the effect. A pipe or device, such as `/dev/stdout`, is written to.
fn write(path: &Path, name: &str, text: &str) -> Result<Put, CliError> {
    let unwritable = |source| CliError::Unwritable { path: name.to_owned(), source };
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let mut stream = std::fs::OpenOptions::new().write(true).open(path).map_err(unwritable)?;
        stream.write_all(text.as_bytes()).map_err(unwritable)?;
        return Ok(Put::Replaced);
    }
    let (put, effect) = match read(path).map_err(unwritable)? {
        Some(found) if found == text => (Put::Unchanged, "unchanged"),
        Some(_) => {
            replace_file(path, text.as_bytes()).map_err(unwritable)?;
            (Put::Replaced, "written")
        }
        None => {
            write_file(path, text)?;
            (Put::Created, "created")
        }
    };
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

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
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
