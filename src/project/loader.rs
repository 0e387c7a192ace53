//! One set of files, looked at and loaded again and again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::discover::{look_at_scripts, resolve_paths, scripts_folder};
use super::load::load_through;
use super::look::{FileLook, Known, Looks};
use super::{Input, Load, LoadOptions, ProjectError};

/// What is loaded, and what was loaded last.
pub(super) struct Loader {
    wanted: Wanted,
    from: PathBuf,
    options: LoadOptions,
    cache: Cache,
    /// What everything looked like when it was last loaded.
    seen: Looks,
    /// Places outside of the listed folders that the last load names.
    named: Vec<PathBuf>,
}

/// What is loaded.
pub(super) enum Wanted {
    /// The project at this folder, whatever becomes of it.
    Project(PathBuf),
    /// What these paths mean, seen from a folder.
    Paths(Vec<PathBuf>, PathBuf),
}

/// One look around.
pub(super) struct Scan {
    inputs: Result<Vec<Input>, ProjectError>,
    pub(super) looks: Looks,
}

impl Loader {
    /// Names in messages are relative to `from`.
    pub(super) fn new(wanted: Wanted, from: &Path, options: LoadOptions) -> Self {
        let (cache, seen, named) = (Cache::default(), Looks::default(), Vec::new());
        Self { wanted, from: from.to_owned(), options, cache, seen, named }
    }

    /// From now on a spec file that cannot be read is a finding.
    pub(super) fn keep_going(&mut self) {
        self.cache.keeps_going = true;
    }

    /// Looks at everything.
    pub(super) fn scan(&self) -> Scan {
        let mut looks = Looks::default();
        let inputs = match &self.wanted {
            Wanted::Project(root) => {
                look_around(root, &mut looks);
                Input::of_project(root.clone(), &mut looks).map(|input| vec![input])
            }
            Wanted::Paths(paths, folder) => {
                for path in paths {
                    looks.watch_entry(&folder.join(path));
                }
                resolve_paths(paths, folder, &mut looks)
            }
        };
        for input in inputs.iter().flatten() {
            for root in input.root.iter().filter(|_| matches!(self.wanted, Wanted::Paths(..))) {
                look_around(root, &mut looks);
            }
            // Recorded in `looks`; the load asks for them itself.
            let _ = input.around(&mut looks);
        }
        for path in &self.named {
            looks.name(path);
        }
        Scan { inputs, looks }
    }

    /// The files that are other than what was loaded. `doubted`: those to be read for it, whatever they look like;
    /// `None`: all that may have changed without looking otherwise.
    pub(super) fn differences(
        &self,
        looks: &Looks,
        doubted: Option<&HashSet<PathBuf>>,
    ) -> Vec<(PathBuf, Option<FileLook>)> {
        let mut different = looks.differences(&self.seen);
        for path in self.cache.doubtful(doubted) {
            if let Known::There(look) = looks.of(&path)
                && !different.iter().any(|(known, _)| *known == path)
            {
                different.push((path, Some(look)));
            }
        }
        different
    }

    /// Loads what `scan` found, but for the files that are `held`.
    pub(super) fn load(&mut self, scan: Scan, held: HashSet<PathBuf>) -> Result<Load, ProjectError> {
        self.cache.begin(scan.looks, held);
        load_through(&mut self.cache, &scan.inputs?, &self.from, &self.options)
    }

    /// After a load: the files of it that are not as they were before it, but for those that were held.
    pub(super) fn torn(&self) -> Vec<PathBuf> {
        let mut torn = self.cache.take_torn();
        for (path, _) in self.scan().looks.differences(self.cache.looks()) {
            if self.cache.has(&path) && !self.cache.is_held(&path) {
                torn.push(path);
            }
        }
        self.cache.forget(&torn);
        torn
    }

    /// Whether the file is part of what is loaded.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.cache.has(path)
    }

    /// After a load that is taken: everything was seen but for what was `held`. Whether a file was read that holds
    /// other than before.
    pub(super) fn taken(&mut self, held: &HashSet<PathBuf>) -> bool {
        let has_news = self.cache.end();
        self.named = self.cache.named();
        let mut seen = self.cache.take_looks();
        seen.named = self.named.iter().map(|path| (path.clone(), self.cache.look(path))).collect();
        for path in held {
            match self.seen.listed.remove(path) {
                Some(look) => drop(seen.listed.insert(path.clone(), look)),
                None => drop(seen.listed.remove(path)),
            }
        }
        self.seen = seen;
        has_news
    }
}

/// The scripts of the project at `root`, and where it would be seen that one of its folders is another.
fn look_around(root: &Path, looks: &mut Looks) {
    for folder in [root.to_owned(), root.join("specs"), scripts_folder(root)] {
        looks.watch_entry(&folder);
        looks.follow_link(&folder);
    }
    look_at_scripts(root, looks);
}
