//! The project: whether it exists, its contents and its findings.

use std::sync::Arc;

use deftool_engine::text::quote;
use deftool_engine::{OpenError, ProjectRoots};
use deftool_lang::diagnostic::Summary;
use deftool_lang::spec::ToolKind;
use deftool_lang::text::count;
use deftool_project::{Generation, LoadedTool, ProjectError, ScriptState, display_name, find_root};

use super::line::{Level, Line, counted, list};
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
            let lines = [contents(&generation, &shown, ""), findings(&generation, "")];
            let lines = lines.into_iter().chain(scripts(&generation)).collect();
            (Some(generation), lines)
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
            let findings = Some(findings(&user, &option)).filter(|line| line.level != Level::Ok);
            let lines = [contents(&user, &folder, &option)].into_iter().chain(findings);
            let lines = lines.map(|line| Line { check: USER_TOOLS, ..line }).collect();
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

fn findings(generation: &Generation, option: &str) -> Line {
    let summary = Summary::of(&generation.load.findings);
    let Some(counts) = describe_summary(&summary) else { return Line::ok("findings", "none") };
    let level = match (summary.errors, summary.warnings) {
        (0, 0) => Level::Ok,
        (0, _) => Level::Warning,
        (_, _) => Level::Error,
    };
    Line { level, ..Line::warning("findings", counts, format!("run `deftool check{option}`")) }
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
