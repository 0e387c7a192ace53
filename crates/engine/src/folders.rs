//! The folders and variables of the user.

use std::path::{Path, PathBuf};

use deftool_lang::text::readable;

use crate::OpenError;

/// The variable that overrides the configuration folder.
pub(crate) const VARIABLE: &str = "DEFTOOL_CONFIG_DIR";
const CONFIG_HOME: &str = "XDG_CONFIG_HOME";
const STATE_HOME: &str = "XDG_STATE_HOME";

/// Returns the configuration folder, which may not exist. Returns `None` if no environment variable specifies it.
///
/// # Errors
/// If `DEFTOOL_CONFIG_DIR` is not absolute: every folder would have tools of its own.
pub fn config_folder() -> Result<Option<PathBuf>, OpenError> {
    match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) {
        Some(folder) if !folder.is_absolute() => {
            let folder = readable(&folder.display().to_string());
            Err(OpenError::Unusable(format!("{VARIABLE} must be an absolute path, not `{folder}`")))
        }
        Some(folder) => Ok(Some(folder)),
        None => Ok(absolute(CONFIG_HOME).or_else(default_config_home).map(|base| base.join("deftool"))),
    }
}

/// Returns the state folder, which may not exist: `$XDG_STATE_HOME/deftool` (XDG Base Directory Specification 0.8: a
/// relative value is ignored), or the system's default. Returns `None` if no environment variable specifies it.
pub fn state_folder() -> Option<PathBuf> {
    absolute(STATE_HOME).or_else(default_state_home).map(|base| base.join("deftool"))
}

/// Returns the variables that set the folders of the user to others than those of the system.
pub fn folder_variables() -> Vec<(&'static str, String)> {
    let variables =
        [(VARIABLE, None), (CONFIG_HOME, default_config_home()), (STATE_HOME, default_state_home())];
    let set = variables.into_iter().filter_map(|(name, default)| Some((name, environment(name)?, default)));
    let changed = set.filter(|(_, value, default)| default.as_deref() != Some(Path::new(value)));
    changed.map(|(name, value, _)| (name, value)).collect()
}

fn default_config_home() -> Option<PathBuf> {
    if cfg!(windows) { absolute("APPDATA") } else { absolute("HOME").map(|home| home.join(".config")) }
}

fn default_state_home() -> Option<PathBuf> {
    if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        absolute("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        absolute("HOME").map(|home| home.join(".local/state"))
    }
}

fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns the value of an environment variable, unless it is blank.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
