//! Files of a project that no load reads: scenarios, recordings, tests in any folder.

use std::path::{Path, PathBuf};

use crate::paths::is_hidden_path;

/// Maximum number of entries to examine.
const MAX_ENTRIES: usize = 50_000;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 16;
/// Folders of other tools, which contain many files.
const SKIPPED: [&str; 3] = ["node_modules", "target", "venv"];

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// The files, sorted.
    pub paths: Vec<PathBuf>,
    /// Whether the search ended before it examined all folders.
    pub is_cut_off: bool,
}

/// Returns the files of the project at `root` that have one of these extensions. Skips hidden files, links and projects
/// in subfolders.
pub fn find_files(root: &Path, extensions: &[&str]) -> FoundFiles {
    let mut found = FoundFiles::default();
    let mut pending = vec![(root.to_owned(), 0)];
    let mut examined = 0;
    while let Some((folder, depth)) = pending.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            examined += 1;
            if examined > MAX_ENTRIES {
                found.is_cut_off = true;
                break;
            }
            let (path, kind) = (entry.path(), entry.file_type().ok());
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if is_hidden_path(&path) || SKIPPED.contains(&name) {
                continue;
            }
            if kind.is_some_and(|kind| kind.is_dir()) && !path.join("specs").is_dir() {
                found.is_cut_off |= depth >= MAX_DEPTH;
                pending.extend((depth < MAX_DEPTH).then(|| (path, depth + 1)));
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if kind.is_some_and(|kind| kind.is_file()) && extensions.contains(&extension) {
                found.paths.push(path);
            }
        }
    }
    found.paths.sort_unstable();
    found
}
