//! File stamps, and snapshots of all files of a project.
//!
//! A stamp is metadata only. Equal stamps mean equal content, up to the timestamp granularity of the file system. Where
//! this is not precise enough, `cache` reads the file again.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::paths::is_listed_script;

/// The identity, size and timestamps of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    /// Time of the last metadata change (ctime) in seconds and nanoseconds. Programs cannot set it.
    changed: (i64, i64),
    /// Device and inode.
    id: (u64, u64),
    /// Whether it is a regular file.
    pub(crate) is_file: bool,
}

impl FileStamp {
    /// In place of the stamp of a file that exists only in an editor, or in a snapshot without stamps.
    pub(crate) const NONE: Self =
        Self { size: 0, modified: None, changed: (0, 0), id: (0, 0), is_file: true };

    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok();
        let (changed, id) = identity_of(metadata);
        Self { size: metadata.len(), modified, changed, id, is_file: metadata.is_file() }
    }

    /// Returns the stamp of the file at `path`, following links.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }
}

#[cfg(unix)]
fn identity_of(metadata: &Metadata) -> ((i64, i64), (u64, u64)) {
    use std::os::unix::fs::MetadataExt;

    ((metadata.ctime(), metadata.ctime_nsec()), (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity_of(_: &Metadata) -> ((i64, i64), (u64, u64)) {
    ((0, 0), (0, 0))
}

/// Returns whether a file can be written under the name of another folder, which is then the one that is notified.
#[cfg(unix)]
fn has_other_names(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    metadata.is_file() && metadata.nlink() > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &Metadata) -> bool {
    false
}

/// The identity of a watched folder. The creation time distinguishes a new folder from a deleted one with the same
/// inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FolderId {
    id: (u64, u64),
    created: Option<SystemTime>,
}

impl FolderId {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { id: identity_of(metadata).1, created: metadata.created().ok() }
    }
}

/// The result of one scan.
#[derive(Debug, Default, Clone)]
pub(crate) struct Snapshot {
    /// Whether the stamps of all files are taken. A load that is not repeated compares no stamps.
    pub(crate) has_stamps: bool,
    /// The files found by the scan.
    pub(crate) listed: HashMap<PathBuf, FileStamp>,
    /// Paths outside of the scanned folders that the tools of the last load refer to, with their stamps.
    pub(crate) referenced: HashMap<PathBuf, Option<FileStamp>>,
    /// Each scanned folder of scripts with the scripts directly in it.
    pub(crate) scripts: HashMap<PathBuf, Vec<PathBuf>>,
    /// The folders to watch.
    pub(crate) folders: HashMap<PathBuf, Folder>,
    /// The targets of the files that are links.
    pub(crate) targets: HashMap<PathBuf, PathBuf>,
    /// Whether a path leads through links, or a file or folder cannot be identified. Not every change of such a project
    /// is a change in a watched folder.
    pub(crate) has_hidden_changes: bool,
}

/// The result of looking up a path.
pub(crate) enum Lookup {
    Present(FileStamp),
    Absent,
    Unknown,
}

/// A folder to watch.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) id: FolderId,
    /// The relevant entries. `None`: all.
    pub(crate) names: Option<HashSet<OsString>>,
}

impl Snapshot {
    /// Creates an empty snapshot for the stamps of all files.
    pub(crate) fn with_stamps() -> Self {
        Self { has_stamps: true, ..Self::default() }
    }

    /// Returns whether the scan found a regular file at `path` that is not a link.
    pub(crate) fn is_plain_file(&self, path: &Path) -> bool {
        self.listed.get(path).is_some_and(|stamp| stamp.is_file) && !self.targets.contains_key(path)
    }

    /// Looks up `path`.
    pub(crate) fn of(&self, path: &Path) -> Lookup {
        if let Some(stamp) = self.listed.get(path) {
            return Lookup::Present(*stamp);
        }
        match self.referenced.get(path) {
            Some(Some(stamp)) => Lookup::Present(*stamp),
            Some(None) => Lookup::Absent,
            None if self.covers(path) => Lookup::Absent,
            None => Lookup::Unknown,
        }
    }

    /// Returns whether the scan would have found a script at `path`. Always false on systems other than Linux, where
    /// file names may be case-insensitive and the file must be looked up.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        cfg!(target_os = "linux")
            && is_listed_script(path)
            && path.parent().is_some_and(|folder| self.scripts.contains_key(folder))
    }

    /// Adds a file that the scan found.
    pub(crate) fn add_found(&mut self, path: &Path, metadata: &Metadata) {
        self.has_hidden_changes |= has_other_names(metadata);
        self.listed.insert(path.to_owned(), FileStamp::of(metadata));
    }

    /// Adds a path outside of the scanned folders.
    pub(crate) fn add_referenced(&mut self, path: &Path) {
        if self.listed.contains_key(path) || self.covers(path) {
            return;
        }
        self.follow_link(path);
        self.watch_entry(path);
        self.referenced.insert(path.to_owned(), FileStamp::at(path));
    }

    /// Adds a file that exists only in an editor.
    pub(crate) fn add_unsaved(&mut self, path: &Path) {
        self.listed.insert(path.to_owned(), FileStamp::NONE);
        if let Some(scripts) = path.parent().and_then(|folder| self.scripts.get_mut(folder)) {
            scripts.push(path.to_owned());
        }
    }

    /// Watches all entries of a folder.
    pub(crate) fn watch_all(&mut self, folder: &Path, metadata: &Metadata) {
        let id = self.identify(metadata);
        self.folders.insert(folder.to_owned(), Folder { id, names: None });
    }

    fn identify(&mut self, folder: &Metadata) -> FolderId {
        let id = FolderId::of(folder);
        self.has_hidden_changes |= id.created.is_none();
        id
    }

    /// Watches the entry `path` of its folder. If there is no such folder, watches its parent for it.
    pub(crate) fn watch_entry(&mut self, path: &Path) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        if let Some(known) = self.folders.get_mut(folder) {
            if let Some(names) = &mut known.names {
                names.insert(name.to_owned());
            }
        } else if let Ok(metadata) = std::fs::metadata(folder) {
            let names = Some(HashSet::from([name.to_owned()]));
            let id = self.identify(&metadata);
            self.folders.insert(folder.to_owned(), Folder { id, names });
        } else {
            self.watch_entry(folder);
        }
    }

    /// If `path` is a link, also watches its target.
    pub(crate) fn follow_link(&mut self, path: &Path) {
        if !path.is_symlink() {
            return;
        }
        self.has_hidden_changes = true;
        if let Ok(target) = std::fs::canonicalize(path) {
            self.watch_entry(&target);
            self.targets.insert(path.to_owned(), target);
        }
    }

    /// Returns the files that differ from `baseline`, with their current stamps.
    pub(crate) fn differences(&self, baseline: &Self) -> Vec<(PathBuf, Option<FileStamp>)> {
        let (mut changed, mut known) = (Vec::new(), 0);
        for (path, stamp) in &self.listed {
            let before = baseline.listed.get(path);
            known += usize::from(before.is_some());
            if before != Some(stamp) {
                changed.push((path.clone(), Some(*stamp)));
            }
        }
        if known < baseline.listed.len() {
            let gone = baseline.listed.keys().filter(|path| !self.listed.contains_key(*path));
            changed.extend(gone.map(|path| (path.clone(), None)));
        }
        for (path, stamp) in &self.referenced {
            if baseline.referenced.get(path).is_some_and(|before| before != stamp) {
                changed.push((path.clone(), *stamp));
            }
        }
        changed
    }
}
