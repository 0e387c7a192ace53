//! Emacs and its packages that use deftool's tools. Emacs is not started; packages are searched in the usual folders of
//! package managers.

use std::path::{Path, PathBuf};

use super::line::Line;
use crate::cli::project::programs::find_program;

/// Packages that read tools compiled by deftool.
const PACKAGES: [&str; 2] = ["gptel", "llm"];

/// Package folders below the home folder: package.el, straight, elpaca and Doom, for both init folders.
const FOLDERS: [&str; 12] = [
    ".emacs.d/elpa",
    ".config/emacs/elpa",
    ".emacs.d/straight/build",
    ".config/emacs/straight/build",
    ".emacs.d/elpaca/builds",
    ".config/emacs/elpaca/builds",
    ".emacs.d/.local/straight/build",
    ".config/emacs/.local/straight/build",
    ".emacs.d/.local/straight/repos",
    ".config/emacs/.local/straight/repos",
    ".emacs.d/site-lisp",
    ".emacs.d/lisp",
];

/// Package folders of the system.
const SYSTEM: [&str; 3] =
    ["/usr/share/emacs/site-lisp", "/usr/share/emacs/site-lisp/elpa", "/usr/local/share/emacs/site-lisp"];

pub(super) fn check() -> Option<Line> {
    find_program("emacs", Path::new(""))?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let user_folders = home.iter().flat_map(|home| FOLDERS.iter().map(|folder| home.join(folder)));
    let folders: Vec<PathBuf> = user_folders.chain(SYSTEM.iter().map(PathBuf::from)).collect();
    let installed: Vec<&str> = PACKAGES.into_iter().filter(|package| is_in(&folders, package)).collect();
    Some(if installed.is_empty() {
        Line::ok("editor", "Emacs, without gptel and llm in the usual folders")
    } else {
        Line::ok("editor", format!("Emacs with {}", installed.join(" and ")))
    })
}

/// Returns whether a folder contains `gptel`, `gptel.el` or `gptel-20250101.123` (package.el), but not `gptel-magit`.
fn is_in(folders: &[PathBuf], package: &str) -> bool {
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| match name.strip_prefix(package) {
        Some("" | ".el") => true,
        Some(rest) => {
            rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        }
        None => false,
    })
}
