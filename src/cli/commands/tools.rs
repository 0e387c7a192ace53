//! `deftool tools`: lists the tools of a project and of the user.

use std::fmt::Write;

use clap::Args;
use deftool_engine::ProjectRoots;
use deftool_lang::spec::{Json, Tool, ToolKind};
use deftool_lang::text::Location;
use deftool_project::{Load, LoadedTool, ToolOrigin};
use serde_json::{Value, json};

use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::permissions::describe_permissions;
use crate::cli::terminal::output::{clean, eprint_line, notices, print_json, print_lines};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool tools
  deftool tools --json")]
pub(in crate::cli) struct ToolsOptions {
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// Prints all tools, including those with errors. Runs and reads no script.
pub(in crate::cli) fn run(options: &ToolsOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let loads = ProjectRoots::find(&dirs.project, &notices())?.load_specs(&dirs.current)?;
    let mut tools = Vec::new();
    for (origin, load) in &loads {
        let others =
            || loads.iter().filter(move |(other, _)| other != origin).flat_map(|(_, load)| &load.tools);
        tools.extend(load.tools.iter().map(|loaded| {
            let LoadedTool { tool, .. } = &**loaded;
            let is_repeated = others().any(|other| other.tool.name.value == tool.name.value);
            Listed { tool, load, origin: *origin, is_repeated }
        }));
    }
    if options.format.is_json() {
        print_json(&tools.iter().map(to_json).collect::<Value>(), true);
    } else if tools.is_empty() {
        eprint_line("no tools; create one with `deftool new NAME`");
    } else {
        print_lines(&table(&tools));
    }
    Ok(Exit::Clean)
}

/// A tool of the project, or of the user's own.
struct Listed<'l> {
    tool: &'l Tool,
    load: &'l Load,
    origin: ToolOrigin,
    /// Whether the other project has a tool of the same name.
    is_repeated: bool,
}

impl Listed<'_> {
    /// Returns the name with notes in parentheses.
    fn name(&self) -> String {
        let kind = match (self.tool.valid, self.tool.kind) {
            (false, _) => Some("has errors"),
            (true, ToolKind::Exit) => Some("exit tool"),
            (true, ToolKind::Normal) => None,
        };
        let origin = match (self.origin, self.is_repeated) {
            (ToolOrigin::User, true) => Some("user, replaced"),
            (ToolOrigin::User, false) => Some("user"),
            (_, true) => Some("replaces yours"),
            (_, false) => None,
        };
        let notes: Vec<&str> = origin.into_iter().chain(kind).collect();
        let name = &self.tool.name.value;
        if notes.is_empty() { name.clone() } else { format!("{name} ({})", notes.join(", ")) }
    }
}

fn table(tools: &[Listed<'_>]) -> String {
    let mut rows = vec![["NAME", "ARGUMENTS", "PERMISSIONS", "DEFINED AT"].map(str::to_owned)];
    for listed in tools {
        let Listed { tool, load, .. } = listed;
        let argument =
            |name: &str, optional: bool| if optional { format!("[{name}]") } else { name.to_owned() };
        let arguments: Vec<String> =
            tool.arguments.iter().map(|found| argument(&found.name.value, found.optional)).collect();
        rows.push([
            clean(&listed.name()),
            clean(&arguments.join(" ")),
            clean(&describe_permissions(&tool.permissions)),
            clean(&load.sources.describe(location(tool))),
        ]);
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [name, arguments, permissions, at] in &rows {
        let _ = writeln!(
            text,
            "{name:0$}  {arguments:1$}  {permissions:2$}  {at}",
            widths[0], widths[1], widths[2]
        );
    }
    text
}

fn to_json(listed: &Listed<'_>) -> Value {
    let Listed { tool, load, origin, .. } = listed;
    let at = location(tool);
    let file = load.sources.get(at.source);
    let arguments = tool.arguments.iter().map(|argument| {
        json!({
            "name": argument.name.value,
            "type": argument.keyword("type").map(Json::to_value),
            "optional": argument.optional,
            "description": argument.keyword("description").map(Json::to_value),
        })
    });
    let permissions = &tool.permissions;
    json!({
        "name": tool.name.value,
        "kind": if tool.kind == ToolKind::Exit { "exit" } else { "normal" },
        "origin": if *origin == ToolOrigin::User { "user" } else { "project" },
        "valid": tool.valid,
        "description": tool.description.value,
        "arguments": arguments.collect::<Value>(),
        "permissions": {
            "net": permissions.net, "read": permissions.read, "write": permissions.write,
            "run": permissions.run, "env": permissions.env,
        },
        "file": file.map(|file| &file.name),
        "line": file.map(|file| file.line_column(at.span.start).line),
    })
}

fn location(tool: &Tool) -> Location {
    Location { source: tool.source, span: tool.name.span }
}
