//! Repeated scanning and loading of one set of files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::load::{
    Cache, FileStamp, FoundFiles, LoadState, Lookup, Snapshot, find_files, load_with_cache, read_source,
    resolve_paths, scan_scripts,
};
use crate::model::{Input, Load, LoadOptions, Overlay, ProjectError};
use crate::paths::{is_source, scripts_folder};

/// A load target with the state of its last load.
pub(super) struct Loader {
    target: LoadTarget,
    from: PathBuf,
    options: LoadOptions,
    cache: Cache,
    /// The state of the last load, if it can be the start of the next one.
    state: Option<LoadState>,
    /// The snapshot of the last committed load.
    baseline: Arc<Snapshot>,
    /// Paths outside of the scanned folders that the last load refers to.
    referenced: Vec<PathBuf>,
    /// Files with changed content and an unchanged stamp.
    suspects: HashSet<PathBuf>,
    /// Whether the cache matches the last committed load.
    is_cache_current: bool,
    /// The inputs of the current load, if it succeeded, and of the last committed load.
    inputs: [Option<Arc<Vec<Input>>>; 2],
}

/// The files to load.
pub(super) enum LoadTarget {
    /// The project in this folder.
    Project(PathBuf),
    /// These paths, relative to a folder.
    Paths(Vec<PathBuf>, PathBuf),
}

/// The result of a scan.
pub(super) struct Scan {
    inputs: Result<Arc<Vec<Input>>, ProjectError>,
    pub(super) snapshot: Arc<Snapshot>,
    /// The changes since the last load, if the scan was limited to them. `snapshot` is then the one of the last load.
    changed: Option<Vec<(PathBuf, Option<FileStamp>)>>,
}

impl Loader {
    /// Creates a loader. File names in messages are relative to `from`.
    pub(super) fn new(target: LoadTarget, from: &Path, options: LoadOptions) -> Self {
        let mut cache = Cache::default();
        cache.overlay.clone_from(&options.overlay);
        cache.selection.clone_from(&options.selection);
        cache.user.clone_from(&options.user);
        Self {
            target,
            from: from.to_owned(),
            options,
            cache,
            state: None,
            baseline: Arc::default(),
            referenced: Vec::new(),
            suspects: HashSet::new(),
            is_cache_current: false,
            inputs: [None, None],
        }
    }

    /// From now on, reports an unreadable spec file as a finding instead of failing.
    pub(super) fn keep_going(&mut self) {
        self.cache.keeps_going = true;
    }

    /// The texts to use in place of the content of files.
    pub(super) fn overlay(&mut self) -> &mut Overlay {
        &mut self.cache.overlay
    }

    /// Loads the files of the last committed load again, in which only the overlay of `edited` has changed.
    ///
    /// # Errors
    /// If the load fails. The next load must then be a complete one.
    pub(super) fn load_edited(&mut self, edited: &HashSet<PathBuf>) -> Result<Load, ProjectError> {
        let Some(inputs) = self.inputs[1].take() else { return self.load_all() };
        let scan = Scan { inputs: Ok(inputs), snapshot: std::mem::take(&mut self.baseline), changed: None };
        self.load(scan, Some(edited.iter()), HashSet::new())
    }

    /// Returns whether the last scan found the file at `path`.
    pub(super) fn is_listed(&self, path: &Path) -> bool {
        self.baseline.listed.contains_key(path)
    }

    /// Returns whether there is a file at `path`: unsaved, at the last scan or, outside of the scanned folders, on disk.
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.cache.overlay.get(path).is_some()
            || match self.baseline.of(path) {
                Lookup::Present(_) => true,
                Lookup::Absent => false,
                Lookup::Unknown => path.exists(),
            }
    }

    /// Returns the text of a file: unsaved, as the last load read it or, if it is in no load, on disk.
    pub(super) fn text(&self, path: &Path) -> Option<Arc<str>> {
        let on_disk = || read_source(path).ok()?.into_text().map(Arc::from);
        self.cache.text(path).or_else(on_disk)
    }

    /// Returns the files of the project that have one of these extensions, on disk or unsaved.
    pub(super) fn find_files(&self, extensions: &[&str]) -> FoundFiles {
        let LoadTarget::Project(root) = &self.target else { return FoundFiles::default() };
        let mut found = find_files(root, extensions);
        found.add_unsaved(&self.cache.overlay, extensions);
        found
    }

    /// Returns the scripts that the last scan found in `scripts/` itself.
    pub(super) fn scripts(&self) -> &[PathBuf] {
        let found = match &self.target {
            LoadTarget::Project(root) => self.baseline.scripts.get(&scripts_folder(root)),
            LoadTarget::Paths(..) => None,
        };
        found.map_or(&[], Vec::as_slice)
    }

    /// Scans all files.
    pub(super) fn scan(&self) -> Scan {
        let mut snapshot = Snapshot::with_stamps();
        let inputs = match &self.target {
            LoadTarget::Project(root) => {
                scan_project(root, &self.options, &mut snapshot);
                Input::of_project(root.clone(), &mut snapshot).map(|mut input| {
                    input.add_unsaved(&self.cache.overlay, &mut snapshot);
                    vec![input]
                })
            }
            LoadTarget::Paths(paths, folder) => {
                for path in paths {
                    snapshot.watch_entry(&folder.join(path));
                }
                resolve_paths(paths, folder, &mut snapshot)
            }
        };
        for input in inputs.iter().flatten() {
            for root in input.root.iter().filter(|_| matches!(self.target, LoadTarget::Paths(..))) {
                scan_project(root, &self.options, &mut snapshot);
            }
            // Only the side effect on `snapshot` is needed. The load determines the files itself.
            let _ = input.other_specs(&mut snapshot);
        }
        for path in &self.referenced {
            snapshot.add_referenced(path);
        }
        Scan { inputs: inputs.map(Arc::new), snapshot: Arc::new(snapshot), changed: None }
    }

    /// Scans only these paths. Returns `None` if a full scan is necessary: a path was added or removed, is not a
    /// regular file, or is outside of the scanned folders.
    pub(super) fn scan_changed<'p>(&self, paths: impl Iterator<Item = &'p PathBuf>) -> Option<Scan> {
        // A linked file has two paths.
        let inputs = self.inputs[1].as_ref().filter(|_| self.baseline.targets.is_empty())?;
        let mut changed = Vec::new();
        for path in paths {
            let found = std::fs::symlink_metadata(path).ok();
            if found.as_ref().is_some_and(|found| !found.is_file()) {
                return None;
            }
            match (self.baseline.listed.get(path), found) {
                (Some(before), Some(found)) => {
                    let stamp = FileStamp::of(&found);
                    if stamp != *before {
                        changed.push((path.clone(), Some(stamp)));
                    }
                }
                (None, found) => {
                    let is_new = found.is_some() && is_source(path);
                    let is_known = self.baseline.folders.contains_key(path)
                        || self.baseline.referenced.contains_key(path);
                    if is_new || is_known {
                        return None;
                    }
                }
                (Some(_), None) => return None,
            }
        }
        let (inputs, snapshot) = (Ok(Arc::clone(inputs)), Arc::clone(&self.baseline));
        Some(Scan { inputs, snapshot, changed: Some(changed) })
    }

    /// Returns the files that changed since the last load. Also reads the files in `written`, or all of them, if
    /// their content may have changed without a new stamp.
    pub(super) fn differences(
        &mut self,
        scan: &Scan,
        written: Option<&HashSet<PathBuf>>,
    ) -> Vec<(PathBuf, Option<FileStamp>)> {
        let snapshot = &scan.snapshot;
        let mut changed = scan.changed.clone().unwrap_or_else(|| snapshot.differences(&self.baseline));
        // If a folder changed, any file in it may have changed, so all files are read.
        let written =
            written.filter(|written| !written.iter().any(|path| snapshot.folders.contains_key(path)));
        self.suspects.extend(self.cache.find_undetected(written));
        let known: HashSet<&PathBuf> = changed.iter().map(|(path, _)| path).collect();
        let suspects: Vec<&PathBuf> = self.suspects.iter().filter(|path| !known.contains(path)).collect();
        for path in suspects {
            if let Lookup::Present(stamp) = snapshot.of(path) {
                changed.push((path.clone(), Some(stamp)));
            }
        }
        changed
    }

    /// Loads the result of a scan without the `deferred` files. `changed`: all files that changed since the last load,
    /// or `None` if unknown.
    pub(super) fn load<'p>(
        &mut self,
        scan: Scan,
        changed: Option<impl Iterator<Item = &'p PathBuf>>,
        deferred: HashSet<PathBuf>,
    ) -> Result<Load, ProjectError> {
        // A discarded load leaves newer entries in the cache, so `changed` is not complete.
        let changed = changed.filter(|_| std::mem::replace(&mut self.is_cache_current, false));
        self.cache.begin(scan.snapshot, scan.changed.unwrap_or_default(), changed, deferred);
        self.inputs[0] = None;
        // After a load that fails, the next one is complete.
        let mut state = self.state.take();
        let inputs = scan.inputs?;
        let load = load_with_cache(&mut self.cache, &mut state, &inputs, &self.from, &self.options)?;
        (self.state, self.inputs[0]) = (state, Some(inputs));
        Ok(load)
    }

    /// Loads all files in their current state.
    ///
    /// # Errors
    /// If the load fails.
    pub(super) fn load_all(&mut self) -> Result<Load, ProjectError> {
        self.load(self.scan(), None::<std::iter::Empty<_>>, HashSet::new())
    }

    /// Returns the files that changed during the load, without the deferred ones, and drops their cache entries.
    pub(super) fn torn(&self) -> Vec<PathBuf> {
        let torn = self.cache.torn();
        self.cache.forget(&torn);
        torn
    }

    /// Returns whether the file is part of the load.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.cache.has(path)
    }

    /// Accepts the last load: its snapshot becomes the baseline, except for the `deferred` files. Returns whether any
    /// file's content changed.
    pub(super) fn commit(&mut self, deferred: &HashSet<PathBuf>) -> bool {
        let uses_same_files = self.state.as_ref().is_some_and(LoadState::uses_same_files);
        let has_changes = self.cache.end(uses_same_files);
        self.suspects.retain(|path| deferred.contains(path));
        if !uses_same_files {
            self.referenced = self.cache.referenced();
        }
        let referenced = self.referenced.iter().map(|path| (path.clone(), self.cache.stamp(path))).collect();
        let stamp_before = |path| (path, self.baseline.listed.get(path).copied());
        let before: Vec<_> = deferred.iter().map(stamp_before).collect();
        // The snapshot of the load may be the baseline.
        self.baseline = Arc::default();
        let mut baseline = self.cache.take_snapshot();
        baseline.referenced = referenced;
        for (path, stamp) in before {
            match stamp {
                Some(stamp) => drop(baseline.listed.insert(path.clone(), stamp)),
                None => drop(baseline.listed.remove(path)),
            }
        }
        self.baseline = Arc::new(baseline);
        self.is_cache_current = self.inputs[0].is_some();
        // A deferred file may have been missing when the inputs were listed.
        self.inputs[1] = self.inputs[0].take().filter(|_| deferred.is_empty());
        has_changes
    }
}

/// Scans the scripts of the project at `root` and watches the project folders themselves. If only some tools are loaded,
/// the snapshot contains only the scripts that they refer to.
fn scan_project(root: &Path, options: &LoadOptions, snapshot: &mut Snapshot) {
    for folder in [root.to_owned(), root.join("specs"), scripts_folder(root)] {
        snapshot.watch_entry(&folder);
        snapshot.follow_link(&folder);
    }
    // A link above the project may be replaced.
    snapshot.has_hidden_changes |= std::fs::canonicalize(root).is_ok_and(|target| target != root);
    if options.selection.is_all() {
        scan_scripts(root, snapshot);
    }
}

#[cfg(test)]
mod tests;
