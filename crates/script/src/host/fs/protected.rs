//! Folders that no write grant above them includes: who writes the specs or scripts of a project, or the trust in
//! projects, could run anything.
//!
//! A grant that names such a folder, or a path in it, applies to it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// The folders of a project that define its tools.
const OF_PROJECT: [&str; 2] = ["specs", "scripts"];

/// Folders of the user with configuration and trust, without links.
static OF_USER: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Protects folders, paths without links, from the writes of all scripts of this process, unless a grant names them. Called
/// once, before any script runs.
pub fn protect_folders(folders: Vec<PathBuf>) {
    let _ = OF_USER.set(folders);
}

/// Returns the first protected folder on the way from `granted`, an existing folder without links, to `rest` in it.
pub(super) fn protected_folder(granted: &Path, rest: &Path) -> Option<PathBuf> {
    let of_user = OF_USER.get().map(Vec::as_slice).unwrap_or_default();
    let mut here = granted.to_owned();
    for part in rest.components() {
        let Component::Normal(name) = part else { continue };
        let is_of_project =
            OF_PROJECT.iter().any(|protected| is_name(name, protected)) && here.join("specs").is_dir();
        here.push(name);
        if is_of_project || of_user.contains(&here) {
            return Some(here);
        }
    }
    None
}

/// Compares names as the file system does by default.
fn is_name(name: &OsStr, protected: &str) -> bool {
    if cfg!(any(windows, target_os = "macos")) {
        name.eq_ignore_ascii_case(protected)
    } else {
        name == protected
    }
}
