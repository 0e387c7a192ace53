//! Files of a project that no load reads: scenarios, recordings, tests in any folder.

use std::path::{Path, PathBuf};

use crate::model::Overlay;
use crate::paths::{ends_in, is_hidden_path};

/// Maximum number of entries to examine.
const MAX_ENTRIES: usize = 50_000;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 16;
/// Maximum size of a file that is searched for words, in bytes.
const MAX_SEARCHED: u64 = 64 << 20;
/// Folders of other tools, which contain many files.
pub(super) const SKIPPED: [&str; 3] = ["node_modules", "target", "venv"];

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// The files, sorted.
    pub paths: Vec<PathBuf>,
    /// Whether the search ended before it examined all folders.
    pub is_cut_off: bool,
}

impl FoundFiles {
    /// Adds the files of `overlay` that have one of these extensions.
    pub(crate) fn add_unsaved(&mut self, overlay: &Overlay, extensions: &[&str]) {
        self.paths.extend(overlay.paths().filter(|path| ends_in(path, extensions)).cloned());
        self.paths.sort_unstable();
        self.paths.dedup();
    }

    /// Keeps the files that contain all `words`, not as parts of longer names. Also keeps those that are not searched:
    /// files larger than 64 MiB, and unreadable ones.
    #[must_use]
    pub fn containing(mut self, words: &[&str]) -> Self {
        self.paths.retain(|path| {
            let is_large = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_SEARCHED);
            let content = if is_large { None } else { std::fs::read(path).ok() };
            content.is_none_or(|content| words.iter().all(|word| contains_word(&content, word)))
        });
        self
    }
}

/// Returns whether `content` contains `word`, not as a part of a longer name.
fn contains_word(content: &[u8], word: &str) -> bool {
    let is_part = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    memchr::memmem::find_iter(content, word).any(|start| {
        let before = start.checked_sub(1).and_then(|before| content.get(before));
        !is_part(before) && !is_part(content.get(start + word.len()))
    })
}

/// Returns the files of the project at `root` that have one of these extensions. Skips hidden files, links and projects
/// in subfolders.
pub(crate) fn find_files(root: &Path, extensions: &[&str]) -> FoundFiles {
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
            if kind.is_some_and(|kind| kind.is_file()) && ends_in(&path, extensions) {
                found.paths.push(path);
            }
        }
    }
    found.paths.sort_unstable();
    found
}
