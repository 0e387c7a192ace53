//! Sets of permissions: normalization, comparison and display.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deftool_lang::spec::HostGrant;
use deftool_lang::text::exact;
use deftool_script::{PathGrant, Script, ScriptPermissions, resolve_path};
use serde::{Deserialize, Serialize};

use crate::paths::resolve_links;

/// The longest `:timeout` that does not require trust. A call occupies one of the few script threads, and 15 minutes
/// are enough for a build or a slow API.
const MAX_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The largest `:memory` in bytes that does not require trust. Several calls run at the same time, and four times the
/// default limit each is acceptable on a small machine.
const MAX_MEMORY: u64 = 256 << 20;

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
    /// Servers that workers start, and MCP servers. Each value is the complete command with environment variables and
    /// folder, or `:url=` and the URL of an MCP server.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub server: BTreeSet<String>,
    /// Tools of the user that are replaced by tools with the same name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub replace: BTreeSet<String>,
    /// The time limit of a call in milliseconds, if it is above 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The memory limit of a call in bytes, if it is above 256 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The permissions of the user's own tools in this folder. The project's tools do not get them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Box<Self>>,
}

impl PermissionSet {
    /// Returns the permissions of a tool of the project at `root`. Links are resolved now.
    pub fn of(permissions: &ScriptPermissions, root: &Path) -> Self {
        let mut grants = Self {
            net: permissions.net.iter().map(|host| HostGrant::ascii(host)).collect(),
            run: permissions.run.iter().map(|name| resolved_program(name)).collect(),
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

    /// Returns the permissions of a tool of the user that works in the current project: to change it and to run programs in
    /// it.
    pub(super) fn of_user_script(script: &Script) -> Self {
        // The root was without links when the project was loaded. If it is a link now, nothing is inside.
        let root = script.root.as_deref().unwrap_or(Path::new(""));
        // The author of the folder chose where its links lead. Other paths are chosen by the user.
        let is_in_folder =
            |grant: &&PathGrant| !grant.name.starts_with(['~', '$']) && Path::new(&grant.name).is_relative();
        let resolve = |paths: &[PathGrant]| -> Vec<String> {
            let paths = paths.iter().filter(is_in_folder);
            paths.map(|grant| display_path(&resolve_links(&grant.path), root)).collect()
        };
        let ScriptPermissions { read, write, run, .. } = &script.permissions;
        let own = Self {
            read: resolve(read).into_iter().filter(|path| is_outside(path)).collect(),
            write: resolve(write).into_iter().collect(),
            run: run.iter().map(|name| resolved_program(name)).collect(),
            ..Self::default()
        };
        Self { own: Some(Box::new(own)).filter(|own| !own.is_empty()), ..Self::default() }
    }

    /// Adds the replacement of the user's tool called `name`.
    pub(crate) fn replacing(mut self, name: &str) -> Self {
        self.replace.insert(name.to_owned());
        self
    }

    /// Adds folders outside of the project from which files of the script come.
    pub(super) fn reading(mut self, folders: &[PathBuf]) -> Self {
        self.read.extend(folders.iter().map(|folder| text_of(folder)));
        self
    }

    /// Adds the limits of a call that are above `MAX_TIMEOUT` and `MAX_MEMORY`.
    pub(super) fn with_limits(mut self, timeout: Option<Duration>, memory: Option<u64>) -> Self {
        let timeout = timeout.filter(|timeout| *timeout > MAX_TIMEOUT);
        self.timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self.memory = memory.filter(|memory| *memory > MAX_MEMORY);
        self
    }

    /// Returns the number of permissions.
    pub fn len(&self) -> usize {
        let limits = usize::from(self.timeout_ms.is_some()) + usize::from(self.memory.is_some());
        let own = self.own.as_ref().map_or(0, |own| own.len());
        self.kinds().iter().map(|(_, values)| values.len()).sum::<usize>() + limits + own
    }

    /// Returns whether only tools of the user require these permissions.
    pub fn is_of_user(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.len() == self.len())
    }

    /// Returns the command that grants these permissions in the current folder.
    pub fn grant_command(&self) -> &'static str {
        if self.is_of_user() { "deftool trust grant --user-tools" } else { "deftool trust grant" }
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the set includes all of `requested`.
    pub fn covers(&self, requested: &Self) -> bool {
        self.missing(requested).is_empty()
    }

    /// Returns the part of `requested` that the set does not include.
    #[must_use]
    pub fn missing(&self, requested: &Self) -> Self {
        let paths = |granted: &BTreeSet<String>, requested: &BTreeSet<String>| {
            let is_covered = |path: &String| granted.iter().any(|granted| contains(granted, path));
            requested.iter().filter(|path| !is_covered(path)).cloned().collect()
        };
        let none = Self::default();
        let own = requested.own.as_ref().map(|own| self.own.as_deref().unwrap_or(&none).missing(own));
        Self {
            own: own.filter(|own| !own.is_empty()).map(Box::new),
            net: &requested.net - &self.net,
            read: paths(&self.read, &requested.read),
            write: paths(&self.write, &requested.write),
            run: &requested.run - &self.run,
            env: &requested.env - &self.env,
            server: &requested.server - &self.server,
            replace: &requested.replace - &self.replace,
            timeout_ms: requested.timeout_ms.filter(|_| requested.timeout_ms > self.timeout_ms),
            memory: requested.memory.filter(|_| requested.memory > self.memory),
        }
    }

    /// Adds the permissions of `other`.
    pub fn add(&mut self, other: Self) {
        self.net.extend(other.net);
        self.read.extend(other.read);
        self.write.extend(other.write);
        self.run.extend(other.run);
        self.env.extend(other.env);
        self.server.extend(other.server);
        self.replace.extend(other.replace);
        self.timeout_ms = self.timeout_ms.max(other.timeout_ms);
        self.memory = self.memory.max(other.memory);
        if let Some(own) = other.own {
            self.own.get_or_insert_default().add(*own);
        }
    }

    /// Returns the lists, the most dangerous first: running programs, writing files, network access.
    fn kinds(&self) -> [(&'static str, &BTreeSet<String>); 7] {
        [
            (":server", &self.server),
            (":run", &self.run),
            (":write", &self.write),
            (":net", &self.net),
            (":env", &self.env),
            (":read", &self.read),
            (":replace", &self.replace),
        ]
    }

    /// Returns the rank of the most dangerous list with values. 0 is the most dangerous.
    pub(super) fn risk_rank(&self) -> usize {
        let kinds = self.kinds();
        let first = kinds.iter().position(|(_, values)| !values.is_empty()).unwrap_or(kinds.len());
        self.own.as_ref().map_or(first, |own| first.min(own.risk_rank()))
    }

    /// Formats the set in spec syntax. If `short`, long lists and values except commands are truncated, with the number
    /// of omitted items.
    pub(super) fn describe(&self, short: bool) -> String {
        let shown = if short { MAX_VALUES } else { usize::MAX };
        let mut parts = Vec::new();
        for (kind, values) in self.kinds().into_iter().filter(|(_, values)| !values.is_empty()) {
            let is_short = short && kind != ":server";
            let quoted: Vec<String> =
                values.iter().take(shown).map(|value| quoted(value, is_short)).collect();
            let more = match values.len().saturating_sub(shown) {
                0 => String::new(),
                more => format!(" … and {more} more, {} in total", values.len()),
            };
            parts.push(format!("{kind} [{}{more}]", exact(&quoted.join(" "))));
        }
        parts.extend(self.timeout_ms.map(|limit| match limit % 1000 {
            0 => format!(":timeout \"{}s\"", limit / 1000),
            _ => format!(":timeout \"{limit}ms\""),
        }));
        parts.extend(self.memory.map(|limit| match limit % (1 << 20) {
            0 => format!(":memory \"{}MiB\"", limit >> 20),
            _ => format!(":memory \"{limit}B\""),
        }));
        let own = self
            .own
            .as_ref()
            .map(|own| format!("{} in this folder, for your own tools", own.describe(short)));
        let of_project = Some(parts.join(" ")).filter(|text| !text.is_empty());
        of_project.into_iter().chain(own).collect::<Vec<_>>().join("; ")
    }
}

/// Returns the name of a program. A path in a folder of the user is resolved now.
fn resolved_program(name: &str) -> String {
    let is_in_home = name.starts_with(['~', '$']) && name.contains('/');
    let resolved = if is_in_home { resolve_path(Path::new(""), name).ok() } else { None };
    resolved.map_or_else(|| name.to_owned(), |path| text_of(&path))
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
        let requested = |kind: &str, value: &str| {
            let mut requested = PermissionSet::default();
            let values = set(&[value]);
            match kind {
                "net" => requested.net = values,
                "read" => requested.read = values,
                "write" => requested.write = values,
                "run" => requested.run = values,
                _ => requested.env = values,
            }
            requested
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
            let requested = requested(kind, value);
            assert_eq!(granted.covers(&requested), expected, "{kind} {value}");
            assert_eq!(granted.missing(&requested).is_empty(), expected, "{kind} {value}");
        }
        let everything = PermissionSet { write: set(&["."]), ..PermissionSet::default() };
        assert!(
            everything.covers(&requested("write", "a/b")) && !everything.covers(&requested("write", "/a"))
        );
    }

    #[test]
    fn the_display_is_one_line_without_control_characters() {
        let run = BTreeSet::from([String::from("a\u{1b}[2J\n\"\u{202e}b\\")]);
        let shown = PermissionSet { run, ..PermissionSet::default() }.to_string();
        assert_eq!(shown, r#":run ["a\u{1b}[2J\n\"\u{202e}b\\"]"#);
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
