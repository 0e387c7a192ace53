//! `mkdir`, `remove` and `rename`: folders and names.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

use cap_std::fs::Dir;

use super::grant::{Leaf, Need, Place};
use super::open::open_folder;
use super::{Work, shown};
use crate::script::error::HostError;
use crate::script::leftover;
use crate::script::permission::is_hidden;
use crate::tool::ToolErrorKind;

/// Most files and folders that one `remove` takes away.
pub(super) const MAX_REMOVED: usize = 10_000;
/// Deepest folder that it goes into.
const MAX_DEPTH: usize = 100;

/// Makes a folder; `parents`: also those above it, and it may be there already.
pub(super) fn mkdir(work: &Work, (path, parents): (String, bool)) -> Result<(), HostError> {
    let place = work.grants.open(Need::Write, &path)?;
    let exists = || if parents { Ok(()) } else { Err(place.wrong("exists already")) };
    if place.is_grant() && place.exists() {
        return exists();
    }
    let make = || work.spent.entry();
    let leaf = place.leaf(false, if parents { Some(&make) } else { None })?;
    if leaf.about.is_some() {
        return match leaf.dir.metadata(&leaf.name) {
            Ok(about) if about.is_dir() => exists(),
            _ => Err(place.wrong("exists already and is no folder")),
        };
    }
    work.spent.entry()?;
    match leaf.dir.create_dir(&leaf.name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => exists(),
        made => made.map_err(|error| place.failed(&error)),
    }
}

/// Removes a file, a link or an empty folder; `recursive`: also what is in the folder.
pub(super) fn remove(work: &Work, (path, recursive): (String, bool)) -> Result<(), HostError> {
    let place = work.grants.open(Need::Write, &path)?.existing()?;
    let leaf = existing_leaf(&place)?;
    let told = |error: std::io::Error| place.failed(&error);
    if !leaf.about.as_ref().is_some_and(cap_std::fs::Metadata::is_dir) {
        return leaf.dir.remove_file(&leaf.name).map_err(told);
    }
    if recursive {
        let folder = open_folder(&leaf.dir, Path::new(&leaf.name)).map_err(told)?;
        // Counted first, so that a folder with too much in it stays whole.
        for act in [Act::Count, Act::Remove] {
            let mut sweep = Sweep { work, place: &place, act, seen: 0 };
            sweep.folder(&folder, &place.full, MAX_DEPTH)?;
        }
    }
    leaf.dir.remove_dir(&leaf.name).map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty => {
            place.wrong("is not empty; recursive = true removes what is in it, too")
        }
        _ => told(error),
    })
}

/// Gives a file or folder another name, perhaps in another folder; a file that has that name already is replaced.
pub(super) fn rename(work: &Work, (from, to): (String, String)) -> Result<(), HostError> {
    let [from, to] = [from, to].map(|path| work.grants.open(Need::Write, &path));
    let (from, to) = (from?.existing()?, to?);
    let (old, new) = (existing_leaf(&from)?, to.leaf(false, None)?);
    let is_file = |leaf: &Leaf| leaf.about.as_ref().is_some_and(cap_std::fs::Metadata::is_file);
    if !is_file(&old) {
        for place in [&from, &to] {
            if work.grants.are_beneath(&place.full) {
                return Err(
                    place.wrong("is granted by itself, or holds what is; no folder or link takes its place")
                );
            }
        }
    }
    if new.about.is_some() && !is_file(&new) {
        return Err(to.wrong("exists already and is not a regular file"));
    }
    old.dir.rename(&old.name, &new.dir, &new.name).map_err(|error| from.failed(&error))
}

fn existing_leaf(place: &Place) -> Result<Leaf, HostError> {
    let leaf = place.leaf(false, None)?;
    if leaf.about.is_some() { Ok(leaf) } else { Err(place.failed(&ErrorKind::NotFound.into())) }
}

#[derive(Clone, Copy)]
enum Act {
    Count,
    Remove,
}

/// A walk over everything in a folder; no link is followed.
struct Sweep<'w> {
    work: &'w Work,
    place: &'w Place,
    act: Act,
    seen: usize,
}

impl Sweep<'_> {
    fn keeps_hidden(&self, name: &OsStr) -> HostError {
        let name = shown(&name.to_string_lossy());
        let what = format!(
            "is not removed: {name} in it is hidden, and a granted folder does not cover hidden files and folders below \
             it; to allow it, name it in :allow (:write […]) in the spec"
        );
        HostError { kind: ToolErrorKind::Permission, ..self.place.wrong(what) }
    }

    /// `path`: where `folder` is.
    fn folder(&mut self, folder: &Dir, path: &Path, depth: usize) -> Result<(), HostError> {
        let told = |error| self.place.failed(&error);
        if depth == 0 {
            return Err(self.place.wrong(format!("has folders more than {MAX_DEPTH} levels deep")));
        }
        let mut found = Vec::new();
        for entry in folder.entries().map_err(told)? {
            self.work.go_on()?;
            self.seen += 1;
            if self.seen > MAX_REMOVED {
                return Err(self.place.wrong(format!("has more than {MAX_REMOVED} files and folders in it")));
            }
            let entry = entry.map_err(told)?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            let is_temporary = name.to_str().is_some_and(leftover::is_temporary);
            if is_hidden(&name) && !is_temporary && !self.work.grants.covers(Need::Write, &path.join(&name)) {
                return Err(self.keeps_hidden(&name));
            }
            found.push((name, is_folder));
        }
        for (name, is_folder) in found {
            if is_folder {
                let inner =
                    open_folder(folder, Path::new(&name)).map_err(|error| self.place.failed(&error))?;
                self.folder(&inner, &path.join(&name), depth - 1)?;
            }
            match self.act {
                Act::Count => {}
                Act::Remove => {
                    self.work.go_on()?;
                    let removed =
                        if is_folder { folder.remove_dir(&name) } else { folder.remove_file(&name) };
                    removed.map_err(|error| self.place.failed(&error))?;
                }
            }
        }
        Ok(())
    }
}
