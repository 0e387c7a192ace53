//! The user's state folder.
//!
//! The location is `$XDG_STATE_HOME/deftool` (XDG Base Directory Specification 0.8: a relative value is ignored), or
//! the system's default.

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};

/// Returns the state folder, which may not exist. Returns `None` if no environment variable specifies it.
pub(in crate::cli) fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| {
        if cfg!(windows) {
            absolute("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            absolute("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            absolute("HOME").map(|home| home.join(".local/state"))
        }
    });
    base.map(|base| base.join("deftool"))
}

/// Creates the folder if necessary, accessible only to the user.
pub(super) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
