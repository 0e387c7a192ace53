//! The permissions of a script: its spec's `:allow`, resolved by the layer above.
//!
//! Everything that is not listed is denied. Each host table enforces its own permissions.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use crate::path::resolve_path;

/// A file or folder that a script may use. A grant of a folder covers its contents except hidden files and folders,
/// whose names start with a dot (`.env`, `.git`): they often contain secrets, and are covered only by a grant that
/// names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// The path as written in the spec, as in `notes/`. Scripts use the same prefix for files in it.
    pub name: String,
    /// The absolute path, without `.` and `..`.
    pub path: PathBuf,
}

impl PathGrant {
    /// Creates a grant of `path` under `name`. `.` and `..` in `path` are resolved lexically, as in the paths that
    /// scripts use.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), path: normalize(&path.into()) }
    }

    /// Creates a grant of the path that a spec of the project at `root` contains.
    ///
    /// # Errors
    /// As [`resolve_path`].
    pub fn of_spec(name: &str, root: &Path) -> Result<Self, String> {
        Ok(Self::new(name, resolve_path(root, name)?))
    }

    /// Returns `wanted`, a [normalized](normalize) path, relative to this grant. Empty for the granted path itself.
    pub(super) fn rest(&self, wanted: &Path) -> Option<PathBuf> {
        let named = resolve_path(Path::new(""), &self.name).ok();
        named
            .into_iter()
            .chain([self.path.clone()])
            .map(|root| normalize(&root))
            .filter(|root| root.is_absolute() == wanted.is_absolute())
            .filter_map(|root| wanted.strip_prefix(root).ok().map(Path::to_path_buf))
            // A grant of `..` does not cover `../..`.
            .find(|rest| !rest.starts_with(".."))
    }

    /// Returns the first hidden name in `real`, the granted path with symbolic links resolved, that the grant does not
    /// name. `root` is the project's folder without links. For a path outside of the project, returns `None`: the user
    /// confirms such a path as a whole.
    pub(super) fn unnamed_hidden(&self, real: &Path, root: &Path) -> Option<OsString> {
        let named = normalize(Path::new(&self.name));
        let beneath = real.strip_prefix(root).ok()?;
        let is_named = |name: &OsStr| named.components().any(|part| part.as_os_str() == name);
        hidden_names(beneath).find(|name| !is_named(name)).map(OsStr::to_owned)
    }
}

/// Returns the components of `path` that start with a dot.
pub fn hidden_names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) if is_hidden(name) => Some(name),
        _ => None,
    })
}

/// Returns whether a file or folder of this name is hidden.
pub fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Removes `.`, double slashes and `..` (except leading ones of a relative path) from `path`, without resolving links.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match (component, normalized.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => drop(normalized.pop()),
            (Component::ParentDir, Some(Component::RootDir | Component::Prefix(_))) => {}
            _ => normalized.push(component),
        }
    }
    normalized
}

/// The permissions that a spec's `:allow` grants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptPermissions {
    /// `:net`: hosts, in the syntax of [`HostGrant`](deftool_lang::spec::HostGrant).
    pub net: Vec<String>,
    /// `:read`: files and folders that may be read.
    pub read: Vec<PathGrant>,
    /// `:write`: files and folders that may be written.
    pub write: Vec<PathGrant>,
    /// `:run`: programs.
    pub run: Vec<String>,
    /// `:env`: environment variables.
    pub env: Vec<String>,
}

/// The granted paths of a call, each with its real path (symbolic links resolved) when the call was requested. A grant
/// covers that real path only: another tool may have moved a link there since.
#[derive(Debug, Default)]
pub(super) struct PinnedPaths(Vec<(PathBuf, PathBuf)>);

impl PinnedPaths {
    /// Resolves the paths that `permissions` grants.
    pub(super) fn of(permissions: &ScriptPermissions) -> Self {
        let grants = permissions.read.iter().chain(&permissions.write);
        Self(grants.map(|grant| normalize(&grant.path)).map(|path| (resolve(&path), path)).collect())
    }

    /// Returns whether `granted`, the [normalized](normalize) path of a grant, has the same real path as before. A path
    /// that did not exist may exist now, unless a link leads to it.
    pub(super) fn is_unchanged(&self, granted: &Path) -> bool {
        let now = resolve(granted);
        self.0.iter().all(|(before, path)| path != granted || *before == now)
    }
}

/// Resolves the symbolic links in the existing part of `path`.
fn resolve(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|above| Some((std::fs::canonicalize(above).ok()?, above)));
    match known {
        Some((real, above)) => match path.strip_prefix(above) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => real,
        },
        None => path.to_owned(),
    }
}
