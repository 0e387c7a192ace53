//! The project: whether it exists, its contents and its findings.

use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::Summary;
use deftool_lang::spec::ToolKind;
use deftool_lang::text::count;
use deftool_project::{Generation, LoadedTool, ProjectError, ScriptState, display_name, find_root};

use super::line::{Level, Line, counted, list};
use crate::cli::outcome::CliError;
use crate::cli::project::inputs::CommandDirs;
use crate::cli::project::user::ProjectRoots;
use crate::cli::terminal::output::describe_summary;

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
            let lines = [contents(&generation, &shown), findings(&generation)];
            let lines = lines.into_iter().chain(scripts(&generation)).collect();
            (Some(generation), lines)
        }
        Err(error) => (None, vec![unreadable(&error)]),
    }
}

/// Checks the user's own project, unless it is the project that was checked.
pub(super) fn check_user(dirs: &CommandDirs, is_in_project: bool) -> (Option<Arc<Generation>>, Option<Line>) {
    let roots = match ProjectRoots::find(&dirs.project) {
        Ok(roots) => roots,
        // `check` has reported it.
        Err(CliError::Project(_)) => return (None, None),
        Err(error) => {
            let advice = "without the variable, your tools are in ~/.config/deftool";
            return (None, Some(Line::error("user tools", error.to_string(), advice)));
        }
    };
    if is_in_project && roots.project.is_none() {
        return (None, None);
    }
    let load = |user: &Path| Generation::load(user, &dirs.current, None);
    let user = roots.join(Generation::empty(), load).user().cloned();
    let line = user.as_deref().map(|user| {
        let shown = roots.user().unwrap_or(Path::new(".")).display().to_string();
        Line { check: "user tools", ..contents(user, &shown) }
    });
    (user, line)
}

fn unreadable(error: &ProjectError) -> Line {
    Line::error("project", error.to_string(), "make it readable for this user")
}

fn contents(generation: &Generation, shown: &str) -> Line {
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
        return Line::warning("project", contents, "add a tool with `deftool new NAME`");
    }
    Line::ok("project", contents)
}

fn findings(generation: &Generation) -> Line {
    let summary = Summary::of(&generation.load.findings);
    let Some(counts) = describe_summary(&summary) else { return Line::ok("findings", "none") };
    let level = match (summary.errors, summary.warnings) {
        (0, 0) => Level::Ok,
        (0, _) => Level::Warning,
        (_, _) => Level::Error,
    };
    Line { level, ..Line::warning("findings", counts, "run `deftool check`") }
}

fn scripts(generation: &Generation) -> Option<Line> {
    let is_ready = |loaded: &&LoadedTool| matches!(loaded.script, ScriptState::Ready(_));
    let tools = generation.tool_names().filter_map(|name| generation.tool(name));
    let tools: Vec<&LoadedTool> = tools.filter(|loaded| loaded.tool.kind == ToolKind::Normal).collect();
    let broken: Vec<String> = tools
        .iter()
        .filter(|loaded| !is_ready(loaded))
        .map(|loaded| loaded.tool.name.value.clone())
        .collect();
    if !broken.is_empty() {
        let message = format!("missing or broken: {}", list(&broken));
        return Some(Line::error("scripts", message, "run `deftool check`"));
    }
    let scripts = tools.iter().filter(|loaded| loaded.tool.command.is_none()).count();
    (scripts > 0).then(|| Line::ok("scripts", format!("{}, all valid", count(scripts, "script"))))
}
