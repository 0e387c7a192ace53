//! The folders and variables of the user.

use std::path::PathBuf;

use deftool_lang::text::readable;

use crate::OpenError;

/// The variable that overrides the configuration folder.
pub(crate) const VARIABLE: &str = "DEFTOOL_CONFIG_DIR";

/// Returns the configuration folder, which may not exist. Returns `None` if no environment variable specifies it.
///
/// # Errors
/// If `DEFTOOL_CONFIG_DIR` is not absolute: every folder would have tools of its own.
pub fn config_folder() -> Result<Option<PathBuf>, OpenError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let default = || {
        let base = absolute("XDG_CONFIG_HOME").or_else(|| {
            if cfg!(windows) {
                absolute("APPDATA")
            } else {
                absolute("HOME").map(|home| home.join(".config"))
            }
        });
        base.map(|base| base.join("deftool"))
    };
    match variable(VARIABLE) {
        Some(folder) if !folder.is_absolute() => {
            let folder = readable(&folder.display().to_string());
            Err(OpenError::Unusable(format!("{VARIABLE} must be an absolute path, not `{folder}`")))
        }
        Some(folder) => Ok(Some(folder)),
        None => Ok(default()),
    }
}

/// Returns the state folder, which may not exist: `$XDG_STATE_HOME/deftool` (XDG Base Directory Specification 0.8: a
/// relative value is ignored), or the system's default. Returns `None` if no environment variable specifies it.
pub fn state_folder() -> Option<PathBuf> {
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

/// Returns the value of an environment variable, unless it is blank.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
