//! `deftool tools`: lists the tools of a project.

use std::fmt::Write;

use clap::Args;
use deftool_lang::spec::{Json, Tool, ToolKind};
use deftool_lang::text::Location;
use deftool_project::{Load, find_root, load_specs, resolve_inputs};
use serde_json::{Value, json};

use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::permissions::describe_permissions;
use crate::cli::terminal::output::{clean, eprint_line, print_json, print_lines};

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
    let root = find_root(&dirs.project)?;
    let load = load_specs(&resolve_inputs(&[], &root)?, &dirs.current)?;
    if options.format.is_json() {
        print_json(&load.tools.iter().map(|loaded| to_json(&loaded.tool, &load)).collect::<Value>(), true);
    } else if load.tools.is_empty() {
        eprint_line("no tools; create one with `deftool new NAME`");
    } else {
        print_lines(&table(&load));
    }
    Ok(Exit::Clean)
}

fn table(load: &Load) -> String {
    let mut rows = vec![["NAME", "ARGUMENTS", "PERMISSIONS", "DEFINED AT"].map(str::to_owned)];
    for tool in load.tools.iter().map(|loaded| &loaded.tool) {
        let argument =
            |name: &str, optional: bool| if optional { format!("[{name}]") } else { name.to_owned() };
        let arguments: Vec<String> =
            tool.arguments.iter().map(|found| argument(&found.name.value, found.optional)).collect();
        let note = match (tool.valid, tool.kind) {
            (false, _) => " (has errors)",
            (true, ToolKind::Exit) => " (exit tool)",
            (true, ToolKind::Normal) => "",
        };
        rows.push([
            clean(&format!("{}{note}", tool.name.value)),
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

fn to_json(tool: &Tool, load: &Load) -> Value {
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
