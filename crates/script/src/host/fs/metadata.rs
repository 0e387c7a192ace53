//! `list`, `stat` and `exists`: return names and metadata.

use std::io::ErrorKind;
use std::time::UNIX_EPOCH;

use cap_std::fs::{FileType, Metadata};

use super::access::Access;
use super::context::FsContext;
use crate::error::HostError;
use crate::permission::is_hidden;

/// Maximum number of entries to list.
pub(super) const MAX_ENTRIES: usize = 10_000;

/// An entry of a folder.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// In bytes.
    pub(super) size: u64,
}

/// The metadata of a path.
pub(super) struct Stat {
    pub(super) kind: &'static str,
    /// In bytes.
    pub(super) size: u64,
    /// Seconds since 1970.
    pub(super) modified: Option<f64>,
    pub(super) readonly: bool,
}

/// Returns the entries of a folder, sorted by name.
pub(super) fn list(context: &FsContext, path: String) -> Result<Vec<Entry>, HostError> {
    let target = context.grants.open(Access::Inspect, &path)?.existing()?;
    let failed = |error| target.io_error(&error);
    let folder = target.folder()?;
    let mut entries = Vec::new();
    for entry in folder.entries().map_err(failed)? {
        context.check_canceled()?;
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if is_hidden(&name) && !context.grants.covers(Access::Inspect, &target.full.join(&name)) {
            continue;
        }
        if entries.len() >= MAX_ENTRIES {
            return Err(
                target.invalid(format!("has more than {MAX_ENTRIES} entries; use fs.glob with a limit"))
            );
        }
        // Skip an entry that was removed in the meantime.
        let Ok(metadata) = entry.metadata() else { continue };
        entries.push(Entry {
            name: name.to_string_lossy().into_owned(),
            kind: kind(metadata.file_type()),
            size: metadata.len(),
        });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// Returns the metadata of a path, or `None` if it does not exist.
pub(super) fn stat(context: &FsContext, path: String) -> Result<Option<Stat>, HostError> {
    let target = context.grants.open(Access::Inspect, &path)?;
    if !target.exists() {
        return Ok(None);
    }
    match target.metadata()? {
        Ok(metadata) => Ok(Some(Stat {
            kind: kind(metadata.file_type()),
            size: metadata.len(),
            modified: modified(&metadata),
            readonly: metadata.permissions().readonly(),
        })),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(target.io_error(&error)),
    }
}

fn modified(metadata: &Metadata) -> Option<f64> {
    let time = metadata.modified().ok()?.into_std();
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Some(after.as_secs_f64()),
        Err(before) => Some(-before.duration().as_secs_f64()),
    }
}

pub(super) fn kind(file: FileType) -> &'static str {
    if file.is_dir() {
        "directory"
    } else if file.is_file() {
        "file"
    } else if file.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}
