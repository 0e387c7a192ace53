//! `list`, `stat` and `exists`: names, kinds and sizes.

use std::io::ErrorKind;
use std::time::UNIX_EPOCH;

use cap_std::fs::{FileType, Metadata};

use super::Work;
use super::grant::Need;
use crate::script::error::HostError;
use crate::script::permission::is_hidden;

/// Most entries that are listed.
pub(super) const MAX_ENTRIES: usize = 10_000;

/// An entry of a folder.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// In bytes.
    pub(super) size: u64,
}

/// What is known about a path.
pub(super) struct Stat {
    pub(super) kind: &'static str,
    /// In bytes.
    pub(super) size: u64,
    /// Seconds since 1970.
    pub(super) modified: Option<f64>,
    pub(super) readonly: bool,
}

/// The entries of a folder, by name.
pub(super) fn list(work: &Work, path: String) -> Result<Vec<Entry>, HostError> {
    let place = work.grants.open(Need::Look, &path)?.existing()?;
    let told = |error| place.failed(&error);
    let folder = place.folder()?;
    let mut entries = Vec::new();
    for entry in folder.entries().map_err(told)? {
        work.go_on()?;
        let entry = entry.map_err(told)?;
        let name = entry.file_name();
        if is_hidden(&name) && !work.grants.covers(Need::Look, &place.full.join(&name)) {
            continue;
        }
        if entries.len() >= MAX_ENTRIES {
            return Err(place.wrong(format!(
                "has more than {MAX_ENTRIES} entries; fs.glob with a limit finds some of them"
            )));
        }
        // An entry that vanished meanwhile is no entry.
        let Ok(about) = entry.metadata() else { continue };
        entries.push(Entry {
            name: name.to_string_lossy().into_owned(),
            kind: kind(about.file_type()),
            size: about.len(),
        });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// What is known about a path; `None` where there is nothing.
pub(super) fn stat(work: &Work, path: String) -> Result<Option<Stat>, HostError> {
    let place = work.grants.open(Need::Look, &path)?;
    if !place.exists() {
        return Ok(None);
    }
    match place.about()? {
        Ok(about) => Ok(Some(Stat {
            kind: kind(about.file_type()),
            size: about.len(),
            modified: modified(&about),
            readonly: about.permissions().readonly(),
        })),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(place.failed(&error)),
    }
}

fn modified(about: &Metadata) -> Option<f64> {
    let time = about.modified().ok()?.into_std();
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
