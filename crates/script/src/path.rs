//! Paths of specs and scripts: absolute, relative to the project, or in a folder of the user.

use std::path::{Path, PathBuf};

use deftool_lang::spec::HomeFolder;

/// The variable with the home folder.
const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// Environment variables that [`resolve_path`] reads.
pub(crate) fn home_variables() -> [&'static str; 5] {
    HomeFolder::ALL.map(|folder| folder.variable().unwrap_or(HOME))
}

/// Returns `path` relative to `root`, unless it is absolute or begins with a folder of the user. Does not access the file
/// system.
///
/// # Errors
/// If the beginning of the path is not known, or if no variable contains the folder.
pub fn resolve_path(root: &Path, path: &str) -> Result<PathBuf, String> {
    match HomeFolder::split(path) {
        Ok(None) => Ok(root.join(path)),
        Ok(Some((folder, rest))) => match folder_path(folder) {
            Some(folder) if rest.is_empty() => Ok(folder),
            Some(folder) => Ok(folder.join(rest)),
            None => {
                let variables: Vec<_> = folder.variable().into_iter().chain([HOME]).collect();
                let (folder, variables) = (folder.as_str(), variables.join(" or "));
                Err(format!("the folder `{folder}` is not known; set {variables} to an absolute path"))
            }
        },
        Err(unknown) => Err(format!("{unknown}; {}", unknown.help())),
    }
}

/// Returns the path of the folder. A relative value counts as not set, as in the XDG Base Directory Specification.
fn folder_path(folder: HomeFolder) -> Option<PathBuf> {
    let value = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = folder.variable().and_then(value);
    own.or_else(|| Some(value(HOME)?.join(folder.default_in_home())))
}
