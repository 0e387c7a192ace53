//! The project of a worker: the one that contains the folder of the command, or the user's own.

use std::path::{Path, PathBuf};

use deftool_project::{Generation, LiveProject};
use deftool_worker::DEFAULT_WORKER;

use super::options::WorkerOptions;
use crate::cli::outcome::CliError;
use crate::cli::project::user::ProjectRoots;

/// The project of a worker.
pub(in crate::cli) struct WorkerProject {
    pub(in crate::cli) root: PathBuf,
    pub(in crate::cli) project: LiveProject,
    /// Whether it is the user's own project, which needs no trust.
    pub(in crate::cli) is_user: bool,
}

/// Opens the project of a worker: the user's own outside of projects, or if only that has the named worker. `recorded`: the
/// worker of a recording. File names in messages are relative to `from`.
///
/// # Errors
/// If there is no project, or if a file cannot be read.
pub(in crate::cli) fn open_project(
    options: &WorkerOptions,
    folder: &Path,
    from: &Path,
    recorded: Option<&str>,
) -> Result<WorkerProject, CliError> {
    let roots = ProjectRoots::find(folder)?;
    let named = options.worker.as_deref();
    let user = |root: &Path, project| WorkerProject { root: root.to_owned(), project, is_user: true };
    let Some(root) = roots.project.clone() else {
        let opened = roots.user().zip(roots.open_user(from, None));
        let opened = opened.map(|(root, project)| user(root, project));
        return opened
            .ok_or_else(|| CliError::Usage(String::from("no project found, and your own cannot be used")));
    };
    let project = LiveProject::open_for_worker(&root, from, named.or(recorded))?;
    if let Some(name) = named.filter(|name| !has_worker(&project.current(), name))
        && let Some((root, own)) = roots.user().zip(roots.open_user(from, None))
        && has_worker(&own.current(), name)
    {
        return Ok(user(root, own));
    }
    let project = if options.user_tools { roots.add_to_workers(project, from) } else { project };
    Ok(WorkerProject { root, project, is_user: false })
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
