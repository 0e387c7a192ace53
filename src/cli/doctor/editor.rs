//! Emacs and its packages for models, where Emacs is. It is not started: packages are looked for where package managers put them.

use std::path::{Path, PathBuf};

use super::Line;
use super::files::find_program;

/// What reads tools as deftool writes them.
const PACKAGES: [&str; 2] = ["gptel", "llm"];

/// Below the home folder: package.el, straight, elpaca and Doom, under both places of an init folder.
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

/// Packages of the system.
const SYSTEM: [&str; 3] =
    ["/usr/share/emacs/site-lisp", "/usr/share/emacs/site-lisp/elpa", "/usr/local/share/emacs/site-lisp"];

pub(super) fn check() -> Option<Line> {
    find_program("emacs", Path::new(""))?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let of_user = home.iter().flat_map(|home| FOLDERS.iter().map(|folder| home.join(folder)));
    let folders: Vec<PathBuf> = of_user.chain(SYSTEM.iter().map(PathBuf::from)).collect();
    let installed: Vec<&str> = PACKAGES.into_iter().filter(|package| is_in(&folders, package)).collect();
    Some(if installed.is_empty() {
        Line::ok("editor", "Emacs, with neither gptel nor llm in the usual folders")
    } else {
        Line::ok("editor", format!("Emacs with {}", installed.join(" and ")))
    })
}

/// `gptel`, `gptel.el`, or `gptel-20250101.123` of package.el; `gptel-magit` is another.
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
