//! `deftool import --mcp-config`: converts the MCP servers of a host's configuration to `defmcp` forms. Secrets are not
//! copied: a spec names the environment variable that holds the value of a variable or header, and words of a command and
//! parts of a URL with a secret or a variable, for which it has no form, are left out and named.

use std::path::Path;

use deftool_lang::spec::{FileKind, format_generated};
use deftool_lang::text::{count, portable};
use deftool_project::display_name;
use deftool_record::is_secret_name;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value, json};

use super::{ImportOptions, write_files};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::CommandDirs;
use crate::cli::terminal::output::{clean, eprint_line, eprint_progress, print};

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
    let config: Value = parse_to_serde_value(text.trim_start_matches('\u{feff}'), &WITH_COMMENTS)
        .map_err(|error| CliError::Usage(format!("{name} is not JSON: {error}")))?;
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
    let name = portable(server);
    let mut notes = Vec::new();
    let mut form = vec![format!("(defmcp :name {}", json!(name))];
    if let Some(command) = command_of(entry)? {
        let mut variables: Vec<&str> =
            entry["env"].as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let command = without_secrets(&command, &mut variables, &mut notes)?;
        form.push(format!(":command [{}]", words(&command)));
        for variable in &variables {
            if reference(&entry["env"][*variable]) != Some(variable) {
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
        form.push(format!(":url {}", json!(public_url(url, &mut notes)?)));
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

/// Comments and trailing commas, as editors write them.
const WITH_COMMENTS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Returns the words of a command without secrets and variables. The variable of an option such as `-e TOKEN=…` of a
/// container is passed from the environment.
///
/// # Errors
/// If the program itself is left out.
fn without_secrets<'w>(
    command: &[&'w str],
    variables: &mut Vec<&'w str>,
    notes: &mut Vec<String>,
) -> Result<Vec<&'w str>, String> {
    let mut kept: Vec<&str> = Vec::new();
    for (number, word) in (1..).zip(command) {
        let option = kept.last().copied().filter(|last| last.starts_with('-') && !last.contains('='));
        if let (Some("-e" | "--env"), Some((variable, _))) = (option, word.split_once('=')) {
            variables.push(variable);
            kept.push(variable);
            continue;
        }
        let what = match word.split_once('=') {
            Some((name, _)) if is_secret_name(name) => "may be a secret",
            _ if option.is_some_and(is_secret_name) || has_secret(word) => "may be a secret",
            _ if has_variable(word) => "has a variable of the host",
            _ => {
                kept.push(word);
                continue;
            }
        };
        // An option without its value would take the next word.
        let of_option = option.map_or_else(String::new, |option| {
            kept.pop();
            format!(", with its option `{option}`")
        });
        notes.push(format!(
            "word {number} of its command is left out{of_option}: it {what}; complete the `:command`"
        ));
    }
    if kept.first() == command.first() {
        Ok(kept)
    } else {
        Err(String::from("its program has a variable or a secret"))
    }
}

/// Returns a URL without user, password and secret parameters.
///
/// # Errors
/// If it has a variable of the host.
fn public_url(url: &str, notes: &mut Vec<String>) -> Result<String, String> {
    if has_variable(url) {
        return Err(String::from("its URL has a variable of the host"));
    }
    let (before, query) = url.split_once('?').map_or((url, None), |(before, query)| (before, Some(query)));
    let (scheme, rest) = before.split_once("://").unwrap_or(("", before));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host != authority {
        notes.push(String::from("the user and password of its URL are left out; use a header"));
    }
    let is_public = |pair: &&str| !is_secret_name(pair.split('=').next().unwrap_or_default());
    let (public, secret): (Vec<&str>, Vec<&str>) =
        query.into_iter().flat_map(|query| query.split('&')).partition(is_public);
    for pair in secret {
        let name = pair.split('=').next().unwrap_or_default();
        notes
            .push(format!("the parameter `{name}` of its URL is left out: it may be a secret; use a header"));
    }
    let query = if public.is_empty() { String::new() } else { format!("?{}", public.join("&")) };
    Ok(format!("{scheme}://{host}{path}{query}"))
}

/// Whether a word contains a password or a key: a URL with one, or a word that begins like the keys of services.
fn has_secret(word: &str) -> bool {
    let authority =
        word.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let has_user = authority.is_some_and(|authority| authority.contains('@'));
    let mut query = word.split_once('?').map_or("", |(_, query)| query).split('&');
    let has_key =
        word.contains("://") && query.any(|pair| is_secret_name(pair.split('=').next().unwrap_or_default()));
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_key = |part: &str| part.len() >= MIN_KEY && KEY_STARTS.iter().any(|start| part.starts_with(start));
    has_user || has_key || word.split(|c| !is_part(c)).any(is_key)
}

/// Minimum length of the key of a service, in bytes.
const MIN_KEY: usize = 16;

/// How the keys of services begin: OpenAI and Anthropic, GitHub, GitLab, Slack, AWS, Google, Hugging Face.
const KEY_STARTS: [&str; 10] =
    ["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "AIza", "hf_"];

/// Whether a word has a variable, which hosts replace and deftool does not: `${NAME}`, `$NAME`, `%NAME%`.
fn has_variable(word: &str) -> bool {
    let is_start = |rest: &str| rest.starts_with(|c: char| c == '{' || c == '_' || c.is_ascii_uppercase());
    let of_windows = word.split('%').nth(1).is_some_and(|name| {
        word.matches('%').count() > 1
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    });
    word.match_indices('$').any(|(at, _)| is_start(word.get(at + 1..).unwrap_or_default())) || of_windows
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
