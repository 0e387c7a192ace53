//! `deftool mcp --config HOST`: what makes an MCP host start the server of a project.

use std::path::Path;

use clap::ValueEnum;
use deftool_engine::folder_variables;
use deftool_engine::text::quote;
use deftool_lang::text::portable;
use serde_json::{Map, Value, json};

use super::McpOptions;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::output::{eprint_progress, print};

/// An MCP host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Host {
    ClaudeCode,
    Codex,
    Cursor,
    Gemini,
    Goose,
    Opencode,
    Vscode,
    Zed,
}

/// How the server is added to a host.
enum Method {
    /// By a command of the host, followed by the command of the server.
    Command(&'static [&'static str]),
    /// By a command of the host with the server as JSON.
    JsonCommand(&'static [&'static str]),
    /// By an entry below the keys in a file of the user.
    File { file: &'static str, keys: &'static [&'static str], entry: fn(&[String]) -> Value },
}

impl Host {
    /// As the hosts describe it in November 2026.
    fn method(self) -> Method {
        let file = |file, keys, entry| Method::File { file, keys, entry };
        match self {
            Self::ClaudeCode => Method::Command(&["claude", "mcp", "add", "--scope", "user"]),
            Self::Codex => Method::Command(&["codex", "mcp", "add"]),
            Self::Vscode => Method::JsonCommand(&["code", "--add-mcp"]),
            Self::Cursor => file("~/.cursor/mcp.json", &["mcpServers"], program_and_arguments),
            Self::Gemini => file("~/.gemini/settings.json", &["mcpServers"], program_and_arguments),
            Self::Zed => file("~/.config/zed/settings.json", &["context_servers"], program_and_arguments),
            Self::Opencode => file(
                "~/.config/opencode/opencode.json",
                &["mcp"],
                |command| json!({"type": "local", "command": command, "enabled": true}),
            ),
            Self::Goose => file(
                "~/.config/goose/config.yaml",
                &["extensions"],
                |command| json!({"type": "stdio", "cmd": command[0], "args": command[1..], "enabled": true, "timeout": 300}),
            ),
        }
    }
}

fn program_and_arguments(command: &[String]) -> Value {
    json!({"command": command[0], "args": command[1..]})
}

/// Prints what adds the server of the project at `root` to a host: a command, or the entry of a file, which is named on
/// stderr.
pub(super) fn print_config(host: Host, options: &McpOptions, root: &Path) -> Result<Exit, CliError> {
    let command = command_of(options, root)?;
    let name = name_of(root);
    match host.method() {
        Method::Command(add) => {
            let add = add.iter().map(|word| String::from(*word)).chain([name, String::from("--")]);
            print(&shell_line(add.chain(command)));
        }
        Method::JsonCommand(add) => {
            let mut server = json!({"name": name});
            if let (Value::Object(server), Value::Object(program)) =
                (&mut server, program_and_arguments(&command))
            {
                server.extend(program);
            }
            print(&shell_line(add.iter().map(|word| String::from(*word)).chain([server.to_string()])));
        }
        Method::File { file, keys, entry } => {
            eprint_progress(&format!("add to {file}:"));
            let entry = keys.iter().rev().fold(json!({ name: entry(&command) }), |inner, key| {
                Value::Object(Map::from_iter([(String::from(*key), inner)]))
            });
            // Goose reads YAML, of which JSON is a part.
            print(&format!("{entry:#}\n"));
        }
    }
    Ok(Exit::Clean)
}

/// Returns the command of the server, with absolute paths: hosts start servers in folders of their own. Hosts pass few
/// variables to servers, so the command sets those that say where the user's trust and tools are.
fn command_of(options: &McpOptions, root: &Path) -> Result<Vec<String>, CliError> {
    let program = std::env::current_exe().map_err(CliError::Runtime)?;
    let text = |path: &Path| match path.to_str() {
        Some(text) => Ok(String::from(text)),
        None => Err(CliError::Usage(format!("`{}` is not UTF-8; hosts cannot name it", path.display()))),
    };
    let variables = folder_variables().into_iter().map(|(name, value)| format!("{name}={value}"));
    let mut command: Vec<String> = variables.filter(|_| cfg!(unix)).collect();
    if !command.is_empty() {
        command.insert(0, String::from("env"));
    }
    command.extend([text(&program)?, String::from("mcp"), String::from("-C"), text(root)?]);
    let flags = [(options.yes, "--yes"), (options.exit_tools, "--exit-tools")];
    command.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| String::from(flag)));
    Ok(command)
}

/// Returns a name that every host accepts.
fn name_of(root: &Path) -> String {
    let name = portable(&root.file_name().unwrap_or_default().to_string_lossy());
    if name.contains(|c: char| c.is_ascii_alphanumeric()) { name } else { String::from("deftool") }
}

fn shell_line(words: impl Iterator<Item = String>) -> String {
    words.map(|word| quote(&word)).collect::<Vec<_>>().join(" ") + "\n"
}
