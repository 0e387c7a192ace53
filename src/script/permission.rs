//! What a tool's spec allows its script, resolved by the layer above.
//!
//! Nothing is allowed unless it is listed. Each host table enforces its own.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// A file or folder that a script may use, and everything beneath it that is not hidden: files and folders whose names
/// begin with a dot (`.env`, `.git`) hold secrets more often than work, and are covered only by a grant that names them.
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

    /// The first hidden name on the way to `real`, where this grant leads once links are followed, that the grant does
    /// not spell itself. `root` is the project without links; outside of it the user is asked about `real` as a whole.
    pub(super) fn unnamed_hidden(&self, real: &Path, root: &Path) -> Option<OsString> {
        let named = plain(Path::new(&self.name));
        let beneath = real.strip_prefix(root).ok()?;
        let is_named = |name: &OsStr| named.components().any(|part| part.as_os_str() == name);
        hidden_names(beneath).find(|name| !is_named(name)).map(OsStr::to_owned)
    }
}

/// The names in `path` that begin with a dot: what a shell, and a person, does not see.
pub(crate) fn hidden_names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) if is_hidden(name) => Some(name),
        _ => None,
    })
}

/// Whether a file or folder of this name is hidden.
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
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

/// Where the granted files and folders of a call were, links followed, when it was asked for. What a grant allows was
/// decided then: where a name leads elsewhere since, another tool may have moved a link there.
#[derive(Debug, Default)]
pub(super) struct Pins(Vec<(PathBuf, PathBuf)>);

impl Pins {
    /// Where the grants of `permissions` lead now.
    pub(super) fn of(permissions: &Permissions) -> Self {
        let grants = permissions.read.iter().chain(&permissions.write);
        Self(grants.map(|grant| plain(&grant.path)).map(|path| (place(&path), path)).collect())
    }

    /// Whether `granted`, a [`plain`] path of a grant, leads where it did. What was not there may be there now, unless a link
    /// leads to it.
    pub(super) fn hold(&self, granted: &Path) -> bool {
        let now = place(granted);
        self.0.iter().all(|(then, path)| path != granted || *then == now)
    }
}

/// `path` with the links followed of what there is of it.
fn place(path: &Path) -> PathBuf {
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
