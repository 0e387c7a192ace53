//! The project: whether it exists, its contents and its findings.

use std::sync::Arc;

use deftool_engine::text::quote;
use deftool_engine::{OpenError, ProjectRoots};
use deftool_lang::diagnostic::Summary;
use deftool_lang::spec::ToolKind;
use deftool_project::{Generation, ProjectError, display_name, find_root};

use super::line::{Level, Line, counted};
use crate::cli::project::inputs::CommandDirs;
use crate::cli::terminal::output::{describe_summary, notices};

/// Name of the checks of the user's own project.
const USER_TOOLS: &str = "user tools";

pub(super) fn check(dirs: &CommandDirs) -> (Option<Generation>, Vec<Line>) {
    let root = match find_root(&dirs.project) {
        Ok(root) => root,
        Err(ProjectError::NoProject { from, .. }) => {
            let message =
                format!("not found: neither {} nor a parent folder contains specs/", from.display());
            return (None, vec![Line::warning("project", message, "create one with `deftool init`")]);
        }
        Err(error) => return (None, vec![unreadable(&error)]),
    };
    match Generation::load(&root, &dirs.current, None) {
        Ok(generation) => {
            let shown = display_name(&root, &dirs.current);
            let shown = if shown.is_empty() { String::from("here") } else { shown };
            let lines = [Some(contents(&generation, &shown, "")), findings(&generation, "")];
            (Some(generation), lines.into_iter().flatten().collect())
        }
        Err(error) => (None, vec![unreadable(&error)]),
    }
}

/// Checks the user's own project, unless it is the project that was checked. Also returns it.
pub(super) fn check_user(dirs: &CommandDirs, is_in_project: bool) -> (Option<Arc<Generation>>, Vec<Line>) {
    let roots = match ProjectRoots::find(&dirs.project, &notices()) {
        Ok(roots) => roots,
        // `check` has reported it.
        Err(OpenError::Project(_)) => return (None, Vec::new()),
        Err(error) => {
            let advice = "set DEFTOOL_CONFIG_DIR to an absolute path outside of projects";
            return (None, vec![Line::error(USER_TOOLS, error.to_string(), advice)]);
        }
    };
    let Some(root) = roots.user().filter(|_| roots.project.is_some() || !is_in_project) else {
        return (None, Vec::new());
    };
    let folder = root.display().to_string();
    match Generation::load_of_user(root, &dirs.current, &roots.current()) {
        Ok(user) => {
            let option = format!(" -C {}", quote(&folder));
            let lines = [Some(contents(&user, &folder, &option)), findings(&user, &option)];
            let lines = lines.into_iter().flatten().map(|line| Line { check: USER_TOOLS, ..line });
            let lines = lines.collect();
            (Some(Arc::new(user)), lines)
        }
        Err(error) => (None, vec![Line { check: USER_TOOLS, ..unreadable(&error) }]),
    }
}

fn unreadable(error: &ProjectError) -> Line {
    Line::error("project", error.to_string(), "make it readable for this user")
}

/// `option`: the option of other commands that selects the project.
fn contents(generation: &Generation, shown: &str, option: &str) -> Line {
    let load = &generation.load;
    let of_kind = |kind| load.tools.iter().filter(|loaded| loaded.tool.kind == kind).count();
    let contents = format!(
        "{shown}: {}, {}, {}, {}",
        counted(load.checked.len(), "spec file"),
        counted(of_kind(ToolKind::Normal), "tool"),
        counted(of_kind(ToolKind::Exit), "exit tool"),
        counted(load.workers.len(), "worker"),
    );
    if load.tools.is_empty() {
        return Line::warning("project", contents, format!("add a tool with `deftool new NAME{option}`"));
    }
    Line::ok("project", contents)
}

/// Returns the number of findings, if `deftool check` reports errors or warnings.
fn findings(generation: &Generation, option: &str) -> Option<Line> {
    let summary = Summary::of(&generation.load.findings);
    let level = match (summary.errors, summary.warnings) {
        (0, 0) => return None,
        (0, _) => Level::Warning,
        (_, _) => Level::Error,
    };
    let advice = format!("run `deftool check{option}`");
    Some(Line { level, ..Line::warning("findings", describe_summary(&summary)?, advice) })
}
