//! Files that a command would write and that are links out of what the user named: a project that somebody else wrote must
//! not have its user's other files rewritten.

use std::path::{Path, PathBuf};

/// What the user means by the command line: the named files and folders, or the project.
pub(super) struct Named(Vec<PathBuf>);

impl Named {
    /// `paths` as they were given, relative to `folder`; `root` is meant where there are none.
    pub(super) fn of(paths: &[PathBuf], folder: &Path, root: Option<&Path>) -> Self {
        let named = paths.iter().map(|path| folder.join(path));
        let root = root.filter(|_| paths.is_empty()).map(Path::to_owned);
        Self(named.chain(root).filter_map(|path| std::fs::canonicalize(path).ok()).collect())
    }

    /// Where `path` leads, if that is beneath nothing that was named.
    pub(super) fn leads_out(&self, path: &Path) -> Option<PathBuf> {
        let target = std::fs::canonicalize(path).ok()?;
        let is_within = self.0.iter().any(|named| target.starts_with(named));
        (!is_within).then_some(target)
    }
}

/// What is said of a file that stays as it is.
pub(super) fn why(target: &Path) -> String {
    format!("it leads out of the project, to {}; name that file to have it changed", target.display())
}
