//! `deftool import --mcp-config`: converts the MCP servers of a host's configuration to `defmcp` forms. Values of variables
//! and headers are not copied: they may be secrets, and a spec names the environment variable that holds them.

use std::path::Path;

use deftool_lang::spec::{FileKind, format_generated};
use deftool_lang::text::count;
use deftool_project::display_name;
use serde_json::{Map, Value, json};

use super::{ImportOptions, write_files};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::CommandDirs;
use crate::cli::terminal::output::{clean, eprint_line, eprint_progress, print};
use crate::cli::worker::server_name;

/// The members that hold the servers: those of most hosts, of VS Code, and of Zed.
const HOLDERS: [&str; 3] = ["mcpServers", "servers", "context_servers"];

/// A converted server.
struct Converted {
    name: String,
    spec: String,
    /// What the user has to do, as sentences without a full stop.
    notes: Vec<String>,
}

/// Prints or writes the servers of a configuration. Servers that cannot be converted are reported.
pub(super) fn run(file: &Path, options: &ImportOptions, dirs: &CommandDirs) -> Result<Exit, CliError> {
    let name = display_name(file, &dirs.current);
    let servers = read(file, &name)?;
    let (mut converted, mut failed) = (Vec::new(), 0);
    for (server, entry) in &servers {
        let shown = clean(server);
        match convert(server, entry) {
            Ok(one) if converted.iter().any(|other: &Converted| other.name == one.name) => {
                failed += 1;
                eprint_line(&format!(
                    "{name}: `{shown}` is left out: another server becomes `{}` too",
                    one.name
                ));
            }
            Ok(one) => {
                one.notes.iter().for_each(|note| eprint_line(&format!("{name}: `{shown}`: {}", clean(note))));
                converted.push(one);
            }
            Err(reason) => {
                failed += 1;
                eprint_line(&format!("{name}: `{shown}` is left out: {}", clean(&reason)));
            }
        }
    }
    match &options.output {
        None => {
            let specs: Vec<&str> = converted.iter().map(|server| server.spec.as_str()).collect();
            print(&specs.join("\n"));
        }
        Some(folder) => {
            let files: Vec<_> =
                converted.iter().map(|server| (server.name.as_str(), server.spec.clone())).collect();
            write_files(&files, folder, options.force)?;
        }
    }
    eprint_progress(&format!("{} imported", count(converted.len(), "MCP server")));
    Ok(if failed > 0 { Exit::Failed } else { Exit::Clean })
}

/// Reads the servers of the file that is shown as `name`.
fn read(file: &Path, name: &str) -> Result<Map<String, Value>, CliError> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| CliError::Usage(format!("cannot read {name}: {error}")))?;
    let config: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let advice =
            if text.contains("//") || text.contains("/*") { "; remove comments, if it has any" } else { "" };
        CliError::Usage(format!("{name} is not JSON: {error}{advice}"))
    })?;
    let found = HOLDERS.iter().find_map(|holder| config.get(*holder)).and_then(Value::as_object);
    match found {
        Some(servers) if !servers.is_empty() => Ok(servers.clone()),
        _ => Err(CliError::Usage(format!(
            "{name} has no MCP servers; they stand below `{}`",
            HOLDERS.join("`, `")
        ))),
    }
}

/// # Errors
/// Why the server cannot be converted, as a clause.
fn convert(server: &str, entry: &Value) -> Result<Converted, String> {
    let name = server_name(server);
    let mut notes = Vec::new();
    let mut form = vec![format!("(defmcp :name {}", json!(name))];
    if let Some(command) = command_of(entry)? {
        form.push(format!(":command [{}]", words(&command)));
        let variables: Vec<&String> = entry["env"].as_object().into_iter().flat_map(Map::keys).collect();
        for variable in &variables {
            if reference(&entry["env"][variable.as_str()]) != Some(variable) {
                notes.push(format!("set the environment variable `{variable}`; its value is not copied"));
            }
        }
        if !variables.is_empty() {
            form.push(format!(":env [{}]", words(&variables)));
        }
    } else if let Some(url) = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| entry[*key].as_str()) {
        if entry["type"] == "sse" {
            return Err(String::from("its transport, HTTP with SSE of 2024, is not supported"));
        }
        form.push(format!(":url {}", json!(url)));
        form.extend(headers(&name, entry["headers"].as_object().unwrap_or(&Map::new()), &mut notes));
    } else {
        return Err(String::from("it has neither a `command` nor a `url`"));
    }
    if entry["disabled"] == true || entry["enabled"] == false {
        notes.push(String::from("is disabled in the configuration, but not in the spec"));
    }
    if entry.get("cwd").is_some() {
        notes.push(String::from("`cwd` is not converted; the program starts in the project"));
    }
    let spec = format_generated(form.join(" ") + ")\n", FileKind::Specs);
    Ok(Converted { name, spec, notes })
}

/// Returns the program and its arguments: one vector, or a program and `args`.
///
/// # Errors
/// If a word is not a string.
fn command_of(entry: &Value) -> Result<Option<Vec<&str>>, String> {
    let list = |key: &'static str| entry[key].as_array().into_iter().flatten();
    let words = entry.get("command").filter(|command| !command.is_array()).into_iter();
    let words = words.chain(list("command")).chain(list("args"));
    let words = words.map(Value::as_str).collect::<Option<Vec<&str>>>();
    let words = words.ok_or("its `command` and `args` are not all strings")?;
    Ok((!words.is_empty()).then_some(words))
}

/// Returns `:token-env` and `:header-env` for headers.
fn headers(server: &str, headers: &Map<String, Value>, notes: &mut Vec<String>) -> Vec<String> {
    let (mut entries, mut others) = (Vec::new(), Vec::new());
    for (header, value) in headers {
        let is_bearer = header.eq_ignore_ascii_case("authorization")
            && value.as_str().is_some_and(|value| value.starts_with("Bearer "));
        let named = match reference(value) {
            Some(variable) => String::from(variable),
            None => {
                let (suffix, what) = if is_bearer {
                    ("token", String::from("the token"))
                } else {
                    (header.as_str(), format!("the value of the header `{header}`"))
                };
                let variable = format!("{server}_{suffix}").to_uppercase().replace('-', "_");
                notes.push(format!(
                    "set the environment variable `{variable}` to {what}, which is not copied"
                ));
                variable
            }
        };
        if is_bearer {
            entries.push(format!(":token-env {}", json!(named)));
        } else {
            others.push(format!(":{header} {}", json!(named)));
        }
    }
    if !others.is_empty() {
        entries.push(format!(":header-env ({})", others.join(" ")));
    }
    entries
}

/// Returns the environment variable that a value names: `${NAME}`, `${env:NAME}`, with or without `Bearer`.
fn reference(value: &Value) -> Option<&str> {
    let value = value.as_str()?;
    let named = value.strip_prefix("Bearer ").unwrap_or(value).strip_prefix("${")?.strip_suffix('}')?;
    let named = named.strip_prefix("env:").unwrap_or(named);
    named.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(named)
}

/// Returns strings as they stand in a vector of a spec.
fn words<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| json!(word.as_ref()).to_string()).collect::<Vec<_>>().join(" ")
}
