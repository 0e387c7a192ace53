//! The projects that `deftool check` checks: the one around the current folder, and those below it.

use std::path::{Path, PathBuf};

use clap::Args;
use deftool_project::{ProjectGlob, find_projects, has_specs, normalize};

use crate::cli::outcome::CliError;
use crate::cli::project::inputs::{CommandDirs, with_projects_below};

/// Maximum number of projects in an error message.
const MAX_LISTED: usize = 10;

#[derive(Debug, Args)]
pub(in crate::cli) struct ProjectsOptions {
    /// Check only the projects in folders that match GLOB, as in `packages/*`; `!GLOB` excludes folders
    #[arg(long = "project-glob", value_name = "GLOB", value_parser = ProjectGlob::parse, conflicts_with = "paths")]
    globs: Vec<ProjectGlob>,
}

impl ProjectsOptions {
    /// Returns the paths to check: the projects that the globs select, or `paths` with the projects below them.
    ///
    /// # Errors
    /// If a folder has too many subfolders, or a glob matches no project.
    pub(in crate::cli) fn paths(
        &self,
        paths: &[PathBuf],
        dirs: &CommandDirs,
    ) -> Result<Vec<PathBuf>, CliError> {
        if self.globs.is_empty() { with_projects_below(paths, dirs) } else { self.select(&dirs.project) }
    }

    /// Returns the projects in `folder` and below it that the globs select. The last glob that matches decides.
    fn select(&self, folder: &Path) -> Result<Vec<PathBuf>, CliError> {
        let folder = &normalize(folder);
        let mut roots = find_projects(folder)?;
        if has_specs(folder) {
            roots.push(folder.clone());
        }
        let name = |root: &Path| root.strip_prefix(folder).unwrap_or(root).to_owned();
        let is_match = |glob: &ProjectGlob| roots.iter().any(|root| glob.matches(&name(root)));
        if let Some(glob) = self.globs.iter().find(|glob| !glob.excludes && !is_match(glob)) {
            return Err(no_match(&format!("`{}` matches no project", glob.text), folder, &roots));
        }
        let by_default = self.globs.iter().all(|glob| glob.excludes);
        let selected = |root: &&PathBuf| {
            let decisive = self.globs.iter().rev().find(|glob| glob.matches(&name(root)));
            decisive.map_or(by_default, |glob| !glob.excludes)
        };
        let selected: Vec<PathBuf> = roots.iter().filter(selected).cloned().collect();
        if selected.is_empty() {
            return Err(no_match("the globs select no project", folder, &roots));
        }
        Ok(selected)
    }
}

/// Creates the error that nothing is selected. Lists the projects.
fn no_match(problem: &str, folder: &Path, roots: &[PathBuf]) -> CliError {
    let name = |root: &PathBuf| match root.strip_prefix(folder) {
        Ok(name) if !name.as_os_str().is_empty() => format!("`{}`", name.display()),
        _ => String::from("`.`"),
    };
    let mut names: Vec<String> = roots.iter().take(MAX_LISTED).map(name).collect();
    names.extend((roots.len() > MAX_LISTED).then(|| String::from("…")));
    CliError::Usage(if names.is_empty() {
        format!("--project-glob: no project found in `{}`", folder.display())
    } else {
        format!("--project-glob: {problem}; projects: {}", names.join(", "))
    })
}
