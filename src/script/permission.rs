//! What a tool's spec allows its script, resolved by the layer above.
//!
//! Nothing is allowed unless it is listed. Each host table enforces its own.

use std::path::{Component, Path, PathBuf};

/// A file or folder that a script may use, and everything beneath it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// As the spec's author wrote it, as in `notes/`; scripts name files below it in the same way.
    pub name: String,
    /// Where it is: an absolute path without `.` and `..`.
    pub path: PathBuf,
}

impl PathGrant {
    /// Grants `path` under `name`. `.` and `..` in `path` are resolved by the text alone, as those in a script's paths
    /// are.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), path: plain(&path.into()) }
    }

    /// What of `wanted`, which is [`plain`], lies beneath this grant; empty for the grant itself.
    pub(super) fn rest(&self, wanted: &Path) -> Option<PathBuf> {
        [plain(Path::new(&self.name)), plain(&self.path)]
            .into_iter()
            .filter(|root| root.is_absolute() == wanted.is_absolute())
            .filter_map(|root| wanted.strip_prefix(root).ok().map(Path::to_path_buf))
            // A grant of `..` is no grant of `../..`.
            .find(|rest| !rest.starts_with(".."))
    }
}

/// `path` without `.`, double slashes and, but for leading ones of a relative path, `..`. Links are not looked at.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match (component, plain.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => drop(plain.pop()),
            (Component::ParentDir, Some(Component::RootDir | Component::Prefix(_))) => {}
            _ => plain.push(component),
        }
    }
    plain
}

/// A spec's `:allow`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// `:net`: hosts, as [`HostGrant`](crate::spec::HostGrant) reads them.
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
