//! Permission requests: what the tools of a project require, for confirmation prompts.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use deftool_lang::spec::{McpServer, McpTransport, PathBase, Permissions, Tool, ToolKind};
use deftool_lang::text::{Location, count, exact};

use super::set::PermissionSet;
use crate::load::resolve_permissions;
use crate::model::{Load, LoadedTool, ScriptState, ToolOrigin};

/// The permissions that a tool or worker requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRequest {
    /// The name of the tool or worker.
    pub tool: String,
    /// `file:line:column` of its spec.
    pub place: String,
    /// The permissions.
    pub grants: PermissionSet,
    /// The complete command of a tool that is a program, in the syntax of a spec.
    pub command: Option<String>,
}

/// Maximum number of requests shown in a prompt.
const MAX_REQUESTS: usize = 20;

impl PermissionRequest {
    /// Formats `requests` for a prompt, one request per line, the most dangerous first. Long lists and values are
    /// truncated, except commands.
    pub fn lines(requests: &[Self]) -> Vec<String> {
        let mut sorted: Vec<&Self> = requests.iter().collect();
        sorted.sort_by_key(|request| request.grants.risk_rank());
        let line = |request: &&Self| request.describe(true);
        let mut lines: Vec<String> = sorted.iter().take(MAX_REQUESTS).map(line).collect();
        if let Some(rest) = sorted.get(MAX_REQUESTS..).filter(|rest| !rest.is_empty()) {
            let permissions = rest.iter().map(|request| request.grants.len()).sum();
            lines.push(format!("and {} more with {}", rest.len(), count(permissions, "permission")));
        }
        lines
    }

    /// Returns whether a tool of the user requires it, not the project.
    pub fn is_of_user(&self) -> bool {
        self.grants.is_of_user()
    }

    fn describe(&self, short: bool) -> String {
        let command = self.command.as_ref().map(|command| format!(", with :command {command}"));
        let grants = self.grants.describe(short);
        exact(&format!("{} requires {grants}{} ({})", self.tool, command.unwrap_or_default(), self.place))
    }
}

/// Formats the request on one line, whatever the tool and its file are called.
impl fmt::Display for PermissionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(false))
    }
}

impl PermissionSet {
    /// Returns the parts of the requests that the set does not include.
    pub fn missing_requests(&self, requests: Vec<PermissionRequest>) -> Vec<PermissionRequest> {
        let missing = requests
            .into_iter()
            .map(|request| PermissionRequest { grants: self.missing(&request.grants), ..request });
        missing.filter(|request| !request.grants.is_empty()).collect()
    }
}

/// Returns the permission requests of the tools that have a script and require at least one permission, or that replace
/// a tool of the user. Tools of the user need trust only to change the current project. `load`: the load of the other tools.
pub fn permission_requests<'t>(
    load: &Load,
    tools: impl IntoIterator<Item = &'t LoadedTool>,
) -> Vec<PermissionRequest> {
    // Most tools have no permissions, and a reload of a large project must not examine all scripts.
    let tools = tools.into_iter().filter(|loaded| match loaded.origin {
        ToolOrigin::User => loaded.tool.base == PathBase::Project && has_permissions(loaded),
        ToolOrigin::Replacement => true,
        ToolOrigin::Project => loaded.tool.kind == ToolKind::Normal && has_permissions(loaded),
    });
    let requests = tools.filter_map(|loaded| {
        let at = Location { source: loaded.tool.source, span: loaded.tool.name.span };
        let grants = required(load, loaded);
        if grants.is_empty() {
            return None;
        }
        // A last good version comes from an older version of the file.
        let is_current = load.sources.get(at.source).is_some_and(|file| *file.name == *loaded.file);
        let place = if is_current { load.sources.describe(at) } else { loaded.file.to_string() };
        let command = loaded.tool.command.as_ref().map(ToString::to_string);
        Some(PermissionRequest { tool: loaded.tool.name.value.clone(), place, grants, command })
    });
    requests.collect()
}

/// Returns the permissions of a tool that need trust. `load`: its load.
pub(super) fn required(load: &Load, loaded: &LoadedTool) -> PermissionSet {
    let grants = || match &loaded.script {
        ScriptState::Ready(script) => PermissionSet::of_script(script).reading(&script.linked),
        ScriptState::Broken(_) | ScriptState::None => {
            let root = load.root_of(loaded.tool.source).or(load.root.as_deref()).unwrap_or(Path::new(""));
            PermissionSet::of(&resolve_permissions(&loaded.tool, root), root)
                .with_limits(loaded.tool.timeout, loaded.tool.memory)
        }
    };
    match loaded.origin {
        ToolOrigin::User => match &loaded.script {
            ScriptState::Ready(script) if loaded.tool.base == PathBase::Project => {
                PermissionSet::of_user_script(script)
            }
            _ => PermissionSet::default(),
        },
        ToolOrigin::Project => grants(),
        ToolOrigin::Replacement => grants().replacing(&loaded.tool.name.value),
    }
}

fn has_permissions(loaded: &LoadedTool) -> bool {
    let Tool { permissions: Permissions { net, read, write, run, env }, timeout, memory, .. } = &*loaded.tool;
    let is_linked = matches!(&loaded.script, ScriptState::Ready(script) if !script.linked.is_empty());
    let is_allowed = [net, read, write, run, env].iter().any(|list| !list.is_empty());
    is_linked || is_allowed || timeout.is_some() || memory.is_some()
}

/// Returns the permission request of an MCP server: its complete command, or its URL, and its environment variables.
pub fn mcp_permission_request(load: &Load, server: &McpServer) -> PermissionRequest {
    let (address, env) = match &server.transport {
        McpTransport::Command(command) => (quote_words(command), server.env.clone()),
        // Cannot be equal to a command, because commands quote `=`.
        McpTransport::Url(url) => (format!(":url={url}"), server.url_variables().cloned().collect()),
    };
    let at = Location { source: server.source, span: server.name.span };
    PermissionRequest {
        tool: format!("MCP server `{}`", server.name.value),
        place: load.sources.describe(at),
        grants: PermissionSet {
            server: BTreeSet::from([address]),
            env: env.into_iter().collect(),
            ..PermissionSet::default()
        },
        command: None,
    }
}

/// Formats words like a shell command. Different words have different texts.
pub fn quote_words<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| quote(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Quotes a word if necessary.
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+{}".contains(c);
    // A plain `--` would be read as the separator.
    if !text.is_empty() && text != "--" && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_prompt_lists_dangerous_permissions_first_and_counts_omitted_ones() {
        let request = |tool: &str, grants| PermissionRequest {
            tool: tool.to_owned(),
            place: String::from("a.eld:1:1"),
            grants,
            command: None,
        };
        let set = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<BTreeSet<_>>();
        let hosts: BTreeSet<String> = (0..100).map(|number| format!("h{number:03}.example")).collect();
        let long = format!("sh -c '{}; rm -rf /'", "x".repeat(5_000));
        let mut requests = vec![
            request("reads", PermissionSet { read: set(&["/etc"]), ..PermissionSet::default() }),
            request("reaches", PermissionSet { net: hosts, ..PermissionSet::default() }),
            request(
                "waits",
                PermissionSet::default().with_limits(Some(Duration::from_secs(3600)), Some(1 << 30)),
            ),
            request(
                "writes",
                PermissionSet { write: set(&["."]), net: set(&["a.example"]), ..PermissionSet::default() },
            ),
            request(
                "runs",
                PermissionSet { run: set(&["sh"]), env: set(&["TOKEN"]), ..PermissionSet::default() },
            ),
            request("starts", PermissionSet { server: BTreeSet::from([long]), ..PermissionSet::default() }),
        ];
        let lines = PermissionRequest::lines(&requests);
        let begin = ["starts", "runs", "writes", "reaches", "reads", "waits"];
        assert!(lines.iter().zip(begin).all(|(line, name)| line.starts_with(name)), "{lines:#?}");
        assert!(lines[0].contains(&"x".repeat(5_000)) && lines[0].ends_with("; rm -rf /'\"] (a.eld:1:1)"));
        assert_eq!(lines[1], "runs requires :run [\"sh\"] :env [\"TOKEN\"] (a.eld:1:1)");
        assert!(lines[3].contains("\"h005.example\" … and 94 more, 100 in total]"), "{}", lines[3]);
        assert_eq!(lines[5], "waits requires :timeout \"3600s\" :memory \"1024MiB\" (a.eld:1:1)");
        let more = requests[0].grants.clone();
        requests.extend((0..30).map(|number| request(&format!("r{number}"), more.clone())));
        let lines = PermissionRequest::lines(&requests);
        assert_eq!(lines.len(), 21);
        assert_eq!(lines[20], "and 16 more with 17 permissions");
    }
    #[test]
    fn a_request_shows_the_whole_command() {
        let command = format!("[\"sh\" \"-c\" \"{}\u{202e}; rm -rf /; true\"]", "x".repeat(5_000));
        let request = PermissionRequest {
            tool: String::from("a"),
            place: String::from("a.eld:1:1"),
            grants: PermissionSet { run: BTreeSet::from([String::from("sh")]), ..PermissionSet::default() },
            command: Some(command.clone()),
        };
        let expected = format!("a requires :run [\"sh\"], with :command {} (a.eld:1:1)", exact(&command));
        assert_eq!(PermissionRequest::lines(std::slice::from_ref(&request)), [expected.as_str()]);
        assert_eq!(request.to_string(), expected);
    }
}
