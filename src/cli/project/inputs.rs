//! The folders that a command starts from, and its inputs.

use std::path::{Path, PathBuf};

use deftool_project::{
    Input, Load, ProjectError, find_projects, find_root, has_specs, projects_below, resolve_inputs,
};

use crate::cli::options::ProjectOptions;
use crate::cli::outcome::CliError;

/// The folders that a command starts from.
pub(in crate::cli) struct CommandDirs {
    /// The current folder. File names in messages are relative to it.
    pub(in crate::cli) current: PathBuf,
    /// `--directory`, or the current folder. The project root is this folder or one of its parents.
    pub(in crate::cli) project: PathBuf,
}

impl ProjectOptions {
    /// Returns the folders that a command starts from.
    ///
    /// # Errors
    /// If the folder of `--directory` cannot be read or is not a folder.
    pub(in crate::cli) fn dirs(&self) -> Result<CommandDirs, CliError> {
        command_dirs(self.directory())
    }
}

/// Returns the folders that a command starts from.
///
/// # Errors
/// If `project` cannot be read or is not a folder.
pub(in crate::cli) fn command_dirs(project: Option<&Path>) -> Result<CommandDirs, CliError> {
    let unreadable = |path: &Path, source| ProjectError::Unreadable { path: path.to_owned(), source };
    let current = std::env::current_dir().map_err(|source| unreadable(Path::new("."), source))?;
    let folder = match project {
        None => current.clone(),
        Some(project) => {
            let folder = current.join(project);
            let metadata = std::fs::metadata(&folder).map_err(|source| unreadable(&folder, source))?;
            if !metadata.is_dir() {
                return Err(CliError::Usage(format!(
                    "--directory: `{}` is not a directory",
                    project.display()
                )));
            }
            folder
        }
    };
    Ok(CommandDirs { current, project: folder })
}

/// Returns the paths to read: `paths`, and the projects below each folder in them. Without paths, returns the project
/// around the current folder and those below it, or nothing if there are none below it.
///
/// # Errors
/// If a folder has too many subfolders.
pub(in crate::cli) fn with_projects_below(
    paths: &[PathBuf],
    dirs: &CommandDirs,
) -> Result<Vec<PathBuf>, CliError> {
    let mut found = Vec::new();
    if paths.is_empty() {
        found = find_projects(&dirs.project)?;
        let around = find_root(&dirs.project).ok().filter(|_| !found.is_empty());
        found.extend(around.filter(|root| has_specs(root)));
    }
    for path in paths {
        // The projects come first: each of their files is read once, as a part of its project.
        let folder = dirs.project.join(path);
        if folder.is_dir() {
            found.extend(find_projects(&folder)?);
        }
        found.push(path.clone());
    }
    Ok(found)
}

/// Resolves `paths` to inputs. Without paths, returns the files of the project.
///
/// # Errors
/// If the paths contain no spec file.
pub(in crate::cli) fn inputs_of(paths: &[PathBuf], folder: &Path) -> Result<Vec<Input>, CliError> {
    let inputs = resolve_inputs(paths, folder)?;
    if !paths.is_empty() && inputs.iter().all(Input::is_empty) {
        let message = "no spec files found; spec files have the extension .eld, .el, .lisp or .sexp; Org files are read if they are named";
        return Err(CliError::Usage(String::from(message)));
    }
    Ok(inputs)
}

/// Refuses a project that defines nothing, unless its files were named: a check of nothing must not pass.
///
/// # Errors
/// If no paths were given and `load` is empty.
pub(in crate::cli) fn refuse_nothing(paths: &[PathBuf], load: &Load) -> Result<(), CliError> {
    match &load.root {
        Some(root) if paths.is_empty() && load.is_empty() => {
            let (root, below) = (root.clone(), projects_below(root));
            Err(ProjectError::NothingDefined { root, below }.into())
        }
        _ => Ok(()),
    }
}
