//! The user's own project, whose tools and workers are offered everywhere: the configuration folder of the user.
//!
//! Its permissions need no trust, because only the user can write it: if other users could, it is ignored. Commands whose
//! results must not depend on the machine (`check`, `compile`, `fmt`, `test`, `diff`, `replay`) do not use this module.

use std::collections::HashSet;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::spec::{DialectSpec, PathBase};
use deftool_lang::text::{count, readable as clean};
use deftool_process::files::{untrusted_parent_reason, untrusted_reason};
use deftool_project::{
    CurrentFolder, Generation, Listener, LiveProject, Load, ProjectError, ToolOrigin, find_root, load_specs,
    resolve_inputs, resolve_links,
};

use crate::folders::{VARIABLE, config_folder, state_folder};
use crate::text::quote;
use crate::{Notices, OpenError};

/// The variable with the home folder.
const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// Maximum number of links in a path, as in operating systems.
const MAX_LINKS: usize = 40;

/// Maximum number of files in the user's project, so that its check is fast.
const MAX_FILES: usize = 10_000;

/// Returns why a configuration folder inside a project is not used: the author of the project could write the user's tools.
pub fn inside_project(folder: &Path) -> Option<String> {
    let root = find_root(resolve_links(folder).parent()?).ok()?;
    let root = clean(&root.display().to_string());
    Some(format!(
        "it is inside of `{root}`, whose `specs` makes it a project, which could define your tools; rename `specs`, or set \
         {VARIABLE} to a folder outside"
    ))
}

/// The projects whose tools a command offers. At least one exists.
#[derive(Clone)]
pub struct ProjectRoots {
    /// The project that contains the folder of the command, unless it is the user's own.
    pub project: Option<PathBuf>,
    /// The user's own project.
    user: Option<PathBuf>,
    /// The project or, outside of projects, the folder of the command. Tools of the user with `:base project` work there.
    current: PathBuf,
    notices: Notices,
}

impl ProjectRoots {
    /// Finds the project that contains `folder`, and the user's own. Reports why the latter is ignored.
    ///
    /// # Errors
    /// If there is no project, or if the configuration folder is relative.
    pub fn find(folder: &Path, notices: &Notices) -> Result<Self, OpenError> {
        let project = find_root(folder);
        let Some(user) = config_folder()?.and_then(|folder| usable(folder, notices)) else {
            let (project, notices) = (project?, notices.clone());
            return Ok(Self { project: Some(project.clone()), user: None, current: project, notices });
        };
        let (project, current) = match project {
            Ok(root) if resolve_links(&root) == resolve_links(&user) => (None, root),
            Ok(root) => (Some(root.clone()), root),
            Err(ProjectError::NoProject { .. }) => (None, folder.to_owned()),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { project, user: Some(user), current, notices: notices.clone() })
    }

    /// Returns the folder whose trust applies: the project or, outside of projects, the folder of the command.
    pub fn trusted_folder(&self) -> &Path {
        &self.current
    }

    /// Returns the folder that tools of the user with `:base project` work in.
    pub fn current(&self) -> CurrentFolder {
        // Links are resolved once: a link that is changed later leads nowhere else.
        let folder = resolve_links(&self.current);
        match self.why_unusable(&folder) {
            Some(why) => Err(Arc::from(why)),
            None => Ok(Arc::from(folder)),
        }
    }

    /// Returns why tools of the user do not work in `folder`, a path without links, as in a project: it has too much of the
    /// user, or what decides about tools.
    fn why_unusable(&self, folder: &Path) -> Option<String> {
        let shown = clean(&folder.display().to_string());
        let Some(home) = std::env::var_os(HOME).filter(|home| Path::new(home).is_absolute()) else {
            return Some(format!("the home folder is not known, so `{shown}` may contain it; set {HOME}"));
        };
        if folder.parent().is_none() || resolve_links(Path::new(&home)).starts_with(folder) {
            return Some(format!(
                "`{shown}` is your home folder or contains it; run the command in a project, or name one with -C"
            ));
        }
        let of_deftool = self.user.iter().cloned().chain(state_folder());
        let overlaps = |kept: PathBuf| {
            let kept = resolve_links(&kept);
            kept.starts_with(folder) || folder.starts_with(&kept)
        };
        of_deftool.into_iter().any(overlaps).then(|| {
            format!("`{shown}` is a folder of deftool or contains one; run the command in a project, or name one with -C")
        })
    }

    /// Returns the same projects, whose user works in `folder`. `None`: in a project, or if the user has no tools.
    pub fn in_folder(&self, folder: &Path) -> Option<Self> {
        self.user.as_ref().filter(|_| self.project.is_none())?;
        let current = find_root(folder).unwrap_or_else(|_| folder.to_owned());
        Some(Self { current, ..self.clone() })
    }

    /// Returns the project that contains the folder of the command or, outside of projects, the user's own.
    pub fn main_root(&self) -> &Path {
        self.project.as_deref().or(self.user.as_deref()).unwrap_or(Path::new("."))
    }

    /// Returns the user's own project.
    pub fn user(&self) -> Option<&Path> {
        self.user.as_deref()
    }

    /// Loads one tool. If there is no tool of this name, loads all tools. File names in messages are relative to `from`.
    ///
    /// # Errors
    /// If a file of the project cannot be read.
    pub fn load_tool(&self, from: &Path, name: &str) -> Result<Generation, OpenError> {
        let generation = match &self.project {
            Some(root) => Generation::load_tool(root, from, name, None)?,
            None => Generation::empty(),
        };
        let current = self.current();
        Ok(self.join(generation, |user| Generation::load_tool(user, from, name, Some(&current))))
    }

    /// Adds the tools of the user to a generation of the project. `load` loads the user's own project.
    pub fn join(
        &self,
        generation: Generation,
        load: impl FnOnce(&Path) -> Result<Generation, ProjectError>,
    ) -> Generation {
        let loaded = self
            .user()
            .and_then(|user| report_errors(user, load(user), |loaded| &loaded.load, &self.notices));
        match loaded {
            Some(user) => generation.beside(Arc::new(user)),
            None => generation,
        }
    }

    /// Loads the specs of both projects, without scripts: first those of the project.
    ///
    /// # Errors
    /// If a file of the project cannot be read.
    pub fn load_specs(&self, from: &Path) -> Result<Vec<(ToolOrigin, Load)>, OpenError> {
        let load = |root: &Path| load_specs(&resolve_inputs(&[], root)?, from);
        let mut loads = Vec::new();
        if let Some(root) = &self.project {
            loads.push((ToolOrigin::Project, load(root)?));
        }
        let user = self.user().and_then(|user| report_errors(user, load(user), |load| load, &self.notices));
        loads.extend(user.map(|load| (ToolOrigin::User, load)));
        Ok(loads)
    }

    /// Opens both projects. `listener` returns the listener of a project, which may be that of the user.
    ///
    /// # Errors
    /// If a file of the project cannot be read.
    pub fn open(&self, from: &Path, listener: impl Fn(bool) -> Listener) -> Result<LiveProject, OpenError> {
        let project = match &self.project {
            Some(root) => LiveProject::open(root, from, Some(listener(false)))?,
            None => LiveProject::without_files(),
        };
        Ok(self.add_user(project, from, Some(listener(true))))
    }

    /// Adds the tools of the user to `project`.
    pub fn add_user(&self, project: LiveProject, from: &Path, listener: Option<Listener>) -> LiveProject {
        match self.open_user(from, listener) {
            Some(user) => project.beside(Arc::new(user)),
            None => project,
        }
    }

    /// Reports the tools of the user that cannot work in the folder of the command.
    fn report_left_out(&self, user: &Generation) {
        let left_out = user.tools().filter(|loaded| loaded.tool.base == PathBase::Project).count();
        if let (Err(why), 1..) = (self.current(), left_out) {
            let tools = count(left_out, "tool");
            self.notices.send(&format!("note: {tools} of yours with :base project cannot work here: {why}"));
        }
    }

    /// Opens the user's own project. Reports its errors, also after each reload.
    pub fn open_user(&self, from: &Path, listener: Option<Listener>) -> Option<LiveProject> {
        let root = self.user()?.to_owned();
        let (folder, notices) = (root.clone(), self.notices.clone());
        let reported: Listener = Box::new(move |loaded| {
            if let Ok(generation) = loaded {
                report_first_error(&folder, &generation.load, &notices);
            }
            if let Some(listener) = &listener {
                listener(loaded);
            }
        });
        let opened = LiveProject::open_of_user(&root, from, self.current(), Some(reported));
        let opened = opened.map_err(|error| report_ignored(&root, &error.to_string(), &self.notices)).ok()?;
        let generation = opened.current();
        report_first_error(&root, &generation.load, &self.notices);
        self.report_left_out(&generation);
        Some(opened)
    }
}

/// Returns the dialects of the user's own project, which count for all servers. Its errors are reported where its tools are
/// used.
pub fn user_dialects() -> Vec<DialectSpec> {
    let folder = config_folder().ok().flatten().and_then(|folder| usable(folder, &Notices::default()));
    let load = folder.and_then(|root| load_specs(&resolve_inputs(&[], &root).ok()?, &root).ok());
    load.map(|load| load.dialects).unwrap_or_default()
}

/// Returns a load of the user's own project, and reports its first error. If it failed, reports why.
fn report_errors<T>(
    user: &Path,
    loaded: Result<T, ProjectError>,
    load_of: impl Fn(&T) -> &Load,
    notices: &Notices,
) -> Option<T> {
    match loaded {
        Ok(loaded) => {
            report_first_error(user, load_of(&loaded), notices);
            Some(loaded)
        }
        Err(error) => {
            report_ignored(user, &error.to_string(), notices);
            None
        }
    }
}

/// Reports the first error of the user's own project, on one line.
fn report_first_error(user: &Path, load: &Load, notices: &Notices) {
    let error = load.findings.iter().find(|finding| finding.severity == Severity::Error);
    if let Some(error) = error {
        let line = clean(&render_concise(error, &load.sources));
        let folder = quote(&clean(&user.display().to_string()));
        notices.send(&format!(
            "warning: your tools have errors: {line}; run `deftool check -C {folder}` to see all"
        ));
    }
}

fn report_ignored(user: &Path, why: &str, notices: &Notices) {
    let folder = clean(&user.display().to_string());
    notices.send(&format!("warning: your tools in `{folder}` are ignored: {}", clean(why)));
}

/// Returns the configuration folder if it is a project that only the user can write. Reports why it is ignored.
fn usable(config: PathBuf, notices: &Notices) -> Option<PathBuf> {
    let untrusted = match std::fs::metadata(config.join("specs")) {
        Ok(specs) if specs.is_dir() => match inside_project(&config) {
            Some(why) => Ok(Some(why)),
            None => untrusted_part(&config),
        },
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Err(error),
        Ok(_) | Err(_) => return None,
    };
    let Some(why) = untrusted.unwrap_or_else(|error| Some(error.to_string())) else { return Some(config) };
    report_ignored(&config, &why, notices);
    None
}

/// Returns why another user may be able to write the project in `folder`: its files, its folders, or those in which the
/// system looks them up. Hidden files are checked when they are read.
///
/// # Errors
/// If a folder cannot be read.
fn untrusted_part(folder: &Path) -> std::io::Result<Option<String>> {
    if let Some(why) = untrusted_parent(folder)? {
        return Ok(Some(why));
    }
    let untrusted = |path: &Path, why| Some(describe(path, why, "chmod -R go-w", folder));
    if let Some(why) = untrusted_reason(&std::fs::metadata(folder)?) {
        return Ok(untrusted(folder, why));
    }
    let mut pending = vec![folder.to_owned()];
    let mut entered = HashSet::from([std::fs::canonicalize(folder)?]);
    let mut count = 0;
    while let Some(current) = pending.pop() {
        let named = |error| Error::other(format!("cannot read `{}`: {error}", current.display()));
        for entry in std::fs::read_dir(&current).map_err(named)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            // A link without a target is not read.
            let Some(metadata) = std::fs::metadata(&path).ok().filter(|_| !name.starts_with(b".")) else {
                continue;
            };
            count += 1;
            if count > MAX_FILES {
                return Ok(Some(format!("it has more than {MAX_FILES} files")));
            }
            if let Some(why) = untrusted_reason(&metadata) {
                return Ok(untrusted(&path, why));
            }
            // Only these folders may be links out of the project.
            let is_followed =
                !path.is_symlink() || ["scripts", "scripts/lib"].iter().any(|name| path == folder.join(name));
            if !metadata.is_dir() || !is_followed || !entered.insert(std::fs::canonicalize(&path)?) {
                continue;
            }
            if path.is_symlink()
                && let Some(why) = untrusted_parent(&path)?
            {
                return Ok(Some(why));
            }
            pending.push(path);
        }
    }
    Ok(None)
}

/// Returns why another user may be able to replace the folder at `path`, or a link that leads to it. The folders above the
/// home folder are those of the system.
///
/// # Errors
/// If a folder cannot be read.
fn untrusted_parent(path: &Path) -> std::io::Result<Option<String>> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let homes = [resolve_links(&home), home];
    let is_system = |parent: &&PathBuf| homes.iter().any(|home| home.starts_with(parent) && home != *parent);
    for parent in searched_folders(path)?.iter().filter(|parent| !is_system(parent)) {
        if let Some(why) = untrusted_parent_reason(&std::fs::metadata(parent)?) {
            return Ok(Some(describe(parent, why, "chmod go-w", parent)));
        }
    }
    Ok(None)
}

/// Returns the folders in which the system looks up the parts of an absolute path, and those of the links in it.
///
/// # Errors
/// If there are too many links.
fn searched_folders(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let reversed = |path: &Path| -> Vec<PathBuf> {
        path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let (mut here, mut rest) = (PathBuf::new(), reversed(path));
    let (mut searched, mut links) = (Vec::new(), 0);
    while let Some(part) = rest.pop() {
        if part.as_os_str() == ".." {
            here.pop();
            continue;
        }
        let next = here.join(part);
        match std::fs::read_link(&next) {
            Ok(_) if links == MAX_LINKS => return Err(Error::other("too many links")),
            Ok(target) => {
                links += 1;
                rest.extend(reversed(&target));
                searched.push(here.clone());
            }
            Err(_) => searched.push(std::mem::replace(&mut here, next)),
        }
    }
    searched.retain(|folder| !folder.as_os_str().is_empty());
    Ok(searched)
}

/// Describes the part of the folder that another user can write, with the command that makes `target` private.
fn describe(path: &Path, why: &str, command: &str, target: &Path) -> String {
    let target = format!("{command} {}", quote(&target.display().to_string()));
    format!("`{}` {}", path.display(), why.replace("chmod go-w", &target))
}
