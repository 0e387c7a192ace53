//! Specs, scripts, modules, tests and BIOS files that a link leads out of their project.
//!
//! Whoever loads a project has agreed to what is in it. A link in a clone may lead to any file, and what a script returns
//! goes to a model: a module of secrets would be read without a permission. So a file counts only where it lies in the
//! project, and no walk enters a folder elsewhere. `scripts/` and `scripts/lib` may be links to folders elsewhere, as may
//! the project itself: then the file lies beneath the folder that they lead to. That folder must not hold the project: a
//! link to `/` would make the whole disk part of it.

use std::io::{Error, Result};
use std::path::{Component, Path, PathBuf};

use super::discover::{is_script, lib_folder, scripts_folder};
use crate::script::hidden_names;

/// The folders that files have to lie in, without links.
pub(super) struct Bounds(Vec<PathBuf>);

impl Bounds {
    /// Those of `folders` that exist.
    pub(super) fn of<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Self {
        Self(folders.into_iter().filter_map(real).collect())
    }

    /// Those of the scripts of the project at `root`.
    pub(super) fn of_scripts(root: &Path) -> Self {
        let Some(project) = real(root) else { return Self(Vec::new()) };
        let linked = [lib_folder(root), scripts_folder(root)];
        let linked = linked.iter().filter_map(|folder| real(folder));
        let mut bounds: Vec<PathBuf> = linked.filter(|folder| !project.starts_with(folder)).collect();
        bounds.push(project);
        Self(bounds)
    }

    /// Where `path` leads. What is not there leads nowhere else.
    ///
    /// # Errors
    /// That it leads out, and where to.
    pub(super) fn check(&self, path: &Path) -> Result<PathBuf> {
        let Ok(real) = std::fs::canonicalize(path) else { return Ok(path.to_owned()) };
        if self.0.iter().any(|folder| real.starts_with(folder)) {
            return Ok(real);
        }
        let or_else = if is_script(path) { ", or link the whole folder `scripts`" } else { "" };
        Err(Error::other(format!(
            "it leads out of the project, to {}; put a copy into the project{or_else}",
            real.display()
        )))
    }
}

fn real(folder: &Path) -> Option<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::fs::canonicalize(folder).ok()
}

/// Refuses the script at `path` of the project at `root` where it lies elsewhere. What is not there is not refused.
///
/// # Errors
/// That it leads out, and where to.
pub(super) fn refuse_outside(root: &Path, path: &Path) -> Result<()> {
    // Without a link on the way there is nothing to look up.
    if is_plainly_beneath(root, path).unwrap_or(false) {
        return Ok(());
    }
    Bounds::of_scripts(root).check(path).map(drop)
}

/// Where the file at `path` of the project at `root` is, if its text may be sent to a server: in the project, and not
/// hidden there, whatever links say.
///
/// # Errors
/// Why it may not.
pub(super) fn sendable(root: &Path, path: &Path) -> Result<PathBuf> {
    let found = Bounds::of([root]).check(path)?;
    let root = real(root).unwrap_or_else(|| root.to_owned());
    let is_hidden = found.strip_prefix(&root).is_ok_and(|beneath| hidden_names(beneath).next().is_some());
    if is_hidden {
        let why =
            "it leads to a hidden file, and hidden files are not sent; copy the text to a file that is not";
        return Err(Error::other(why));
    }
    Ok(found)
}

/// Whether no link is on the way from `folder` to `path`; `None` where `path` is not named as beneath it.
fn is_plainly_beneath(folder: &Path, path: &Path) -> Option<bool> {
    let rest = path.strip_prefix(folder).ok()?;
    let mut here = folder.to_owned();
    Some(rest.components().all(|part| {
        here.push(part);
        matches!(part, Component::Normal(_)) && !here.is_symlink()
    }))
}
