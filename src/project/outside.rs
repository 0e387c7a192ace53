//! Scripts, modules, tests and BIOS files that a link leads out of their project.
//!
//! Whoever loads a project has agreed to what is in it. A link in a clone may lead to any file, and what a script returns
//! goes to a model: a module of secrets would be read without a permission. So a file counts only where it lies in the
//! project. `scripts/` and `scripts/lib` may be links to folders elsewhere, as may the project itself: then the file lies
//! beneath the folder that they lead to.

use std::io::{Error, Result};
use std::path::{Component, Path};

use super::discover::{is_script, lib_folder, scripts_folder};

/// Refuses the file at `path` of the project at `root` where it lies elsewhere. What is not there is not refused.
///
/// # Errors
/// That it leads out, and where to.
pub(super) fn refuse_outside(root: &Path, path: &Path) -> Result<()> {
    let folders = [lib_folder(root), scripts_folder(root), root.to_owned()];
    if folders.iter().find_map(|folder| is_plainly_beneath(folder, path)).unwrap_or(false) {
        return Ok(());
    }
    let Ok(real) = std::fs::canonicalize(path) else { return Ok(()) };
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    let is_beneath =
        |folder: &Path| std::fs::canonicalize(folder).is_ok_and(|folder| real.starts_with(folder));
    if is_beneath(root) || folders.iter().any(|folder| is_beneath(folder)) {
        return Ok(());
    }
    let or_else = if is_script(path) { ", or link the whole folder `scripts`" } else { "" };
    Err(Error::other(format!(
        "it leads out of the project, to {}; put a copy into the project{or_else}",
        real.display()
    )))
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
