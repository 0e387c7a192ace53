//! `mkdir`, `remove` and `rename`.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

use cap_std::fs::Dir;
use deftool_lang::tool::ToolErrorKind;
use deftool_process::files::is_temporary;

use super::access::{Access, display_path};
use super::context::FsContext;
use super::grant::{GrantedPath, Leaf};
use super::no_follow::open_folder;
use crate::error::HostError;
use crate::permission::is_hidden;

/// Maximum number of files and folders that one `remove` deletes.
pub(super) const MAX_REMOVED: usize = 10_000;
/// Maximum depth of the removed folders.
const MAX_DEPTH: usize = 100;

/// Creates a folder. With `parents`, also creates its parents, and the folder may already exist.
pub(super) fn mkdir(context: &FsContext, (path, parents): (String, bool)) -> Result<(), HostError> {
    let target = context.grants.open(Access::Write, &path)?;
    let exists = || if parents { Ok(()) } else { Err(target.invalid("already exists")) };
    if target.is_grant() && target.exists() {
        return exists();
    }
    let before_create = || context.quota.add_entry();
    let leaf = target.leaf(false, if parents { Some(&before_create) } else { None })?;
    if leaf.metadata.is_some() {
        return match leaf.dir.metadata(&leaf.name) {
            Ok(metadata) if metadata.is_dir() => exists(),
            _ => Err(target.invalid("already exists and is not a folder")),
        };
    }
    context.quota.add_entry()?;
    match leaf.dir.create_dir(&leaf.name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => exists(),
        result => result.map_err(|error| target.io_error(&error)),
    }
}

/// Removes a file, a link or an empty folder. With `recursive`, also removes the contents of the folder.
pub(super) fn remove(context: &FsContext, (path, recursive): (String, bool)) -> Result<(), HostError> {
    let target = context.grants.open(Access::Write, &path)?.existing()?;
    let leaf = existing_leaf(&target)?;
    let failed = |error: std::io::Error| target.io_error(&error);
    if !leaf.metadata.as_ref().is_some_and(cap_std::fs::Metadata::is_dir) {
        return leaf.dir.remove_file(&leaf.name).map_err(failed);
    }
    if recursive {
        let folder = open_folder(&leaf.dir, Path::new(&leaf.name)).map_err(failed)?;
        // Count first, so that nothing is removed if the folder has too many entries.
        for pass in [Pass::Count, Pass::Remove] {
            let mut walk = RemoveWalk { context, target: &target, pass, visited: 0 };
            walk.folder(&folder, &target.full, MAX_DEPTH)?;
        }
    }
    leaf.dir.remove_dir(&leaf.name).map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty => {
            target.invalid("is not empty; pass recursive = true to remove its contents")
        }
        _ => failed(error),
    })
}

/// Renames or moves a file or folder. An existing file at the new path is replaced.
pub(super) fn rename(context: &FsContext, (from, to): (String, String)) -> Result<(), HostError> {
    let [from, to] = [from, to].map(|path| context.grants.open(Access::Write, &path));
    let (from, to) = (from?.existing()?, to?);
    let (old, new) = (existing_leaf(&from)?, to.leaf(false, None)?);
    let is_file = |leaf: &Leaf| leaf.metadata.as_ref().is_some_and(cap_std::fs::Metadata::is_file);
    if !is_file(&old) {
        for target in [&from, &to] {
            if context.grants.has_grant_beneath(&target.full) {
                return Err(
                    target.invalid("is a granted path or contains one, and only files can be renamed there")
                );
            }
        }
    }
    if new.metadata.is_some() && !is_file(&new) {
        return Err(to.invalid("already exists and is not a regular file"));
    }
    old.dir.rename(&old.name, &new.dir, &new.name).map_err(|error| from.io_error(&error))
}

fn existing_leaf(target: &GrantedPath) -> Result<Leaf, HostError> {
    let leaf = target.leaf(false, None)?;
    if leaf.metadata.is_some() { Ok(leaf) } else { Err(target.io_error(&ErrorKind::NotFound.into())) }
}

#[derive(Clone, Copy)]
enum Pass {
    Count,
    Remove,
}

/// A walk over all entries below a folder that counts or removes them. Does not follow links.
struct RemoveWalk<'w> {
    context: &'w FsContext,
    target: &'w GrantedPath,
    pass: Pass,
    visited: usize,
}

impl RemoveWalk<'_> {
    fn hidden_error(&self, name: &OsStr) -> HostError {
        let name = display_path(&name.to_string_lossy());
        let what = format!(
            "is not removed: it contains {name}, which is hidden, and a grant of a folder does not include hidden files and \
             folders; to allow it, name it in :allow (:write […]) in the spec"
        );
        HostError { kind: ToolErrorKind::Permission, ..self.target.invalid(what) }
    }

    /// Processes `folder` at `path`.
    fn folder(&mut self, folder: &Dir, path: &Path, depth: usize) -> Result<(), HostError> {
        let failed = |error| self.target.io_error(&error);
        if depth == 0 {
            return Err(self.target.invalid(format!("is more than {MAX_DEPTH} levels deep")));
        }
        let mut found = Vec::new();
        for entry in folder.entries().map_err(failed)? {
            self.context.check_canceled()?;
            self.visited += 1;
            if self.visited > MAX_REMOVED {
                return Err(self
                    .target
                    .invalid(format!("contains more than {MAX_REMOVED} files and folders")));
            }
            let entry = entry.map_err(failed)?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            let is_temporary = name.to_str().is_some_and(is_temporary);
            if is_hidden(&name)
                && !is_temporary
                && !self.context.grants.covers(Access::Write, &path.join(&name))
            {
                return Err(self.hidden_error(&name));
            }
            found.push((name, is_folder));
        }
        for (name, is_folder) in found {
            if is_folder {
                let inner =
                    open_folder(folder, Path::new(&name)).map_err(|error| self.target.io_error(&error))?;
                self.folder(&inner, &path.join(&name), depth - 1)?;
            }
            match self.pass {
                Pass::Count => {}
                Pass::Remove => {
                    self.context.check_canceled()?;
                    let removed =
                        if is_folder { folder.remove_dir(&name) } else { folder.remove_file(&name) };
                    removed.map_err(|error| self.target.io_error(&error))?;
                }
            }
        }
        Ok(())
    }
}
