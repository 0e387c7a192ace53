//! The project of a worker: the one that contains the folder of the command, or the user's own.

use std::path::{Path, PathBuf};

use deftool_project::{Generation, LiveProject, find_root};
use deftool_worker::DEFAULT_WORKER;

use super::Source;
use super::options::WorkerOptions;
use crate::cli::outcome::CliError;
use crate::cli::project::user::ProjectRoots;

/// The project of a worker.
pub(in crate::cli) struct WorkerProject {
    pub(in crate::cli) root: PathBuf,
    pub(in crate::cli) project: LiveProject,
    /// The folder whose trust applies: the project, or the folder of the command for the user's own one.
    pub(in crate::cli) folder: PathBuf,
    /// Whether it is the user's own project, which needs trust only to change the current project or folder.
    pub(in crate::cli) is_user: bool,
}

/// Opens the project of a worker: the user's own outside of projects, or if only that has the named worker. A recording or
/// journal has no authority, so it selects no worker of the user. File names in messages are relative to `from`.
///
/// # Errors
/// If there is no project, or if a file cannot be read.
pub(in crate::cli) fn open_project(
    options: &WorkerOptions,
    folder: &Path,
    from: &Path,
    source: Source<'_>,
) -> Result<WorkerProject, CliError> {
    let roots = ProjectRoots::find(folder)?;
    let named = options.worker.as_deref();
    let open_user = || {
        let opened = roots.user().zip(roots.open_user(from, None));
        let folder = roots.trusted_folder().to_owned();
        opened.map(|(root, project)| WorkerProject { root: root.to_owned(), project, folder, is_user: true })
    };
    let Some(root) = roots.project.clone() else {
        // In the folder of the user's own project, its place selects it.
        let found = find_root(folder);
        let is_selected =
            named.is_some() || found.is_ok() || matches!(source, Source::CommandLine | Source::Try);
        if is_selected && let Some(user) = open_user() {
            return Ok(user);
        }
        found?;
        return Err(CliError::Usage(String::from("your own project cannot be used")));
    };
    let project = LiveProject::open_for_worker(&root, from, named.or(source.worker()))?;
    if let Some(name) = named.filter(|name| !has_worker(&project.current(), name))
        && let Some(user) = open_user()
        && has_worker(&user.project.current(), name)
    {
        return Ok(user);
    }
    let project = if options.user_tools { roots.add_user(project, from, None) } else { project };
    Ok(WorkerProject { folder: root.clone(), root, project, is_user: false })
}

/// Returns whether the worker called `name`, or the default worker, is one of the user's own project.
pub(in crate::cli) fn is_user_worker(generation: &Generation, name: Option<&str>) -> bool {
    let Some(user) = generation.user() else { return false };
    let is_outside = generation.load.root.is_none();
    is_outside || name.is_some_and(|name| !has_worker(generation, name) && has_worker(user, name))
}

/// Returns whether a project has a worker called `name`. Without workers, it has the default one.
fn has_worker(generation: &Generation, name: &str) -> bool {
    let workers = &generation.load.workers;
    let is_default = workers.is_empty() && name == DEFAULT_WORKER;
    is_default || workers.iter().any(|worker| worker.name.value == name)
}
