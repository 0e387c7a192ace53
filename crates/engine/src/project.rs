//! The project of a worker: the one that contains a folder, or the user's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_project::{Generation, LiveProject, ProjectError, find_root};
use deftool_worker::{DEFAULT_WORKER, usable_workers};

use crate::{Notices, OpenError, ProjectRoots};

/// The project of a worker.
#[derive(Clone)]
pub struct WorkerProject {
    /// Its folder.
    pub root: PathBuf,
    /// Its tools and workers.
    pub project: Arc<LiveProject>,
    /// The folder whose trust applies: the project, or the folder of the command for the user's own one.
    pub folder: PathBuf,
    /// Whether it is the user's own project, which needs trust only to change the current project or folder.
    pub is_user: bool,
}

/// What selects the project of a worker.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice<'c> {
    /// The worker that the user names.
    pub worker: Option<&'c str>,
    /// The name of a worker in a recording or journal, which has no authority: it selects no worker of the user. Empty: a
    /// file that names none.
    pub stored: Option<&'c str>,
    /// The worker that the user chose in a stored session, which has no authority: it is used if the user names none, the
    /// project has it, and it can be used.
    pub chosen: Option<&'c str>,
    /// Whether a worker of a project is also offered the tools of the user.
    pub user_tools: bool,
    /// Whether no project is needed, because the user names the model server.
    pub is_optional: bool,
}

impl WorkerProject {
    /// Opens the project of a worker: the user's own outside of projects, or if only that has the named worker. File names
    /// in messages are relative to `from`.
    ///
    /// # Errors
    /// If there is no project, or if a file cannot be read.
    pub fn open(
        choice: Choice<'_>,
        folder: &Path,
        from: &Path,
        notices: &Notices,
    ) -> Result<Self, OpenError> {
        match open(choice, folder, from, notices) {
            Err(OpenError::Project(ProjectError::NoProject { .. })) if choice.is_optional => {
                let (root, project) = (from.to_owned(), Arc::new(LiveProject::without_files()));
                Ok(Self { folder: root.clone(), root, project, is_user: false })
            }
            opened => opened,
        }
    }
}

fn open(
    choice: Choice<'_>,
    folder: &Path,
    from: &Path,
    notices: &Notices,
) -> Result<WorkerProject, OpenError> {
    let roots = ProjectRoots::find(folder, notices)?;
    let named = choice.worker;
    let open_user = || {
        let opened = roots.user().zip(roots.open_user(from, None));
        let folder = roots.trusted_folder().to_owned();
        opened.map(|(root, project)| WorkerProject {
            root: root.to_owned(),
            project: Arc::new(project),
            folder,
            is_user: true,
        })
    };
    let Some(root) = roots.project.clone() else {
        // In the folder of the user's own project, its place selects it.
        let found = find_root(folder);
        let is_selected = named.is_some() || found.is_ok() || choice.stored.is_none();
        if is_selected && let Some(user) = open_user() {
            return Ok(user);
        }
        found?;
        return Err(OpenError::Unusable(String::from("your own project cannot be used")));
    };
    let stored = choice.stored.filter(|name| !name.is_empty());
    let open_for = |name| LiveProject::open_for_worker(&root, from, name);
    let chosen = choice.chosen.filter(|_| named.is_none());
    let chosen = chosen.map(|name| Ok::<_, ProjectError>((name, open_for(Some(name))?))).transpose()?;
    let project = match chosen {
        Some((name, project)) if is_usable(&project.current(), name) => project,
        Some(_) | None => open_for(named.or(stored))?,
    };
    if let Some(name) = named.filter(|name| !has_worker(&project.current(), name))
        && let Some(user) = open_user()
        && has_worker(&user.project.current(), name)
    {
        return Ok(user);
    }
    let project = if choice.user_tools { roots.add_user(project, from, None) } else { project };
    Ok(WorkerProject { folder: root.clone(), root, project: Arc::new(project), is_user: false })
}

/// Returns whether a session goes on with the worker called `name`, which the user chose in it ([`Choice::chosen`]).
pub fn is_usable(generation: &Generation, name: &str) -> bool {
    usable_workers(&generation.load).any(|usable| usable == name)
}

/// Returns whether the worker called `name`, or the default worker, is one of the user's own project.
pub fn is_user_worker(generation: &Generation, name: Option<&str>) -> bool {
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
