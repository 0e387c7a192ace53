//! What the scripts of a project may use beyond reading the project itself, as one set that can be compared.
//!
//! The set is what a person is asked about, what is remembered, and what every call is held against ([`Trust`]), so it is
//! kept in one spelling: hosts in lower case and as DNS has them (punycode), paths as where they lead once links are followed, relative where that lies in
//! the project. `out`, `out/` and `./out` are one, and a granted folder that was replaced by a link to another place is
//! another. A path covers what lies beneath it, a limit every lower one; of the other kinds each value covers itself.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::{Load, LoadedTool, ScriptState};
use super::scripts::resolve_permissions;
use crate::script::{PathGrant, Permissions, Script};
use crate::spec::{HostGrant, ToolKind};
use crate::text::{Location, count, one_line};
use crate::tool::{ToolError, ToolErrorKind};

/// The longest `:timeout` that a tool takes without trust: a call holds one of the few threads that scripts run on, and a
/// quarter of an hour is enough for a build or a slow API.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The largest `:memory` that a tool takes without trust, in bytes: several calls run at a time, and four times the usual
/// limit each leaves a small machine usable.
pub const MAX_MEMORY: u64 = 256 << 20;

/// Permissions beyond reading one's own project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    /// Hosts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub net: BTreeSet<String>,
    /// Files and folders outside of the project that may be read; absolute.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub read: BTreeSet<String>,
    /// Files and folders that may be changed; relative to the project, or absolute.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub write: BTreeSet<String>,
    /// Programs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub run: BTreeSet<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub env: BTreeSet<String>,
    /// Servers that workers start: each the whole of what is started, with its variables and folder.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub server: BTreeSet<String>,
    /// The time limit of a call in milliseconds, where it is above [`MAX_TIMEOUT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The memory limit of a call in bytes, where it is above [`MAX_MEMORY`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

impl Grants {
    /// Those of a tool of the project at `root`. Links are followed as they are now.
    pub fn of(permissions: &Permissions, root: &Path) -> Self {
        let mut grants = Self {
            net: permissions.net.iter().map(|host| HostGrant::ascii(host)).collect(),
            run: permissions.run.iter().cloned().collect(),
            env: permissions.env.iter().cloned().collect(),
            ..Self::default()
        };
        if permissions.read.is_empty() && permissions.write.is_empty() {
            return grants;
        }
        let root = follow(root);
        let led = |paths: &[PathGrant]| -> Vec<String> {
            paths.iter().map(|grant| written(&follow(&grant.path), &root)).collect()
        };
        grants.read = led(&permissions.read).into_iter().filter(|path| is_outside(path)).collect();
        grants.write = led(&permissions.write).into_iter().collect();
        grants
    }

    /// Those of a script. Of one without a project no path lies in it.
    pub fn of_script(script: &Script) -> Self {
        Self::of(&script.permissions, script.root.as_deref().unwrap_or(Path::new("")))
            .with_limits(script.timeout, script.memory)
    }

    /// These and the limits of a call, as far as they are above what needs no trust.
    fn with_limits(mut self, timeout: Option<Duration>, memory: Option<u64>) -> Self {
        let timeout = timeout.filter(|timeout| *timeout > MAX_TIMEOUT);
        self.timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self.memory = memory.filter(|memory| *memory > MAX_MEMORY);
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let limits = usize::from(self.timeout_ms.is_some()) + usize::from(self.memory.is_some());
        self.kinds().iter().map(|(_, values)| values.len()).sum::<usize>() + limits
    }

    /// Whether there is nothing to ask about.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all of `wanted` is among these.
    pub fn covers(&self, wanted: &Self) -> bool {
        self.missing(wanted).is_empty()
    }

    /// What of `wanted` is not among these.
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

    /// What of `wanted` is not among these.
    pub fn beyond(&self, wanted: Vec<Wish>) -> Vec<Wish> {
        let missing = wanted.into_iter().map(|wish| Wish { grants: self.missing(&wish.grants), ..wish });
        missing.filter(|wish| !wish.grants.is_empty()).collect()
    }

    /// These and those of `other`.
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

    /// The lists, the most dangerous first: what runs programs, what changes files, what reaches out.
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

    /// The rank of the most dangerous of them; 0 is the most.
    fn danger(&self) -> usize {
        let kinds = self.kinds();
        kinds.iter().position(|(_, values)| !values.is_empty()).unwrap_or(kinds.len())
    }

    /// As a spec has it; lists and values that are `short`ened say how much they leave out.
    fn describe(&self, short: bool) -> String {
        let shown = if short { MAX_VALUES } else { usize::MAX };
        let mut parts = Vec::new();
        for (kind, values) in self.kinds().into_iter().filter(|(_, values)| !values.is_empty()) {
            let quoted: Vec<String> = values.iter().take(shown).map(|value| quoted(value, short)).collect();
            let more = match values.len().saturating_sub(shown) {
                0 => String::new(),
                more => format!(" … and {more} more, {} in all", values.len()),
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

/// Values of a list that a question shows; more are only counted.
const MAX_VALUES: usize = 6;
/// Longer values are shown by their head and end, in characters.
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

/// As a spec has it, on one line: `:write ["out"] :net ["api.example.org"]`.
impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(false))
    }
}

/// What a tool wants beyond reading the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Its name.
    pub tool: String,
    /// `file:line:column` of its spec.
    pub place: String,
    /// What it wants.
    pub grants: Grants,
}

/// More requests are only counted.
const MAX_WISHES: usize = 20;

impl Wish {
    /// `wanted` as a question shows it, a line each: the most dangerous first, long lists and values shortened and counted.
    pub fn lines(wanted: &[Self]) -> Vec<String> {
        let mut sorted: Vec<&Self> = wanted.iter().collect();
        sorted.sort_by_key(|wish| wish.grants.danger());
        let line = |wish: &&Self| wish.describe(true);
        let mut lines: Vec<String> = sorted.iter().take(MAX_WISHES).map(line).collect();
        if let Some(rest) = sorted.get(MAX_WISHES..).filter(|rest| !rest.is_empty()) {
            let permissions = rest.iter().map(|wish| wish.grants.len()).sum();
            lines.push(format!("and {} more with {}", rest.len(), count(permissions, "permission")));
        }
        lines
    }

    fn describe(&self, short: bool) -> String {
        one_line(format!("{} wants {} ({})", self.tool, self.grants.describe(short), self.place))
    }
}

/// On one line, whatever the tool and its file are called.
impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(false))
    }
}

/// What those of `tools` that scripts run want, where that is something; `load` is what they were loaded with.
pub fn wishes<'t>(load: &Load, tools: impl IntoIterator<Item = &'t LoadedTool>) -> Vec<Wish> {
    let tools = tools.into_iter().filter(|loaded| loaded.tool.kind == ToolKind::Normal);
    let wishes = tools.map(|loaded| {
        let at = Location { source: loaded.tool.source, span: loaded.tool.name.span };
        let grants = match &loaded.script {
            ScriptState::Ready(script) => Grants::of_script(script),
            ScriptState::Broken(_) | ScriptState::None => {
                let root = load.root_of(loaded.tool.source).or(load.root.as_deref()).unwrap_or(Path::new(""));
                Grants::of(&resolve_permissions(&loaded.tool, root), root)
                    .with_limits(loaded.tool.timeout, loaded.tool.memory)
            }
        };
        // A last good version was read from what its file held then.
        let is_current = load.sources.get(at.source).is_some_and(|file| *file.name == *loaded.file);
        let place = if is_current { load.sources.describe(at) } else { loaded.file.to_string() };
        Wish { tool: loaded.tool.name.value.clone(), place, grants }
    });
    wishes.filter(|wish| !wish.grants.is_empty()).collect()
}

/// What scripts may use of what their specs allow.
#[derive(Debug, Clone)]
pub enum Trust {
    /// All of it.
    Everything,
    /// Reading the project, and these.
    Only(Arc<Grants>),
}

impl Trust {
    /// Whether a call of `script` goes on.
    ///
    /// # Errors
    /// When its spec wants what was not trusted.
    pub fn allow(&self, script: &Script) -> Result<(), ToolError> {
        let Self::Only(granted) = self else { return Ok(()) };
        let missing = granted.missing(&Grants::of_script(script));
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!(
            "`{}` is not run: its spec wants {missing}, which this project is not trusted with; read the spec, then \
             allow it with `deftool trust grant`",
            script.tool
        );
        Err(ToolError::new(ToolErrorKind::Permission, message))
    }
}

impl Trust {
    /// What of `wanted` is refused.
    pub fn refused(&self, wanted: Vec<Wish>) -> Vec<Wish> {
        match self {
            Self::Everything => Vec::new(),
            Self::Only(granted) => granted.beyond(wanted),
        }
    }
}

/// As it is compared and shown: relative to the project where it lies in it.
fn written(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => String::from("."),
        Ok(inside) => text_of(inside),
        Err(_) => text_of(path),
    }
}

/// What is not UTF-8 is written with escapes and in quotes, so that no two paths outside of the project share a text.
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

/// Longer chains of links are opened by nobody.
const MAX_LINKS: usize = 40;

/// Where `path`, which is absolute, leads once all links are followed, also where something on the way, or the whole, does
/// not exist yet.
pub(crate) fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    let mut rest = Vec::new();
    let mut links = 0;
    loop {
        if let Ok(mut found) = std::fs::canonicalize(&path) {
            found.extend(rest.iter().rev());
            return found;
        }
        // A link to what is not there yet is followed all the same: it may be there tomorrow.
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

    fn permissions(root: &Path, read: &[&str], write: &[&str]) -> Permissions {
        let grants =
            |names: &[&str]| names.iter().map(|name| PathGrant::new(*name, root.join(name))).collect();
        Permissions { read: grants(read), write: grants(write), ..Permissions::default() }
    }

    fn grants(root: &Path, read: &[&str], write: &[&str]) -> String {
        Grants::of(&permissions(root, read, write), root).to_string()
    }

    #[test]
    fn a_path_has_one_spelling() {
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
    fn links_are_followed_whether_their_target_is_there_or_not() {
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
    fn what_is_narrower_is_covered_and_what_is_wider_is_missing() {
        let set = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<BTreeSet<_>>();
        let granted = Grants {
            net: set(&["a.example"]),
            read: set(&["/home/me/notes"]),
            write: set(&["out"]),
            ..Grants::default()
        };
        let wanted = |kind: &str, value: &str| {
            let mut wanted = Grants::default();
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
        let everything = Grants { write: set(&["."]), ..Grants::default() };
        assert!(everything.covers(&wanted("write", "a/b")) && !everything.covers(&wanted("write", "/a")));
    }

    #[test]
    fn what_is_shown_is_one_harmless_line() {
        let run = BTreeSet::from([String::from("a\u{1b}[2J\n\"\u{202e}b\\")]);
        let shown = Grants { run, ..Grants::default() }.to_string();
        assert_eq!(shown, r#":run ["a\u{1b}[2J\n\"\u{202e}b\\"]"#);
    }

    #[test]
    fn a_question_begins_with_what_is_dangerous_and_counts_what_it_leaves_out() {
        let wish =
            |tool: &str, grants| Wish { tool: tool.to_owned(), place: String::from("a.eld:1:1"), grants };
        let set = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<BTreeSet<_>>();
        let hosts: BTreeSet<String> = (0..100).map(|number| format!("h{number:03}.example")).collect();
        let long = format!("sh -c '{}; rm -rf /'", "x".repeat(5_000));
        let mut wanted = vec![
            wish("reads", Grants { read: set(&["/etc"]), ..Grants::default() }),
            wish("reaches", Grants { net: hosts, ..Grants::default() }),
            wish("waits", Grants::default().with_limits(Some(Duration::from_secs(3600)), Some(1 << 30))),
            wish("writes", Grants { write: set(&["."]), net: set(&["a.example"]), ..Grants::default() }),
            wish("runs", Grants { run: set(&["sh"]), env: set(&["TOKEN"]), ..Grants::default() }),
            wish("starts", Grants { server: BTreeSet::from([long]), ..Grants::default() }),
        ];
        let lines = Wish::lines(&wanted);
        let begin = ["starts", "runs", "writes", "reaches", "reads", "waits"];
        assert!(lines.iter().zip(begin).all(|(line, name)| line.starts_with(name)), "{lines:#?}");
        assert!(lines[0].len() < 400 && lines[0].contains("; rm -rf /'\" (shortened, 5"), "{}", lines[0]);
        assert_eq!(lines[1], "runs wants :run [\"sh\"] :env [\"TOKEN\"] (a.eld:1:1)");
        assert!(lines[3].contains("\"h005.example\" … and 94 more, 100 in all]"), "{}", lines[3]);
        assert_eq!(lines[5], "waits wants :timeout \"3600s\" :memory \"1024MiB\" (a.eld:1:1)");
        let more = wanted[0].grants.clone();
        wanted.extend((0..30).map(|number| wish(&format!("r{number}"), more.clone())));
        let lines = Wish::lines(&wanted);
        assert_eq!(lines.len(), 21);
        assert_eq!(lines[20], "and 16 more with 17 permissions");
    }

    #[test]
    fn a_host_is_shown_as_dns_has_it() {
        let net = ["\u{430}pple.example", "*.B\u{fc}cher.example:8443", "API.example"].map(String::from);
        let permissions = Permissions { net: net.to_vec(), ..Permissions::default() };
        let grants = Grants::of(&permissions, Path::new("/"));
        assert_eq!(
            grants.to_string(),
            ":net [\"*.xn--bcher-kva.example:8443\" \"api.example\" \"xn--pple-43d.example\"]"
        );
    }

    #[test]
    fn limits_above_the_ceilings_need_trust() {
        let limits =
            |seconds, memory| Grants::default().with_limits(Some(Duration::from_secs(seconds)), Some(memory));
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
