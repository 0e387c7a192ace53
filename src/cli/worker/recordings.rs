//! Recordings: what `run` and `chat` write, and what `run` and `replay` read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_project::quote;
use deftool_record::{
    Recorder, Recording, Redaction, Secrets, StoredFileError, StoredForm, TimelineError, TimelineSource,
};

use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::output::eprint_error;

/// The end of a message about a missing recording.
const CREATE: &str = "; create one with `deftool run PROMPT --record FILE.jsonl`";
/// How a recording of an evaluation is created.
pub(in crate::cli) const CREATE_EVALUATION: &str = "; create one with `deftool eval --record FILE.jsonl`";

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 32;

/// Returns the given files, and all recordings in the given folders.
///
/// # Errors
/// If a folder cannot be read, or if there are no recordings.
pub(in crate::cli) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            let from = found.len();
            walk(path, MAX_DEPTH, &mut found)?;
            for file in found.iter_mut().skip(from) {
                // Omit a leading `.`.
                *file = file.strip_prefix(".").unwrap_or(file).to_owned();
            }
        } else {
            // A missing file is reported when it is read.
            found.push(path.clone());
        }
    }
    if found.is_empty() {
        let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(CliError::Usage(format!("no recording in {}{CREATE}", named.join(", "))));
    }
    Ok(found)
}

/// Reads a recording.
///
/// # Errors
/// If the file cannot be read or is not a recording. If it does not exist, the message names the command that creates
/// one, and if it has another format, the commands that read it.
pub(in crate::cli) fn read(path: &Path) -> Result<Recording, CliError> {
    read_with(path, Recording::read, CREATE)
}

/// Reads the replies of a recording, without the bodies of its chat requests.
///
/// # Errors
/// Like [`read`].
pub(in crate::cli) fn read_replies(path: &Path) -> Result<Recording, CliError> {
    read_with(path, Recording::read_replies, CREATE_EVALUATION)
}

fn read_with(
    path: &Path,
    read: impl Fn(&Path) -> Result<Recording, StoredFileError>,
    create: &'static str,
) -> Result<Recording, CliError> {
    if let Some(reason) = other_format(path) {
        return Err(CliError::Usage(format!("{}: {reason}", path.display())));
    }
    read(path).map_err(|error| CliError::Usage(format!("{error}{}", hint_if_missing(&error, create))))
}

/// Returns the reason why a file of another format cannot be replayed, with the commands that read it. `None`: it is a
/// recording or cannot be read.
pub(in crate::cli) fn other_format(path: &Path) -> Option<String> {
    let (what, resume) = match TimelineSource::detect(path) {
        Ok(TimelineSource::Session) => ("a session", Some("chat --resume")),
        Ok(TimelineSource::Journal) => ("a journal", Some("journal resume")),
        Ok(TimelineSource::Events) => ("the output of `deftool run --json`", None),
        Err(TimelineError::Unknown { reason, .. }) => return Some(reason.to_owned()),
        Ok(TimelineSource::Recording) | Err(_) => return None,
    };
    let file = quote(&path.to_string_lossy());
    let mut commands = vec![format!("`deftool view {file}` shows it")];
    if let Some(resume) = resume {
        commands.push(format!("`deftool {resume} {file}` continues it"));
        commands.push(format!("`deftool replay --specs {file}` validates its calls"));
    }
    Some(format!("{what} contains no bytes of a server to replay: {}", commands.join(", ")))
}

/// Creates the recording of `--record` and its parent folders. It contains neither the key nor the secrets.
///
/// # Errors
/// If the file cannot be created, or exists and is not a recording.
pub(in crate::cli) fn create(
    path: &Path,
    key: Option<&str>,
    secrets: Secrets,
) -> Result<Arc<Recorder>, CliError> {
    create_folder_of(path)?;
    Ok(Arc::new(Recorder::create(path, Redaction::new(key, secrets))?))
}

/// Opens a recording to add requests to it, or creates it like [`create`]. Returns also the replies that it contains.
///
/// # Errors
/// If the file cannot be opened or created, is not a recording, or is written by another process.
pub(in crate::cli) fn resume(
    path: &Path,
    key: Option<&str>,
    secrets: Secrets,
) -> Result<(Arc<Recorder>, Option<Recording>), CliError> {
    create_folder_of(path)?;
    let (recorder, replies) = Recorder::resume(path, Redaction::new(key, secrets))?;
    Ok((Arc::new(recorder), replies))
}

fn create_folder_of(path: &Path) -> Result<(), StoredFileError> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.map_err(StoredFileError::io(StoredForm::Recording, path))
}

/// Closes a recording. Returns the exit of the command: an incomplete recording is a failure.
pub(in crate::cli) fn close(recorder: &Recorder, exit: Exit) -> Exit {
    let Err(error) = recorder.close() else { return exit };
    eprint_error(&format!("{error}; the recording is incomplete"));
    if exit == Exit::Clean { Exit::Failed } else { exit }
}

/// Returns the command that creates a recording, as the end of the message, if `error` is that the file does not exist.
pub(in crate::cli) fn creation_hint(error: &StoredFileError) -> &'static str {
    hint_if_missing(error, CREATE)
}

fn hint_if_missing(error: &StoredFileError, create: &'static str) -> &'static str {
    if error.is_io(std::io::ErrorKind::NotFound) { create } else { "" }
}

/// Adds the recordings in `folder` to `found`, sorted by name. Skips hidden folders.
fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let unreadable =
        |error: std::io::Error| CliError::Usage(format!("cannot read {}: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(unreadable)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        // Do not follow links.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && !is_hidden && depth > 0 {
            walk(&path, depth - 1, found)?;
        } else if kind.is_file()
            && path.extension().is_some_and(|extension| extension == "jsonl")
            && Recording::is_at(&path)
        {
            found.push(path);
        }
    }
    Ok(())
}
