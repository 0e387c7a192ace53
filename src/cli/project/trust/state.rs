//! The user's state folder.
//!
//! The location is `$XDG_STATE_HOME/deftool` (XDG Base Directory Specification 0.8: a relative value is ignored), or
//! the system's default.

use std::path::PathBuf;

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
