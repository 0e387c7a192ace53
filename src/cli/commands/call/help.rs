//! `deftool call TOOL --help`: the help of a tool, made from its spec.

use std::fmt::Write;

use deftool_engine::ProjectRoots;
use deftool_lang::spec::{Argument, Json, JsonKind, Tool};
use deftool_lang::text::{Location, one_line};
use deftool_project::unknown_tool;

use crate::cli::commands;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::CommandDirs;
use crate::cli::project::permissions::describe_permissions;
use crate::cli::terminal::output::{clean, eprint_failure, notices, print_lines};
use crate::cli::terminal::width::{fill, help_columns};

/// Returns the help of a subcommand, with styles. `is_long`: with all options.
pub(in crate::cli) fn of_command(name: &str, is_long: bool) -> String {
    let mut command = commands::command();
    command.build();
    let Some(found) = command.find_subcommand_mut(name) else { return String::new() };
    let help = if is_long { found.render_long_help() } else { found.render_help() };
    help.ansi().to_string()
}

/// Prints the help of the tool `name`.
pub(in crate::cli) fn print(name: &str, dirs: &CommandDirs) -> Result<Exit, CliError> {
    let loads = ProjectRoots::find(&dirs.project, &notices())?.load_specs(&dirs.current)?;
    let tools = || loads.iter().flat_map(|(_, load)| load.tools.iter().map(move |loaded| (load, loaded)));
    let Some((load, loaded)) = tools().find(|(_, loaded)| loaded.tool.name.value == name) else {
        let names = tools().map(|(_, loaded)| loaded.tool.name.value.as_str());
        let error = unknown_tool(name, names);
        eprint_failure(error.kind.as_str(), &error.message);
        return Ok(Exit::Failed);
    };
    let tool = &loaded.tool;
    let at = load.sources.describe(Location { source: tool.source, span: tool.name.span });
    print_lines(&clean(&describe(tool, &at)));
    Ok(Exit::Clean)
}

fn describe(tool: &Tool, at: &str) -> String {
    let name = &tool.name.value;
    let mut text = format!("{}\n\nUsage: deftool call {name}", tool.description.value.trim());
    for argument in &tool.arguments {
        let word = format!("{}={}", argument.name.value, placeholder(argument));
        let _ = if argument.optional { write!(text, " [{word}]") } else { write!(text, " {word}") };
    }
    text.push('\n');
    if !tool.arguments.is_empty() {
        text.push_str("\nArguments:\n");
    }
    let width = tool.arguments.iter().map(|argument| argument.name.value.len()).max().unwrap_or(0);
    for argument in &tool.arguments {
        let start = format!("  {:width$}  ", argument.name.value);
        text += &fill(&start, &describe_argument(argument), width + 4, help_columns());
    }
    let permissions = describe_permissions(&tool.permissions);
    if !permissions.is_empty() {
        let _ = write!(text, "\nPermissions: {permissions}\n");
    }
    let _ = write!(text, "\nDefined at {at}\n");
    text
}

/// Returns the type of an argument in upper case.
fn placeholder(argument: &Argument) -> String {
    argument.type_name().unwrap_or("value").to_uppercase()
}

fn describe_argument(argument: &Argument) -> String {
    let text = |key: &str| argument.keyword(key).and_then(Json::as_str).map(|text| one_line(text.to_owned()));
    let mut parts: Vec<String> = text("description").into_iter().collect();
    if let Some(JsonKind::Array(values)) = argument.keyword("enum").map(|json| &json.kind) {
        let values: Vec<String> = values.iter().map(plain).collect();
        parts.push(format!("[values: {}]", values.join(", ")));
    }
    parts.extend(argument.keyword("default").map(|value| format!("[default: {}]", plain(value))));
    parts.join(" ")
}

/// Returns a string without quotes, and any other value as JSON.
fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_value().to_string(), |text| one_line(text.to_owned()))
}
