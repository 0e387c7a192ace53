//! The rules of `.gitignore` and `.ignore` files, with git's semantics.
//!
//! Ignore files in the parent folders of a walk apply, up to the granted folder. The user's and the repository's own
//! files (`core.excludesFile`, `.git/info/exclude`) do not apply, because they are outside of the grant.

use std::io::Read as _;
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::no_follow::{open_folder, set_nonblocking_no_follow};

/// Maximum size of an ignore file, in bytes. Larger files are ignored.
const MAX_FILE: u64 = 64 << 10;
/// Maximum total size of the ignore files of a walk, in bytes.
const MAX_TOTAL: u64 = 1 << 20;

pub(super) struct IgnoreRules {
    enabled: bool,
    left: u64,
    /// For each folder, starting at the granted one: the length of its path and its rules.
    levels: Vec<(usize, Option<Gitignore>)>,
}

impl IgnoreRules {
    pub(super) fn new(enabled: bool) -> Self {
        Self { enabled, left: MAX_TOTAL, levels: Vec::new() }
    }

    /// Reads the ignore files of `granted` and of the folders between it and the walked folder `rest`.
    pub(super) fn add_above(&mut self, granted: &Dir, rest: &Path) {
        if !self.enabled {
            return;
        }
        let Ok(mut dir) = granted.try_clone() else { return };
        let mut path = 0;
        for step in rest {
            self.enter(&dir, path);
            let Ok(inner) = open_folder(&dir, Path::new(step)) else { return };
            dir = inner;
            path += step.to_string_lossy().len() + 1;
        }
    }

    /// Enters the folder `dir` and reads its ignore files. `path` is the length of its path in bytes.
    pub(super) fn enter(&mut self, dir: &Dir, path: usize) {
        let rules = if self.enabled { self.read(dir) } else { None };
        self.levels.push((path, rules));
    }

    /// Leaves the folder that was entered last and drops its rules.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns whether `path`, relative to the granted folder, is ignored. The innermost file with a matching rule
    /// decides.
    pub(super) fn ignore(&self, path: &str, is_folder: bool) -> bool {
        self.levels
            .iter()
            .rev()
            .filter_map(|(above, rules)| Some(rules.as_ref()?.matched(path.get(*above..)?, is_folder)))
            .find(|found| !found.is_none())
            .is_some_and(|found| found.is_ignore())
    }

    /// Returns whether entries of this name are ignored in every folder.
    pub(super) fn always_ignore(&self, name: &str) -> bool {
        self.enabled && name == ".git"
    }

    fn read(&mut self, dir: &Dir) -> Option<Gitignore> {
        // `.ignore` comes last, so its rules take precedence.
        let texts = [".gitignore", ".ignore"].map(|name| self.text(dir, name));
        if texts.iter().all(Option::is_none) {
            return None;
        }
        let mut rules = GitignoreBuilder::new(".");
        for line in texts.iter().flatten().flat_map(|text| text.lines()) {
            // Skip invalid lines, like git.
            let _ = rules.add_line(None, line);
        }
        rules.build().ok()
    }

    fn text(&mut self, dir: &Dir, name: &str) -> Option<String> {
        if !dir.symlink_metadata(name).ok()?.is_file() {
            return None;
        }
        let mut options = OpenOptions::new();
        options.read(true);
        set_nonblocking_no_follow(&mut options);
        let file = dir.open_with(name, &options).ok()?;
        let length = file.metadata().ok().filter(cap_std::fs::Metadata::is_file)?.len();
        if length > MAX_FILE.min(self.left) {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}
