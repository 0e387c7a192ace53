//! What a load takes over from the one before it: files whose look is the same are not read again, files that hold the same
//! are not lowered or compiled again, and tools of which nothing changed keep their script, with its states.
//!
//! A load through a cache finds what a load without one finds. Every file is taken as it looked before the load; one that
//! looks otherwise while or after it is read is `torn`, and the load that read it is worth nothing. Files that are
//! `held` are being written and count as unreadable.
//!
//! A cache is for one project, or one set of paths, and one folder that names are relative to.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::look::{FileLook, Known, Looks};
use super::read::{ReadFile, read_regular, refuse_huge};
use super::scripts::KeptTool;
use crate::script::MAX_SOURCE;

/// Clocks of file systems are coarse, up to two seconds: a write so soon after a file was read may leave its look as it was.
const COARSE: Duration = Duration::from_secs(2);

/// What is kept from load to load.
#[derive(Default)]
pub(super) struct Cache {
    looks: Looks,
    held: HashSet<PathBuf>,
    /// What was looked at during the load because no look before it said anything of it.
    met: Mutex<HashMap<PathBuf, Option<FileLook>>>,
    pub(super) specs: Files<super::load::SpecFile>,
    pub(super) scripts: Files<super::scripts::ScriptFile>,
    pub(super) tools: HashMap<usize, KeptTool>,
    torn: Mutex<Vec<PathBuf>>,
    /// The files of all that this load makes anew: it is worth something if they are as they were before it.
    relied: Mutex<HashSet<PathBuf>>,
    /// The files that are other than in the last load, by their keys; `None`: nobody knows.
    changed: Option<HashSet<u64>>,
    /// The number of the load.
    round: u64,
    /// Whether a spec file that cannot be read is a finding, and the others are loaded.
    pub(super) keeps_going: bool,
}

/// Files of one kind, by their paths.
pub(super) struct Files<T> {
    slots: Mutex<HashMap<PathBuf, Arc<Mutex<Slot<T>>>>>,
    has_news: AtomicBool,
}

/// What is known of one file.
struct Slot<T> {
    kept: Option<Kept<T>>,
    /// The last load that asked for it.
    used: u64,
}

impl<T> Slot<T> {
    /// Whether the load asked for it, or took something over that holds it.
    fn is_used(&self, round: u64) -> bool {
        self.used == round || self.kept.as_ref().is_some_and(|kept| Arc::strong_count(&kept.value) > 1)
    }
}

struct Kept<T> {
    look: FileLook,
    /// When it was read.
    at: SystemTime,
    value: Arc<T>,
}

impl<T> Kept<T> {
    /// Whether it may have been written since it was read without looking otherwise.
    fn is_doubtful(&self) -> bool {
        self.look.modified.is_none_or(|modified| {
            let apart = self.at.duration_since(modified).unwrap_or_else(|ahead| ahead.duration());
            apart < COARSE
        })
    }
}

/// Something that is made of the bytes of a file.
pub(super) trait OfBytes {
    /// Most bytes that are read, one of them too many.
    const MOST: u64;

    /// Whether a file of these bytes would be the same.
    fn holds(&self, bytes: &[u8]) -> bool;
}

impl<T> Default for Files<T> {
    fn default() -> Self {
        Self { slots: Mutex::default(), has_news: AtomicBool::new(false) }
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { kept: None, used: 0 }
    }
}

/// What a path is known by where it does not matter that another may have the same.
pub(super) fn key_of(path: &Path) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    path.as_os_str().as_encoded_bytes().hash(&mut hasher);
    hasher.finish()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    /// Before a load: how everything looks, what of it is other than in the last load, and which files are not to be
    /// read.
    pub(super) fn begin<'p>(
        &mut self,
        looks: Looks,
        changed: Option<impl Iterator<Item = &'p PathBuf>>,
        held: HashSet<PathBuf>,
    ) {
        self.changed = changed.map(|changed| changed.map(|path| key_of(path)).collect());
        if let Some(changed) = &mut self.changed {
            changed.extend(held.iter().map(|path| key_of(path)));
        }
        (self.looks, self.held) = (looks, held);
        lock(&self.met).clear();
        lock(&self.torn).clear();
        lock(&self.relied).clear();
        self.round += 1;
    }

    /// After a load that is taken: what it did not use goes. Whether since the last one that was taken a file was read that
    /// holds other than before.
    pub(super) fn end(&mut self) -> bool {
        let round = self.round;
        self.specs.forget_unused(round);
        self.scripts.forget_unused(round);
        let news =
            [&self.specs.has_news, &self.scripts.has_news].map(|news| news.swap(false, Ordering::Relaxed));
        news.contains(&true)
    }

    /// What everything looked like before the load.
    pub(super) fn looks(&self) -> &Looks {
        &self.looks
    }

    pub(super) fn take_looks(&mut self) -> Looks {
        std::mem::take(&mut self.looks)
    }

    /// Whether a file with one of these keys may be other than in the last load.
    pub(super) fn may_have_changed(&self, keys: &[u64]) -> bool {
        self.changed.as_ref().is_none_or(|changed| keys.iter().any(|key| changed.contains(key)))
    }

    /// This load relies on these files: they are looked at again after it.
    pub(super) fn rely_on<'p>(&self, paths: impl Iterator<Item = &'p PathBuf>) {
        lock(&self.relied).extend(paths.cloned());
    }

    /// Looks at the scripts of `root`, unless that was done before the load.
    pub(super) fn look_at_scripts(&mut self, root: &Path) {
        if !self.looks.scripts.contains_key(&super::discover::scripts_folder(root)) {
            super::discover::look_at_scripts(root, &mut self.looks);
        }
    }

    /// What is at `path`, for this load.
    pub(super) fn look(&self, path: &Path) -> Option<FileLook> {
        match self.looks.of(path) {
            Known::There(look) => Some(look),
            Known::Absent => None,
            Known::Unknown => {
                *lock(&self.met).entry(path.to_owned()).or_insert_with_key(|path| FileLook::at(path))
            }
        }
    }

    /// The files that were not as they looked when they were read, or are not as they looked now, but for those that
    /// are held.
    pub(super) fn torn(&self) -> Vec<PathBuf> {
        let mut torn = std::mem::take(&mut *lock(&self.torn));
        let relied = lock(&self.relied);
        let is_other = |path: &&PathBuf| !self.held.contains(*path) && FileLook::at(path) != self.look(path);
        torn.extend(relied.iter().filter(is_other).cloned());
        torn
    }

    /// What the file at `path` holds, made by `make` where that is another than before or `fits` says no.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn read<T: OfBytes>(
        &self,
        files: &Files<T>,
        path: &Path,
        fits: impl Fn(&T) -> bool,
        make: impl FnOnce(Vec<u8>) -> T,
    ) -> std::io::Result<Arc<T>> {
        if self.held.contains(path) {
            return Err(std::io::Error::other("it is being written"));
        }
        let look = self.look(path);
        let slot = files.slot(path);
        let mut slot = lock(&slot);
        slot.used = self.round;
        let kept = slot.kept.as_ref().filter(|kept| Some(kept.look) == look && fits(&kept.value));
        if let Some(kept) = kept {
            return Ok(Arc::clone(&kept.value));
        }
        self.rely_on(std::iter::once(&path.to_owned()));
        let at = SystemTime::now();
        let read = read_regular(path, T::MOST).and_then(|read| {
            let bytes = refuse_huge(read.bytes)?;
            Ok(ReadFile { bytes, ..read })
        });
        let ReadFile { bytes, look: found, is_whole } = match read {
            Ok(read) => read,
            Err(error) => {
                if slot.kept.take().is_some() {
                    files.has_news.store(true, Ordering::Relaxed);
                }
                return Err(error);
            }
        };
        if !is_whole || Some(found) != look {
            lock(&self.torn).push(path.to_owned());
        }
        let same = slot.kept.take().filter(|kept| kept.value.holds(&bytes));
        if same.is_none() {
            files.has_news.store(true, Ordering::Relaxed);
        }
        let value = match same.filter(|kept| fits(&kept.value)) {
            Some(kept) => kept.value,
            None => Arc::new(make(bytes)),
        };
        slot.kept = Some(Kept { look: found, at, value: Arc::clone(&value) });
        Ok(value)
    }

    /// Of `paths` (`None`: of all files) those that hold other than what was read, though they look the same; they will be
    /// read anew.
    pub(super) fn doubtful(&self, paths: Option<&HashSet<PathBuf>>) -> Vec<PathBuf> {
        let mut different = self.specs.doubtful(paths);
        different.extend(self.scripts.doubtful(paths));
        different
    }

    /// The places that the tools of the last load name, without those that are listed anyway.
    pub(super) fn named(&self) -> Vec<PathBuf> {
        let named: HashSet<&PathBuf> = self.tools.values().flat_map(|kept| &kept.elsewhere).collect();
        named.into_iter().cloned().collect()
    }

    /// Whether the file at `path` is part of what was loaded.
    pub(super) fn has(&self, path: &Path) -> bool {
        lock(&self.specs.slots).contains_key(path) || lock(&self.scripts.slots).contains_key(path)
    }

    /// As if the file had looked as it does when it was read.
    #[cfg(test)]
    pub(super) fn pretend_to_have_read(&self, path: &Path) {
        let slot = self.specs.slot(path);
        let mut slot = lock(&slot);
        if let (Some(kept), Some(look)) = (&mut slot.kept, FileLook::at(path)) {
            kept.look = look;
        }
    }

    /// Files that are not as they were when they were read are read anew.
    pub(super) fn forget(&self, paths: &[PathBuf]) {
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

    fn forget_unused(&self, round: u64) {
        let mut slots = lock(&self.slots);
        let before = slots.len();
        slots.retain(|_, slot| lock(slot).is_used(round));
        if slots.len() != before {
            self.has_news.store(true, Ordering::Relaxed);
        }
    }
}

impl<T: OfBytes> Files<T> {
    fn doubtful(&self, paths: Option<&HashSet<PathBuf>>) -> Vec<PathBuf> {
        let slots = lock(&self.slots);
        let mut different = Vec::new();
        let mut look_again = |path: &PathBuf, slot: &Mutex<Slot<T>>| {
            let mut slot = lock(slot);
            let Some(kept) = slot.kept.as_mut().filter(|kept| kept.is_doubtful()) else { return };
            let at = SystemTime::now();
            let read = read_regular(path, T::MOST);
            match read {
                // Whatever looks otherwise is found by its look.
                Ok(read) if read.look == kept.look && kept.value.holds(&read.bytes) => kept.at = at,
                Ok(read) if read.look == kept.look => {
                    different.push(path.clone());
                    slot.kept = None;
                }
                Ok(_) | Err(_) => {}
            }
        };
        match paths {
            None => slots.iter().for_each(|(path, slot)| look_again(path, slot)),
            Some(paths) => {
                let known = paths.iter().filter_map(|path| slots.get(path).map(|slot| (path, slot)));
                known.for_each(|(path, slot)| look_again(path, slot));
            }
        }
        different
    }
}

/// At most one byte more than a script may have, so that a huge or endless file is refused by its length.
pub(super) const MOST_OF_SCRIPT: u64 = MAX_SOURCE as u64 + 1;
