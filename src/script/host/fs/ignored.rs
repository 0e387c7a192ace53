//! What `.gitignore` and `.ignore` files leave out of a walk, as git reads them.
//!
//! The files of the folders above the walk count, up to the granted folder; those of the user and of the repository
//! (`core.excludesFile`, `.git/info/exclude`) do not: they lie outside.

use std::io::Read as _;
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::open::{never_wait, open_folder};

/// Longest file that is read; of a longer one nothing counts.
const MAX_FILE: u64 = 64 << 10;
/// Most bytes of them in a walk.
const MAX_TOTAL: u64 = 1 << 20;

pub(super) struct Ignores {
    on: bool,
    left: u64,
    /// Of each folder from the granted one, where its path ends and what its files say.
    levels: Vec<(usize, Option<Gitignore>)>,
}

impl Ignores {
    pub(super) fn new(on: bool) -> Self {
        Self { on, left: MAX_TOTAL, levels: Vec::new() }
    }

    /// Takes the files of `granted` and of the folders between it and `rest`, which is walked.
    pub(super) fn add_above(&mut self, granted: &Dir, rest: &Path) {
        if !self.on {
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

    /// Takes the files of `dir`, whose path has `path` bytes.
    pub(super) fn enter(&mut self, dir: &Dir, path: usize) {
        let rules = if self.on { self.read(dir) } else { None };
        self.levels.push((path, rules));
    }

    /// Forgets the files of the folder that was entered last.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Whether `path`, from the granted folder, is left out. The innermost file that speaks of it decides.
    pub(super) fn ignore(&self, path: &str, is_folder: bool) -> bool {
        self.levels
            .iter()
            .rev()
            .filter_map(|(above, rules)| Some(rules.as_ref()?.matched(path.get(*above..)?, is_folder)))
            .find(|found| !found.is_none())
            .is_some_and(|found| found.is_ignore())
    }

    /// Whether a name is left out wherever it is.
    pub(super) fn always_ignore(&self, name: &str) -> bool {
        self.on && name == ".git"
    }

    fn read(&mut self, dir: &Dir) -> Option<Gitignore> {
        // What `.ignore` says comes last and so prevails.
        let texts = [".gitignore", ".ignore"].map(|name| self.text(dir, name));
        if texts.iter().all(Option::is_none) {
            return None;
        }
        let mut rules = GitignoreBuilder::new(".");
        for line in texts.iter().flatten().flat_map(|text| text.lines()) {
            // A line that makes no sense is none, as for git.
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
        never_wait(&mut options);
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
