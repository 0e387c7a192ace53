//! Generated files: written only if their content changes, and compared in CI.

use std::io::Write;
use std::path::Path;

use deftool_process::files::replace_file;
use deftool_project::ProjectError;

use crate::cli::outcome::CliError;
use crate::cli::terminal::diff::unified;
use crate::cli::terminal::output::{clean, eprint_progress, print_diff};

/// The effect of writing a generated file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Written {
    Created,
    Replaced,
    Unchanged,
}

/// Writes the file `name` at `path` and reports the effect. A pipe or device, such as `/dev/stdout`, is written to.
pub(in crate::cli) fn write_generated(path: &Path, name: &str, text: &str) -> Result<Written, CliError> {
    let unwritable = |source| CliError::Unwritable { path: name.to_owned(), source };
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let mut stream = std::fs::OpenOptions::new().write(true).open(path).map_err(unwritable)?;
        stream.write_all(text.as_bytes()).map_err(unwritable)?;
        return Ok(Written::Replaced);
    }
    let written = match read(path).map_err(unwritable)? {
        Some(found) if found == text => Written::Unchanged,
        Some(_) => {
            replace_file(path, text.as_bytes()).map_err(unwritable)?;
            Written::Replaced
        }
        None => {
            write_file(path, text)?;
            Written::Created
        }
    };
    let effect = match written {
        Written::Created => "created",
        Written::Replaced => "written",
        Written::Unchanged => "unchanged",
    };
    eprint_progress(&format!("{effect}  {}", clean(name)));
    Ok(written)
}

/// Compares the file `name` at `path` with the generated text, prints the difference and returns whether they are equal.
/// `command` is the command that updates the file.
pub(in crate::cli) fn compare_generated(
    path: &Path,
    name: &str,
    text: &str,
    command: &str,
) -> Result<bool, CliError> {
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
    Ok(is_same)
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
