//! What files look like, without a look at what they hold.
//!
//! Two looks that are the same mean the same content, as far as the clock of the file system tells writes apart; whoever
//! needs to know beyond that reads again (`cache`).

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a file looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileLook {
    pub(super) size: u64,
    pub(super) modified: Option<SystemTime>,
    /// Seconds and nanoseconds of the last change of anything about it: nobody can set it back.
    changed: (i64, i64),
    /// Device and inode.
    id: (u64, u64),
    /// Whether it is a regular file.
    pub(super) is_file: bool,
}

impl FileLook {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok();
        let (changed, id) = identity_of(metadata);
        Self { size: metadata.len(), modified, changed, id, is_file: metadata.is_file() }
    }

    /// What is there now, behind links.
    pub(super) fn at(path: &Path) -> Option<Self> {
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

/// A folder as something that is watched: another folder under its name is another one, even where it was given the
/// number of one that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FolderId {
    id: (u64, u64),
    created: Option<SystemTime>,
}

impl FolderId {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { id: identity_of(metadata).1, created: metadata.created().ok() }
    }
}

/// Everything that one look around found.
#[derive(Debug, Default, Clone)]
pub(super) struct Looks {
    /// The files that are looked at whatever was loaded.
    pub(super) listed: HashMap<PathBuf, FileLook>,
    /// The places elsewhere that the tools of the last load name, and what is there.
    pub(super) named: HashMap<PathBuf, Option<FileLook>>,
    /// Each folder of scripts that was looked through, with what in it has the name of a script; its sub folders are
    /// not looked into.
    pub(super) scripts: HashMap<PathBuf, Vec<PathBuf>>,
    /// Where changes would be seen.
    pub(super) folders: HashMap<PathBuf, Folder>,
    /// Where the files that are links lead.
    pub(super) targets: HashMap<PathBuf, PathBuf>,
}

/// What is known of a place.
pub(super) enum Known {
    There(FileLook),
    Absent,
    Unknown,
}

/// A folder in which changes would be seen.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    pub(super) id: FolderId,
    /// The entries that count; `None`: all.
    pub(super) names: Option<HashSet<OsString>>,
}

impl Looks {
    /// What this look around says of `path`.
    pub(super) fn of(&self, path: &Path) -> Known {
        if let Some(look) = self.listed.get(path) {
            return Known::There(*look);
        }
        match self.named.get(path) {
            Some(Some(look)) => Known::There(*look),
            Some(None) => Known::Absent,
            None if self.covers(path) => Known::Absent,
            None => Known::Unknown,
        }
    }

    /// Whether a script at `path` would have been listed. Where names that differ in case are the same, only asking
    /// tells.
    pub(super) fn covers(&self, path: &Path) -> bool {
        cfg!(target_os = "linux")
            && super::discover::is_listed_script(path)
            && path.parent().is_some_and(|folder| self.scripts.contains_key(folder))
    }

    /// Takes in what is at a place outside of the folders that are looked through.
    pub(super) fn name(&mut self, path: &Path) {
        if self.listed.contains_key(path) || self.covers(path) {
            return;
        }
        self.follow_link(path);
        self.watch_entry(path);
        self.named.insert(path.to_owned(), FileLook::at(path));
    }

    /// All of a folder counts.
    pub(super) fn watch_all(&mut self, folder: &Path, metadata: &Metadata) {
        let id = FolderId::of(metadata);
        self.folders.insert(folder.to_owned(), Folder { id, names: None });
    }

    /// The entry `path` of its folder counts.
    pub(super) fn watch_entry(&mut self, path: &Path) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        if let Some(known) = self.folders.get_mut(folder) {
            if let Some(names) = &mut known.names {
                names.insert(name.to_owned());
            }
        } else if let Ok(metadata) = std::fs::metadata(folder) {
            let names = Some(HashSet::from([name.to_owned()]));
            self.folders.insert(folder.to_owned(), Folder { id: FolderId::of(&metadata), names });
        }
    }

    /// Where the link `path` leads counts, too.
    pub(super) fn follow_link(&mut self, path: &Path) {
        if !path.is_symlink() {
            return;
        }
        if let Ok(target) = std::fs::canonicalize(path) {
            self.watch_entry(&target);
            self.targets.insert(path.to_owned(), target);
        }
    }

    /// What is other than in the `seen`, with what is there now.
    pub(super) fn differences(&self, seen: &Self) -> Vec<(PathBuf, Option<FileLook>)> {
        let (mut different, mut known) = (Vec::new(), 0);
        for (path, look) in &self.listed {
            let before = seen.listed.get(path);
            known += usize::from(before.is_some());
            if before != Some(look) {
                different.push((path.clone(), Some(*look)));
            }
        }
        if known < seen.listed.len() {
            let gone = seen.listed.keys().filter(|path| !self.listed.contains_key(*path));
            different.extend(gone.map(|path| (path.clone(), None)));
        }
        for (path, look) in &self.named {
            if seen.named.get(path).is_some_and(|before| before != look) {
                different.push((path.clone(), *look));
            }
        }
        different
    }
}
