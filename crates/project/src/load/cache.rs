//! Reuse of unchanged files between loads.
//!
//! A file with the same stamp is not read again. A file with the same content is not parsed or compiled again. A tool
//! with unchanged files keeps its script, including the cached Lua states.
//!
//! A load with a cache has the same result as a load without one. Every file must have the stamp that the snapshot
//! recorded before the load. If a stamp differs during or after the load, the file is `torn`, and the load is
//! discarded. `deferred` files are still being written and count as unreadable.
//!
//! A cache serves one load target and one base folder for file names. The cache of a load that is not repeated keeps and
//! compares nothing.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use deftool_lang::spec::ToolSelection;
use deftool_process::files::check_private;
use deftool_process::lock;

use super::discover::{add_unsaved_scripts, scan_scripts};
use super::model::{CachedTool, ScriptFile, SpecFile};
use super::outside::linked_folders;
use super::read::{Known, ReadFile, SourceText, check_size, read_regular};
use super::snapshot::{FileStamp, Lookup, Snapshot};
use crate::model::{CurrentFolder, Overlay};
use crate::paths::scripts_folder;

/// Timestamp granularity of file systems: up to two seconds. A write this soon after a read may not change the stamp.
const CLOCK_GRANULARITY: Duration = Duration::from_secs(2);

/// Data kept between loads.
#[derive(Default)]
pub(crate) struct Cache {
    snapshot: Arc<Snapshot>,
    /// The files that changed since `snapshot` was taken, with their stamps for this load.
    newer: HashMap<PathBuf, FileStamp>,
    deferred: HashSet<PathBuf>,
    /// Stamps taken during the load, for files that the snapshot does not cover.
    late_stamps: Mutex<HashMap<PathBuf, Option<FileStamp>>>,
    pub(super) specs: Files<SpecFile>,
    pub(super) scripts: Files<ScriptFile>,
    /// The scripts of tools, by the addresses of their definitions.
    pub(super) tools: HashMap<usize, CachedTool>,
    /// For each project: the folders outside of it to which `scripts` and `scripts/lib` lead.
    linked: Mutex<HashMap<PathBuf, Arc<[PathBuf]>>>,
    torn: Mutex<Vec<PathBuf>>,
    /// Files that this load's new results depend on. The load is valid only if their stamps did not change.
    dependencies: Mutex<HashSet<PathBuf>>,
    /// Keys of the files that changed since the last load. `None` if unknown.
    changed: Option<HashSet<u64>>,
    /// The number of the current load. 0: the load is not repeated.
    round: u64,
    /// Whether an unreadable spec file is reported as a finding instead of an error.
    pub(crate) keeps_going: bool,
    /// Texts to use in place of the content of files.
    pub(crate) overlay: Overlay,
    /// The tools to load.
    pub(crate) selection: ToolSelection,
    /// Whether JSON files are read as lists of tools of other programs.
    pub(super) reads_lists: bool,
    /// The folder that the user works in, if the project is the user's own: files that another user could have written count
    /// as unreadable.
    pub(crate) user: Option<CurrentFolder>,
}

/// Files of one kind, by path.
pub(super) struct Files<T> {
    slots: Mutex<HashMap<PathBuf, Arc<Mutex<Slot<T>>>>>,
    has_changes: AtomicBool,
}

/// The cache entry of one file.
struct Slot<T> {
    cached: Option<Cached<T>>,
    /// The number of the last load that requested the file.
    used: u64,
}

impl<T> Slot<T> {
    /// Returns whether the load requested the file or reused a value that refers to it.
    fn is_used(&self, round: u64) -> bool {
        self.used == round || self.cached.as_ref().is_some_and(|cached| Arc::strong_count(&cached.value) > 1)
    }
}

struct Cached<T> {
    /// `None` for a text of the overlay.
    stamp: Option<FileStamp>,
    /// The time at which the file was read.
    at: SystemTime,
    value: Arc<T>,
}

impl<T> Cached<T> {
    /// Returns whether the file may have changed since it was read although its stamp is the same.
    fn may_be_stale(&self) -> bool {
        self.stamp.is_some_and(|stamp| {
            stamp.modified.is_none_or(|modified| {
                let apart = self.at.duration_since(modified).unwrap_or_else(|ahead| ahead.duration());
                apart < CLOCK_GRANULARITY
            })
        })
    }
}

/// A value derived from the bytes of a file.
pub(super) trait CachedFile {
    /// Maximum number of bytes to read: one more than the size limit.
    const MAX_READ: u64;

    /// Whether several tools may request the file in one load.
    const IS_SHARED: bool;

    /// Returns whether the value was made from these bytes.
    fn matches_bytes(&self, bytes: &[u8]) -> bool;
}

impl<T> Default for Files<T> {
    fn default() -> Self {
        Self { slots: Mutex::default(), has_changes: AtomicBool::new(false) }
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { cached: None, used: 0 }
    }
}

/// Returns a hash of a path. A collision causes an unnecessary check, or hides that a script is not used.
pub(super) fn key_of(path: &Path) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    path.as_os_str().as_encoded_bytes().hash(&mut hasher);
    hasher.finish()
}

impl Cache {
    /// Starts a load: sets the snapshot with the files that changed after it, the files that changed since the last
    /// load, and the deferred files.
    pub(crate) fn begin<'p>(
        &mut self,
        snapshot: Arc<Snapshot>,
        newer: Vec<(PathBuf, Option<FileStamp>)>,
        changed: Option<impl Iterator<Item = &'p PathBuf>>,
        deferred: HashSet<PathBuf>,
    ) {
        self.changed = changed.map(|changed| changed.map(|path| key_of(path)).collect());
        if let Some(changed) = &mut self.changed {
            changed.extend(deferred.iter().map(|path| key_of(path)));
        }
        self.newer = newer.into_iter().filter_map(|(path, stamp)| Some((path, stamp?))).collect();
        (self.snapshot, self.deferred) = (snapshot, deferred);
        lock(&self.late_stamps).clear();
        lock(&self.linked).clear();
        lock(&self.torn).clear();
        lock(&self.dependencies).clear();
        self.round += 1;
    }

    /// Ends a committed load: drops unused entries, unless it `uses_same_files` as the load before. Returns whether any file's
    /// content changed since the last committed load.
    pub(crate) fn end(&mut self, uses_same_files: bool) -> bool {
        if !uses_same_files {
            let round = self.round;
            self.specs.forget_unused(round);
            self.scripts.forget_unused(round);
        }
        let news = [&self.specs.has_changes, &self.scripts.has_changes]
            .map(|news| news.swap(false, Ordering::Relaxed));
        news.contains(&true)
    }

    /// Returns the folders outside of the project at `root` to which `scripts` and `scripts/lib` lead.
    pub(super) fn linked_folders(&self, root: &Path) -> Arc<[PathBuf]> {
        let mut linked = lock(&self.linked);
        if let Some(known) = linked.get(root) {
            return Arc::clone(known);
        }
        Arc::clone(linked.entry(root.to_owned()).or_insert_with_key(|root| linked_folders(root).into()))
    }

    /// Returns the snapshot taken before the load.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Takes the snapshot with the stamps of the load. Cheap if no other reference to it exists.
    pub(crate) fn take_snapshot(&mut self) -> Snapshot {
        let mut snapshot = Arc::unwrap_or_clone(std::mem::take(&mut self.snapshot));
        snapshot.listed.extend(self.newer.drain());
        snapshot
    }

    /// Returns the keys of the files that changed since the last load, if they are known and none is deferred.
    pub(super) fn changed(&self) -> Option<Vec<u64>> {
        self.changed.as_ref().filter(|_| self.deferred.is_empty()).map(|keys| keys.iter().copied().collect())
    }

    /// Returns whether a file with one of these keys may have changed since the last load.
    pub(super) fn may_have_changed(&self, keys: &[u64]) -> bool {
        self.changed.as_ref().is_none_or(|changed| keys.iter().any(|key| changed.contains(key)))
    }

    /// Whether the load is not repeated.
    pub(super) fn is_single_load(&self) -> bool {
        self.round == 0
    }

    /// Registers files. Their stamps are checked again after the load.
    pub(super) fn add_dependencies<'p>(&self, paths: impl Iterator<Item = &'p PathBuf>) {
        if self.is_single_load() {
            return;
        }
        lock(&self.dependencies).extend(paths.cloned());
    }

    /// Scans the scripts of `root`, unless the snapshot already contains them.
    pub(super) fn scan_scripts(&mut self, root: &Path) {
        if !self.snapshot.scripts.contains_key(&scripts_folder(root)) {
            let snapshot = Arc::make_mut(&mut self.snapshot);
            scan_scripts(root, snapshot);
            add_unsaved_scripts(&self.overlay, snapshot);
        }
    }

    /// Returns the stamp of `path` for this load.
    pub(crate) fn stamp(&self, path: &Path) -> Option<FileStamp> {
        if let Some(stamp) = self.newer.get(path) {
            return Some(*stamp);
        }
        match self.snapshot.of(path) {
            Lookup::Present(stamp) => Some(stamp),
            Lookup::Absent => None,
            Lookup::Unknown => {
                *lock(&self.late_stamps).entry(path.to_owned()).or_insert_with_key(|path| FileStamp::at(path))
            }
        }
    }

    /// Returns the files that changed since the snapshot, before or after they were read. Deferred files are left out.
    pub(crate) fn torn(&self) -> Vec<PathBuf> {
        let mut torn = std::mem::take(&mut *lock(&self.torn));
        let dependencies = lock(&self.dependencies);
        let is_other =
            |path: &&PathBuf| !self.deferred.contains(*path) && FileStamp::at(path) != self.stamp(path);
        torn.extend(dependencies.iter().filter(is_other).cloned());
        torn
    }

    /// Returns the value for the file at `path`. `known`: the result of a scan, if any. Calls `make` with the content and
    /// the cached value if the content changed or `fits` rejects the cached value.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn read<T: CachedFile>(
        &self,
        files: &Files<T>,
        (path, known): (&Path, Known),
        fits: impl Fn(&T) -> bool,
        make: impl FnOnce(Vec<u8>, Option<&T>) -> T,
    ) -> std::io::Result<Arc<T>> {
        if self.deferred.contains(path) {
            return Err(std::io::Error::other("the file is being written"));
        }
        if self.is_single_load() && !T::IS_SHARED {
            let bytes = match self.overlay.get(path) {
                Some(text) => text.as_bytes().to_vec(),
                None => self.read_file(path, known, T::MAX_READ)?.bytes,
            };
            return Ok(Arc::new(make(bytes, None)));
        }
        let stamp = self.stamp(path);
        let slot = files.slot(path);
        let mut slot = lock(&slot);
        slot.used = self.round;
        if let Some(text) = self.overlay.get(path) {
            let is_same = |cached: &&Cached<T>| cached.value.matches_bytes(text.as_bytes());
            let value = match slot.cached.as_ref().filter(is_same).filter(|cached| fits(&cached.value)) {
                Some(cached) => Arc::clone(&cached.value),
                None => {
                    let before = slot.cached.as_ref().map(|cached| &*cached.value);
                    Arc::new(make(text.as_bytes().to_vec(), before))
                }
            };
            slot.cached = Some(Cached { stamp: None, at: SystemTime::UNIX_EPOCH, value: Arc::clone(&value) });
            return Ok(value);
        }
        let is_current = |cached: &&Cached<T>| cached.stamp.is_some() && cached.stamp == stamp;
        let cached = slot.cached.as_ref().filter(is_current).filter(|cached| fits(&cached.value));
        if let Some(cached) = cached {
            return Ok(Arc::clone(&cached.value));
        }
        self.add_dependencies(std::iter::once(&path.to_owned()));
        let at = SystemTime::now();
        let ReadFile { bytes, stamp: found } = match self.read_file(path, known, T::MAX_READ) {
            Ok(read) => read,
            Err(error) => {
                if slot.cached.take().is_some() {
                    files.has_changes.store(true, Ordering::Relaxed);
                }
                return Err(error);
            }
        };
        // A change after this is found by `torn`.
        if !self.is_single_load() && Some(found) != stamp {
            lock(&self.torn).push(path.to_owned());
        }
        let before = slot.cached.take().map(|cached| cached.value);
        let is_same = before.as_ref().is_some_and(|before| before.matches_bytes(&bytes));
        if !is_same {
            files.has_changes.store(true, Ordering::Relaxed);
        }
        let value = match before {
            Some(same) if is_same && fits(&same) => same,
            before => Arc::new(make(bytes, before.as_deref())),
        };
        slot.cached = Some(Cached { stamp: Some(found), at, value: Arc::clone(&value) });
        Ok(value)
    }

    fn read_file(&self, path: &Path, known: Known, most: u64) -> std::io::Result<ReadFile> {
        if self.user.is_some() {
            check_private(path)?;
        }
        let read = read_regular(path, known, most)?;
        Ok(ReadFile { bytes: check_size(read.bytes)?, ..read })
    }

    /// Returns files with changed content and an unchanged stamp, and drops their cache entries. Checks `paths`,
    /// or all files if it is `None`.
    pub(crate) fn find_undetected(&self, paths: Option<&HashSet<PathBuf>>) -> Vec<PathBuf> {
        let mut changed = self.specs.find_undetected(paths);
        changed.extend(self.scripts.find_undetected(paths));
        changed
    }

    /// Returns the paths that the tools of the last load refer to outside of the scanned folders.
    pub(crate) fn referenced(&self) -> Vec<PathBuf> {
        let referenced: HashSet<&PathBuf> = self.tools.values().flat_map(|cached| &cached.external).collect();
        referenced.into_iter().cloned().collect()
    }

    /// Returns the text of the spec file, script or module at `path`: the replacement, or as the load read it.
    pub(crate) fn text(&self, path: &Path) -> Option<Arc<str>> {
        let unsaved = self.overlay.get(path).cloned();
        let spec = || Some(Arc::clone(&self.specs.read_before(path)?.source.text));
        let script = || {
            let source = self.scripts.read_before(path)?.script.source.to_vec();
            SourceText::of_bytes(path.to_owned(), source).into_text().map(Arc::from)
        };
        unsaved.or_else(spec).or_else(script)
    }

    /// Returns whether the file at `path` is part of the load.
    pub(crate) fn has(&self, path: &Path) -> bool {
        lock(&self.specs.slots).contains_key(path) || lock(&self.scripts.slots).contains_key(path)
    }

    /// Returns the number of cached tools.
    #[cfg(test)]
    pub(crate) fn tool_count(&self) -> usize {
        self.tools.len()
    }

    /// Sets the stored stamp to the file's current stamp, as if it had not changed since it was read.
    #[cfg(test)]
    pub(crate) fn set_stamp_to_current(&self, path: &Path) {
        let slot = self.specs.slot(path);
        let mut slot = lock(&slot);
        if let (Some(cached), Some(stamp)) = (&mut slot.cached, FileStamp::at(path)) {
            cached.stamp = Some(stamp);
        }
    }

    /// Drops the cache entries of these files.
    pub(crate) fn forget(&self, paths: &[PathBuf]) {
        for path in paths {
            lock(&self.specs.slots).remove(path);
            lock(&self.scripts.slots).remove(path);
        }
    }
}

impl<T> Files<T> {
    fn slot(&self, path: &Path) -> Arc<Mutex<Slot<T>>> {
        let mut slots = lock(&self.slots);
        match slots.get(path) {
            Some(slot) => Arc::clone(slot),
            None => Arc::clone(slots.entry(path.to_owned()).or_default()),
        }
    }

    /// Returns the value of a file, if a load read it.
    fn read_before(&self, path: &Path) -> Option<Arc<T>> {
        let slot = Arc::clone(lock(&self.slots).get(path)?);
        let slot = lock(&slot);
        slot.cached.as_ref().map(|cached| Arc::clone(&cached.value))
    }

    fn forget_unused(&self, round: u64) {
        let mut slots = lock(&self.slots);
        let before = slots.len();
        slots.retain(|_, slot| lock(slot).is_used(round));
        if slots.len() != before {
            self.has_changes.store(true, Ordering::Relaxed);
        }
    }
}

impl<T: CachedFile> Files<T> {
    fn find_undetected(&self, paths: Option<&HashSet<PathBuf>>) -> Vec<PathBuf> {
        let slots = lock(&self.slots);
        let mut changed = Vec::new();
        let mut check = |path: &PathBuf, slot: &Mutex<Slot<T>>| {
            let mut slot = lock(slot);
            let Some(cached) = slot.cached.as_mut().filter(|cached| cached.may_be_stale()) else { return };
            let at = SystemTime::now();
            let read = read_regular(path, Known::Nothing, T::MAX_READ);
            match read {
                // A changed stamp is found by comparing snapshots.
                Ok(read) if Some(read.stamp) == cached.stamp && cached.value.matches_bytes(&read.bytes) => {
                    cached.at = at;
                }
                Ok(read) if Some(read.stamp) == cached.stamp => {
                    changed.push(path.clone());
                    slot.cached = None;
                }
                Ok(_) | Err(_) => {}
            }
        };
        match paths {
            None => slots.iter().for_each(|(path, slot)| check(path, slot)),
            Some(paths) => {
                let known = paths.iter().filter_map(|path| slots.get(path).map(|slot| (path, slot)));
                known.for_each(|(path, slot)| check(path, slot));
            }
        }
        changed
    }
}
