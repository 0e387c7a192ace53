//! Rejection of links that lead out of the project, for specs, scripts, modules, tests and BIOS files.
//!
//! A user who loads a project trusts its content. A link in a cloned project may point to any file, and the results of
//! scripts go to a model, so a module that links to a secret would leak it without a permission. Therefore every file
//! must be inside the project, and a scan does not enter linked folders outside of it. The project folder, `scripts/`
//! and `scripts/lib` may themselves be links to other folders. Their files must then be below the target. The target
//! must not contain the project: a link to `/` would make the whole disk part of it. A tool with files from such a folder
//! requires trust to read it.

use std::io::{Error, Result};
use std::path::{Component, Path, PathBuf};

use deftool_script::hidden_names;

use crate::paths::{is_script, lib_folder, scripts_folder};

/// The canonical folders in which files must be.
pub(super) struct Bounds(Vec<PathBuf>);

impl Bounds {
    /// Creates bounds from the folders that exist.
    pub(super) fn of<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Self {
        Self(folders.into_iter().filter_map(canonical).collect())
    }

    /// Returns the allowed folders for scripts of the project at `root`.
    pub(super) fn of_scripts(root: &Path) -> Self {
        let Some(project) = canonical(root) else { return Self(Vec::new()) };
        let linked = [lib_folder(root), scripts_folder(root)];
        let linked = linked.iter().filter_map(|folder| canonical(folder));
        let mut bounds: Vec<PathBuf> = linked.filter(|folder| !project.starts_with(folder)).collect();
        bounds.push(project);
        Self(bounds)
    }

    /// Returns the canonical path. Missing files are allowed.
    ///
    /// # Errors
    /// If the path leads out of the allowed folders. The error names the target.
    pub(super) fn check(&self, path: &Path) -> Result<PathBuf> {
        let Ok(canonical) = std::fs::canonicalize(path) else { return Ok(path.to_owned()) };
        if self.0.iter().any(|folder| canonical.starts_with(folder)) {
            return Ok(canonical);
        }
        let or_else = if is_script(path) { ", or link the whole folder `scripts`" } else { "" };
        Err(Error::other(format!(
            "the link leads out of the project to {}; copy the file into the project{or_else}",
            canonical.display()
        )))
    }
}

fn canonical(folder: &Path) -> Option<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::fs::canonicalize(folder).ok()
}

/// Checks that the script at `path` is inside the project at `root`. Missing files are allowed.
///
/// # Errors
/// If the path leads out of the project. The error names the target.
pub(super) fn check_inside(root: &Path, path: &Path) -> Result<()> {
    // Fast path: without links there is nothing to resolve.
    if is_beneath_without_links(root, path).unwrap_or(false) {
        return Ok(());
    }
    Bounds::of_scripts(root).check(path).map(drop)
}

/// Returns the canonical folders outside of the project at `root` to which `scripts` and `scripts/lib` lead.
pub(super) fn linked_folders(root: &Path) -> Vec<PathBuf> {
    let folders = [scripts_folder(root), lib_folder(root)];
    if !folders.iter().any(|folder| folder.is_symlink()) {
        return Vec::new();
    }
    let Some(project) = canonical(root) else { return Vec::new() };
    let folders = folders.iter().filter_map(|folder| canonical(folder));
    folders.filter(|folder| !folder.starts_with(&project)).collect()
}

/// Returns the canonical path of a file that is sent to a server. Links are resolved: the file must be inside the
/// project and not hidden.
///
/// # Errors
/// If the file must not be sent. The error is the reason.
pub(super) fn sendable(root: &Path, path: &Path) -> Result<PathBuf> {
    let found = Bounds::of([root]).check(path)?;
    let root = canonical(root).unwrap_or_else(|| root.to_owned());
    let is_hidden = found.strip_prefix(&root).is_ok_and(|beneath| hidden_names(beneath).next().is_some());
    if is_hidden {
        let why =
            "the link leads to a hidden file, which is not sent; copy the text to a file that is not hidden";
        return Err(Error::other(why));
    }
    Ok(found)
}

/// Returns whether the path from `folder` to `path` contains no link. Returns `None` if `path` is not below `folder`.
fn is_beneath_without_links(folder: &Path, path: &Path) -> Option<bool> {
    let rest = path.strip_prefix(folder).ok()?;
    let mut here = folder.to_owned();
    Some(rest.components().all(|part| {
        here.push(part);
        matches!(part, Component::Normal(_)) && !here.is_symlink()
    }))
}
