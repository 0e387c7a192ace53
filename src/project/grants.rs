//! What the scripts of a project may use beyond reading the project itself, as one set that can be compared.
//!
//! The set is what a person is asked about, what is remembered, and what every call is held against ([`Trust`]), so it is
//! kept in one spelling: hosts in lower case, paths as where they lead once links are followed, relative where that lies in
//! the project. `out`, `out/` and `./out` are one, and a granted folder that was replaced by a link to another place is
//! another. A path covers what lies beneath it; of the other kinds each value covers itself.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::load::{Load, LoadedTool, ScriptState};
use super::scripts::resolve_permissions;
use crate::script::{PathGrant, Permissions, Script};
use crate::spec::ToolKind;
use crate::text::{Location, one_line};
use crate::tool::{ToolError, ToolErrorKind};

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
}

impl Grants {
    /// Those of a tool of the project at `root`. Links are followed as they are now.
    pub fn of(permissions: &Permissions, root: &Path) -> Self {
        let mut grants = Self {
            net: permissions.net.iter().map(|host| host.to_lowercase()).collect(),
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
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds().iter().map(|(_, values)| values.len()).sum()
    }

    /// Whether there is nothing to ask about.
    pub fn is_empty(&self) -> bool {
        self.kinds().iter().all(|(_, values)| values.is_empty())
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
    }

    fn kinds(&self) -> [(&'static str, &BTreeSet<String>); 6] {
        [
            (":net", &self.net),
            (":read", &self.read),
            (":write", &self.write),
            (":run", &self.run),
            (":env", &self.env),
            (":server", &self.server),
        ]
    }
}

/// As a spec has it, on one line: `:net ["api.example.org"] :write ["out"]`.
impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (kind, values) in self.kinds().into_iter().filter(|(_, values)| !values.is_empty()) {
            let quoted = |value: &String| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
            let values: Vec<String> = values.iter().map(quoted).collect();
            write!(f, "{separator}{kind} [{}]", one_line(values.join(" ")))?;
            separator = " ";
        }
        Ok(())
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

/// On one line, whatever the tool and its file are called.
impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(format!("{} wants {} ({})", self.tool, self.grants, self.place)))
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
}
