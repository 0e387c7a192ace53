//! The permissions that a project's scripts require beyond reading the project, as a set that can be compared.
//!
//! The set is shown in confirmation prompts, stored, and checked on every call ([`Trust`]). It is therefore normalized.
//! Hosts are lower-case and in punycode. Paths are resolved through links, and relative if they are inside the project.
//! So `out`, `out/` and `./out` are equal, and a granted folder that was replaced by a link no longer matches. A path
//! includes everything below it, a limit includes every lower limit, and any other value includes only itself.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::spec::{HostGrant, ToolKind};
use deftool_lang::text::{Location, count, one_line};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_script::{PathGrant, Script, ScriptPermissions};
use serde::{Deserialize, Serialize};

use super::load::{Load, LoadedTool, ScriptState};
use super::scripts::resolve_permissions;

/// The longest `:timeout` that does not require trust. A call occupies one of the few script threads, and 15 minutes
/// are enough for a build or a slow API.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The largest `:memory` in bytes that does not require trust. Several calls run at the same time, and four times the
/// default limit each is acceptable on a small machine.
pub const MAX_MEMORY: u64 = 256 << 20;

/// A set of permissions beyond reading the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermissionSet {
    /// Hosts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub net: BTreeSet<String>,
    /// Absolute paths of files and folders outside of the project that may be read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub read: BTreeSet<String>,
    /// Files and folders that may be written, relative to the project or absolute.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub write: BTreeSet<String>,
    /// Programs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub run: BTreeSet<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub env: BTreeSet<String>,
    /// Servers that workers start. Each value is the complete command with environment variables and folder.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub server: BTreeSet<String>,
    /// The time limit of a call in milliseconds, if it is above [`MAX_TIMEOUT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The memory limit of a call in bytes, if it is above [`MAX_MEMORY`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

impl PermissionSet {
    /// Returns the permissions of a tool of the project at `root`. Links are resolved now.
    pub fn of(permissions: &ScriptPermissions, root: &Path) -> Self {
        let mut grants = Self {
            net: permissions.net.iter().map(|host| HostGrant::ascii(host)).collect(),
            run: permissions.run.iter().cloned().collect(),
            env: permissions.env.iter().cloned().collect(),
            ..Self::default()
        };
        if permissions.read.is_empty() && permissions.write.is_empty() {
            return grants;
        }
        let root = resolve_links(root);
        let resolve = |paths: &[PathGrant]| -> Vec<String> {
            paths.iter().map(|grant| display_path(&resolve_links(&grant.path), &root)).collect()
        };
        grants.read = resolve(&permissions.read).into_iter().filter(|path| is_outside(path)).collect();
        grants.write = resolve(&permissions.write).into_iter().collect();
        grants
    }

    /// Returns the permissions of a script. Without a project, all paths count as outside.
    pub fn of_script(script: &Script) -> Self {
        Self::of(&script.permissions, script.root.as_deref().unwrap_or(Path::new("")))
            .with_limits(script.timeout, script.memory)
    }

    /// Adds the limits of a call that are above the trust-free limits.
    fn with_limits(mut self, timeout: Option<Duration>, memory: Option<u64>) -> Self {
        let timeout = timeout.filter(|timeout| *timeout > MAX_TIMEOUT);
        self.timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self.memory = memory.filter(|memory| *memory > MAX_MEMORY);
        self
    }

    /// Returns the number of permissions.
    pub fn len(&self) -> usize {
        let limits = usize::from(self.timeout_ms.is_some()) + usize::from(self.memory.is_some());
        self.kinds().iter().map(|(_, values)| values.len()).sum::<usize>() + limits
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the set includes all of `wanted`.
    pub fn covers(&self, wanted: &Self) -> bool {
        self.missing(wanted).is_empty()
    }

    /// Returns the part of `wanted` that the set does not include.
    #[must_use]
    pub fn missing(&self, wanted: &Self) -> Self {
        let paths = |granted: &BTreeSet<String>, wanted: &BTreeSet<String>| {
            let is_covered = |path: &String| granted.iter().any(|granted| contains(granted, path));
            wanted.iter().filter(|path| !is_covered(path)).cloned().collect()
        };
        Self {
            net: &wanted.net - &self.net,
            read: paths(&self.read, &wanted.read),
            write: paths(&self.write, &wanted.write),
            run: &wanted.run - &self.run,
            env: &wanted.env - &self.env,
            server: &wanted.server - &self.server,
            timeout_ms: wanted.timeout_ms.filter(|_| wanted.timeout_ms > self.timeout_ms),
            memory: wanted.memory.filter(|_| wanted.memory > self.memory),
        }
    }

    /// Returns the parts of the requests that the set does not include.
    pub fn missing_requests(&self, wanted: Vec<PermissionRequest>) -> Vec<PermissionRequest> {
        let missing = wanted
            .into_iter()
            .map(|request| PermissionRequest { grants: self.missing(&request.grants), ..request });
        missing.filter(|request| !request.grants.is_empty()).collect()
    }

    /// Adds the permissions of `other`.
    pub fn add(&mut self, other: Self) {
        self.net.extend(other.net);
        self.read.extend(other.read);
        self.write.extend(other.write);
        self.run.extend(other.run);
        self.env.extend(other.env);
        self.server.extend(other.server);
        self.timeout_ms = self.timeout_ms.max(other.timeout_ms);
        self.memory = self.memory.max(other.memory);
    }

    /// Returns the lists, the most dangerous first: running programs, writing files, network access.
    fn kinds(&self) -> [(&'static str, &BTreeSet<String>); 6] {
        [
            (":server", &self.server),
            (":run", &self.run),
            (":write", &self.write),
            (":net", &self.net),
            (":env", &self.env),
            (":read", &self.read),
        ]
    }

    /// Returns the rank of the most dangerous list with values. 0 is the most dangerous.
    fn risk_rank(&self) -> usize {
        let kinds = self.kinds();
        kinds.iter().position(|(_, values)| !values.is_empty()).unwrap_or(kinds.len())
    }

    /// Formats the set in spec syntax. If `short`, long lists and values are truncated, with the number of omitted
    /// items.
    fn describe(&self, short: bool) -> String {
        let shown = if short { MAX_VALUES } else { usize::MAX };
        let mut parts = Vec::new();
        for (kind, values) in self.kinds().into_iter().filter(|(_, values)| !values.is_empty()) {
            let quoted: Vec<String> = values.iter().take(shown).map(|value| quoted(value, short)).collect();
            let more = match values.len().saturating_sub(shown) {
                0 => String::new(),
                more => format!(" … and {more} more, {} in total", values.len()),
            };
            parts.push(format!("{kind} [{}{more}]", one_line(quoted.join(" "))));
        }
        parts.extend(self.timeout_ms.map(|limit| match limit % 1000 {
            0 => format!(":timeout \"{}s\"", limit / 1000),
            _ => format!(":timeout \"{limit}ms\""),
        }));
        parts.extend(self.memory.map(|limit| match limit % (1 << 20) {
            0 => format!(":memory \"{}MiB\"", limit >> 20),
            _ => format!(":memory \"{limit}B\""),
        }));
        parts.join(" ")
    }
}

/// Maximum number of values shown per list in a prompt.
const MAX_VALUES: usize = 6;
/// Maximum length in characters of a value in a prompt. Longer values are shown with their beginning and end.
const MAX_VALUE: usize = 200;
const HEAD: usize = 120;
const END: usize = 60;

fn quoted(value: &str, short: bool) -> String {
    let length = value.chars().count();
    let mut shown = value.to_owned();
    let mut note = String::new();
    if short && length > MAX_VALUE {
        let head: String = value.chars().take(HEAD).collect();
        let end: String = value.chars().skip(length - END).collect();
        shown = format!("{head} … {end}");
        note = format!(" (shortened, {length} characters)");
    }
    format!("\"{}\"{note}", shown.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Formats the set in spec syntax on one line: `:write ["out"] :net ["api.example.org"]`.
impl fmt::Display for PermissionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(false))
    }
}

/// The permissions that a tool or worker requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRequest {
    /// The name of the tool or worker.
    pub tool: String,
    /// `file:line:column` of its spec.
    pub place: String,
    /// The permissions.
    pub grants: PermissionSet,
}

/// Maximum number of requests shown in a prompt.
const MAX_REQUESTS: usize = 20;

impl PermissionRequest {
    /// Formats `wanted` for a prompt, one request per line, the most dangerous first. Long lists and values are
    /// truncated.
    pub fn lines(wanted: &[Self]) -> Vec<String> {
        let mut sorted: Vec<&Self> = wanted.iter().collect();
        sorted.sort_by_key(|request| request.grants.risk_rank());
        let line = |request: &&Self| request.describe(true);
        let mut lines: Vec<String> = sorted.iter().take(MAX_REQUESTS).map(line).collect();
        if let Some(rest) = sorted.get(MAX_REQUESTS..).filter(|rest| !rest.is_empty()) {
            let permissions = rest.iter().map(|request| request.grants.len()).sum();
            lines.push(format!("and {} more with {}", rest.len(), count(permissions, "permission")));
        }
        lines
    }

    fn describe(&self, short: bool) -> String {
        one_line(format!("{} requires {} ({})", self.tool, self.grants.describe(short), self.place))
    }
}

/// Formats the request on one line, whatever the tool and its file are called.
impl fmt::Display for PermissionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(false))
    }
}

/// Returns the permission requests of the tools that have a script and require any. `load`: the load of the tools.
pub fn permission_requests<'t>(
    load: &Load,
    tools: impl IntoIterator<Item = &'t LoadedTool>,
) -> Vec<PermissionRequest> {
    let tools = tools.into_iter().filter(|loaded| loaded.tool.kind == ToolKind::Normal);
    let requests = tools.map(|loaded| {
        let at = Location { source: loaded.tool.source, span: loaded.tool.name.span };
        let grants = match &loaded.script {
            ScriptState::Ready(script) => PermissionSet::of_script(script),
            ScriptState::Broken(_) | ScriptState::None => {
                let root = load.root_of(loaded.tool.source).or(load.root.as_deref()).unwrap_or(Path::new(""));
                PermissionSet::of(&resolve_permissions(&loaded.tool, root), root)
                    .with_limits(loaded.tool.timeout, loaded.tool.memory)
            }
        };
        // A last good version comes from an older version of the file.
        let is_current = load.sources.get(at.source).is_some_and(|file| *file.name == *loaded.file);
        let place = if is_current { load.sources.describe(at) } else { loaded.file.to_string() };
        PermissionRequest { tool: loaded.tool.name.value.clone(), place, grants }
    });
    requests.filter(|request| !request.grants.is_empty()).collect()
}

/// The permissions of specs that scripts may use.
#[derive(Debug, Clone)]
pub enum Trust {
    /// All permissions.
    Everything,
    /// Reading the project, and these permissions.
    Only(Arc<PermissionSet>),
}

impl Trust {
    /// Checks whether a call of `script` is allowed.
    ///
    /// # Errors
    /// If the script requires a permission that is not trusted.
    pub fn allow(&self, script: &Script) -> Result<(), ToolError> {
        let Self::Only(granted) = self else { return Ok(()) };
        let missing = granted.missing(&PermissionSet::of_script(script));
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!(
            "`{}` was not run: it requires {missing}, which is not trusted; review the spec, then run \
             `deftool trust grant`",
            script.tool
        );
        Err(ToolError::new(ToolErrorKind::Permission, message))
    }
}

impl Trust {
    /// Returns the parts of the requests that are not trusted.
    pub fn refused(&self, wanted: Vec<PermissionRequest>) -> Vec<PermissionRequest> {
        match self {
            Self::Everything => Vec::new(),
            Self::Only(granted) => granted.missing_requests(wanted),
        }
    }
}

/// Returns the path for comparison and display, relative to the project if it is inside.
fn display_path(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => String::from("."),
        Ok(inside) => text_of(inside),
        Err(_) => text_of(path),
    }
}

/// Escapes and quotes paths that are not UTF-8, so that different paths have different texts.
fn text_of(path: &Path) -> String {
    let escaped = || format!("\"{}\"", path.as_os_str().as_encoded_bytes().escape_ascii());
    path.to_str().map_or_else(escaped, str::to_owned)
}

fn is_outside(path: &str) -> bool {
    Path::new(path).is_absolute() || path.starts_with('"')
}

fn contains(granted: &str, path: &str) -> bool {
    let is_whole_project = granted == "." && !is_outside(path);
    is_whole_project || Path::new(path).starts_with(granted)
}

/// Maximum number of links to follow, as in operating systems.
const MAX_LINKS: usize = 40;

/// Resolves all links of an absolute path, even if parts of it do not exist.
pub fn resolve_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    let mut rest = Vec::new();
    let mut links = 0;
    loop {
        if let Ok(mut found) = std::fs::canonicalize(&path) {
            found.extend(rest.iter().rev());
            return found;
        }
        // Follow a dangling link, too, because its target may be created later.
        match std::fs::read_link(&path) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                path = PathGrant::new("", path.parent().unwrap_or(&path).join(target)).path;
            }
            Ok(_) | Err(_) => {
                let Some(name) = path.file_name().map(ToOwned::to_owned) else {
                    path.extend(rest.iter().rev());
                    return path;
                };
                rest.push(name);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(root: &Path, read: &[&str], write: &[&str]) -> ScriptPermissions {
        let grants =
            |names: &[&str]| names.iter().map(|name| PathGrant::new(*name, root.join(name))).collect();
        ScriptPermissions { read: grants(read), write: grants(write), ..ScriptPermissions::default() }
    }

    fn grants(root: &Path, read: &[&str], write: &[&str]) -> String {
        PermissionSet::of(&permissions(root, read, write), root).to_string()
    }

    #[test]
    fn paths_are_normalized() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        std::fs::create_dir_all(root.join("notes")).unwrap();
        let parent = std::fs::canonicalize(folder.path()).unwrap();
        let outside = |kind: &str, name: &str| format!("{kind} [\"{}\"]", parent.join(name).display());
        for (read, write, expected) in [
            (&["notes", ".", "notes/deep", "~/x"][..], &[][..], String::new()),
            (&["../project/notes"], &[], String::new()),
            (&["../other/"], &[], outside(":read", "other")),
            (&["/"], &[], String::from(":read [\"/\"]")),
            (&[], &["out", "out/", "./out", "new/../out"], String::from(":write [\"out\"]")),
            (&[], &["."], String::from(":write [\".\"]")),
            (&[], &["../out"], outside(":write", "out")),
        ] {
            assert_eq!(grants(&root, read, write), expected, "{read:?} {write:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_resolved_even_if_the_target_is_missing() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        std::fs::create_dir_all(root.join("real")).unwrap();
        let parent = std::fs::canonicalize(folder.path()).unwrap();
        symlink("../secret", root.join("dangling")).unwrap();
        symlink("/", root.join("slash")).unwrap();
        symlink("real", root.join("inside")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink(&root, folder.path().join("alias")).unwrap();
        let secret = parent.join("secret");
        assert_eq!(grants(&root, &["dangling"], &[]), format!(":read [\"{}\"]", secret.display()));
        assert_eq!(
            grants(&root, &["dangling/a"], &[]),
            format!(":read [\"{}\"]", secret.join("a").display())
        );
        assert_eq!(grants(&root, &["slash"], &[]), ":read [\"/\"]");
        assert_eq!(grants(&root, &["inside"], &["inside/x", "loop/x"]), ":write [\"loop/x\" \"real/x\"]");
        assert_eq!(grants(&folder.path().join("alias"), &["../project/real"], &["x"]), ":write [\"x\"]");
    }

    #[test]
    fn narrower_permissions_are_covered_and_wider_ones_are_missing() {
        let set = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<BTreeSet<_>>();
        let granted = PermissionSet {
            net: set(&["a.example"]),
            read: set(&["/home/me/notes"]),
            write: set(&["out"]),
            ..PermissionSet::default()
        };
        let wanted = |kind: &str, value: &str| {
            let mut wanted = PermissionSet::default();
            let values = set(&[value]);
            match kind {
                "net" => wanted.net = values,
                "read" => wanted.read = values,
                "write" => wanted.write = values,
                "run" => wanted.run = values,
                _ => wanted.env = values,
            }
            wanted
        };
        for (kind, value, expected) in [
            ("net", "a.example", true),
            ("net", "b.a.example", false),
            ("read", "/home/me/notes/deep", true),
            ("read", "/home/me/notes2", false),
            ("read", "/home/me", false),
            ("write", "out/deep", true),
            ("write", ".", false),
            ("write", "outer", false),
            ("write", "/out", false),
            ("run", "a.example", false),
            ("env", "out", false),
        ] {
            let wanted = wanted(kind, value);
            assert_eq!(granted.covers(&wanted), expected, "{kind} {value}");
            assert_eq!(granted.missing(&wanted).is_empty(), expected, "{kind} {value}");
        }
        let everything = PermissionSet { write: set(&["."]), ..PermissionSet::default() };
        assert!(everything.covers(&wanted("write", "a/b")) && !everything.covers(&wanted("write", "/a")));
    }

    #[test]
    fn the_display_is_one_line_without_control_characters() {
        let run = BTreeSet::from([String::from("a\u{1b}[2J\n\"\u{202e}b\\")]);
        let shown = PermissionSet { run, ..PermissionSet::default() }.to_string();
        assert_eq!(shown, r#":run ["a\u{1b}[2J\n\"\u{202e}b\\"]"#);
    }

    #[test]
    fn a_prompt_lists_dangerous_permissions_first_and_counts_omitted_ones() {
        let request = |tool: &str, grants| PermissionRequest {
            tool: tool.to_owned(),
            place: String::from("a.eld:1:1"),
            grants,
        };
        let set = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<BTreeSet<_>>();
        let hosts: BTreeSet<String> = (0..100).map(|number| format!("h{number:03}.example")).collect();
        let long = format!("sh -c '{}; rm -rf /'", "x".repeat(5_000));
        let mut wanted = vec![
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
        let lines = PermissionRequest::lines(&wanted);
        let begin = ["starts", "runs", "writes", "reaches", "reads", "waits"];
        assert!(lines.iter().zip(begin).all(|(line, name)| line.starts_with(name)), "{lines:#?}");
        assert!(lines[0].len() < 400 && lines[0].contains("; rm -rf /'\" (shortened, 5"), "{}", lines[0]);
        assert_eq!(lines[1], "runs requires :run [\"sh\"] :env [\"TOKEN\"] (a.eld:1:1)");
        assert!(lines[3].contains("\"h005.example\" … and 94 more, 100 in total]"), "{}", lines[3]);
        assert_eq!(lines[5], "waits requires :timeout \"3600s\" :memory \"1024MiB\" (a.eld:1:1)");
        let more = wanted[0].grants.clone();
        wanted.extend((0..30).map(|number| request(&format!("r{number}"), more.clone())));
        let lines = PermissionRequest::lines(&wanted);
        assert_eq!(lines.len(), 21);
        assert_eq!(lines[20], "and 16 more with 17 permissions");
    }

    #[test]
    fn hosts_are_shown_in_punycode() {
        let net = ["\u{430}pple.example", "*.B\u{fc}cher.example:8443", "API.example"].map(String::from);
        let permissions = ScriptPermissions { net: net.to_vec(), ..ScriptPermissions::default() };
        let grants = PermissionSet::of(&permissions, Path::new("/"));
        assert_eq!(
            grants.to_string(),
            ":net [\"*.xn--bcher-kva.example:8443\" \"api.example\" \"xn--pple-43d.example\"]"
        );
    }

    #[test]
    fn high_limits_require_trust() {
        let limits = |seconds, memory| {
            PermissionSet::default().with_limits(Some(Duration::from_secs(seconds)), Some(memory))
        };
        assert!(limits(900, 256 << 20).is_empty());
        assert_eq!(limits(901, 257 << 20).to_string(), ":timeout \"901s\" :memory \"257MiB\"");
        let granted = limits(3600, 1 << 30);
        assert!(granted.covers(&limits(1800, 512 << 20)) && granted.covers(&granted));
        assert_eq!(granted.missing(&limits(3601, 1 << 30)), limits(3601, 0));
        assert_eq!(granted.missing(&limits(1, 2 << 30)).to_string(), ":memory \"2048MiB\"");
        let mut more = granted.clone();
        more.add(limits(7200, 0));
        assert_eq!(more, limits(7200, 1 << 30));
    }
}
