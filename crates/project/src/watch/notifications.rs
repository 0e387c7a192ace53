//! File change notifications of the operating system.
//!
//! Notifications are only hints. Many are lost: for new folders, for the targets of links, on network file systems.
//! Changes are detected by scans (`snapshot`). An event only triggers a scan sooner, and a close event shortens the
//! debounce delay. Where all changes cause events ([`FolderWatcher::is_reliable`]), scans without an event are rare.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deftool_process::lock;
use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecursiveMode, Watcher};

use super::file_systems::reports_all_changes;
use crate::load::{Folder, FolderId, Snapshot};

/// Delay after the last event. One save causes several events, and several files are often saved together.
const QUIET_PERIOD: Duration = Duration::from_millis(10);

/// Maximum delay after the first event, if events keep arriving.
const MAX_QUIET_PERIOD: Duration = Duration::from_millis(40);

/// Maximum number of files with recorded events. Above it, a full scan is made.
const MAX_WRITES: usize = 10_000;

/// The last known write of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteState {
    /// Open for writing.
    Open,
    /// Closed after writing.
    Closed,
    /// Moved here from another path, so it is complete.
    Moved,
    /// Created or removed.
    Unknown,
}

/// A queue of file change notifications.
#[derive(Debug, Default)]
pub(super) struct FileEvents {
    state: Mutex<State>,
    wakeup: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The times of the first and the last event since the last wakeup.
    event_times: Option<(Instant, Instant)>,
    batch: EventBatch,
    /// Folders in which only these entries are relevant.
    names: HashMap<PathBuf, HashSet<OsString>>,
    /// The number of requested rescans, and the number of the latest completed one.
    requested: u64,
    completed: u64,
    is_closed: bool,
}

/// The events since the last batch.
#[derive(Debug, Default)]
pub(super) struct EventBatch {
    /// The last known write state by path.
    pub(super) writes: HashMap<PathBuf, WriteState>,
    /// All paths with an event.
    pub(super) touched: HashSet<PathBuf>,
    /// Whether events may be missing.
    pub(super) is_incomplete: bool,
    /// The number of the latest rescan request.
    pub(super) requested: u64,
}

/// The reason for a wakeup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wakeup {
    Event,
    Timeout,
    /// The watcher was stopped.
    Closed,
}

impl FileEvents {
    /// Creates a queue for the events of some files of a folder.
    pub(super) fn of_files(folder: &Path, names: impl IntoIterator<Item = OsString>) -> Self {
        let names = HashMap::from([(folder.to_owned(), names.into_iter().collect())]);
        Self { state: Mutex::new(State { names, ..State::default() }), wakeup: Condvar::new() }
    }

    /// Waits until an event has arrived and no more follow for a short time, at most until `until`.
    pub(super) fn wait(&self, until: Instant) -> Wakeup {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return Wakeup::Closed;
            }
            let now = Instant::now();
            let due = match state.event_times {
                Some((first, last)) => (last + QUIET_PERIOD).min(first + MAX_QUIET_PERIOD),
                None => until,
            };
            if now >= due {
                let had_events = state.event_times.take().is_some();
                return if had_events { Wakeup::Event } else { Wakeup::Timeout };
            }
            let waited = self.wakeup.wait_timeout(state, due - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes the events since the last call.
    pub(super) fn take(&self) -> EventBatch {
        let mut state = lock(&self.state);
        let requested = state.requested;
        EventBatch { requested, ..std::mem::take(&mut state.batch) }
    }

    /// Requests a full rescan and waits until its changes are loaded, at most for `timeout`.
    pub(super) fn rescan_now(&self, timeout: Duration) {
        let started = Instant::now();
        let mut state = lock(&self.state);
        state.requested += 1;
        let mine = state.requested;
        state.event_times = Some((started, started));
        self.wakeup.notify_all();
        while state.completed < mine && !state.is_closed {
            let Some(left) = timeout.checked_sub(started.elapsed()) else { return };
            state = self.wakeup.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Marks a requested rescan as complete.
    pub(super) fn complete_rescan(&self, requested: u64) {
        lock(&self.state).completed = requested;
        self.wakeup.notify_all();
    }

    /// Returns the relevant files with a known write since the last batch.
    pub(super) fn written_files(&self, is_relevant: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let state = lock(&self.state);
        state.batch.writes.keys().filter(|path| is_relevant(path)).cloned().collect()
    }

    /// Ends all current and future waits.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.wakeup.notify_all();
    }

    /// Adds an event.
    pub(super) fn record(&self, event: notify::Result<Event>) {
        let mut state = lock(&self.state);
        match event {
            Ok(event) if !event.need_rescan() && !event.paths.is_empty() => {
                let write = match event.kind {
                    EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(WriteState::Closed),
                    // Reading a file also causes an event.
                    EventKind::Access(_) => return,
                    EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some(WriteState::Moved),
                    EventKind::Modify(ModifyKind::Data(_)) => Some(WriteState::Open),
                    // The path now refers to a different file, or to no file.
                    EventKind::Create(_)
                    | EventKind::Remove(_)
                    | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Some(WriteState::Unknown),
                    EventKind::Any | EventKind::Modify(_) | EventKind::Other => None,
                };
                let watched: Vec<PathBuf> =
                    event.paths.into_iter().filter(|path| state.is_watched(path)).collect();
                if watched.is_empty() {
                    return;
                }
                for path in watched {
                    state.batch.add(path, write);
                }
            }
            // Rescan after a watcher error.
            Ok(_) | Err(_) => state.batch.is_incomplete = true,
        }
        let now = Instant::now();
        state.event_times = Some((state.event_times.map_or(now, |(first, _)| first), now));
        self.wakeup.notify_all();
    }
}

impl EventBatch {
    fn add(&mut self, path: PathBuf, write: Option<WriteState>) {
        if self.touched.len() >= MAX_WRITES {
            *self = Self { is_incomplete: true, ..Self::default() };
        }
        if let Some(write) = write {
            self.writes.insert(path.clone(), write);
        }
        self.touched.insert(path);
    }
}

impl State {
    fn is_watched(&self, path: &Path) -> bool {
        let names = path.parent().and_then(|folder| self.names.get(folder));
        names.is_none_or(|names| path.file_name().is_some_and(|name| names.contains(name)))
    }
}

/// Watches folders with the operating system's API.
pub(super) struct FolderWatcher {
    events: Arc<FileEvents>,
    /// `None` if the watcher could not be created. The regular scan still finds all changes, only later.
    watcher: Option<notify::RecommendedWatcher>,
    watched: HashMap<PathBuf, FolderId>,
    /// Whether a change was found that no event reported, and no event has arrived since.
    pub(super) is_silent: bool,
}

impl FolderWatcher {
    pub(super) fn new(events: &Arc<FileEvents>) -> Self {
        let recorder = Arc::clone(events);
        let watcher = notify::recommended_watcher(move |event| recorder.record(event)).ok();
        Self { events: Arc::clone(events), watcher, watched: HashMap::new(), is_silent: false }
    }

    /// Waits until all earlier events are recorded.
    pub(super) fn flush(&mut self) {
        // The event thread answers `configure` and reads all pending events in between.
        for _ in 0..2 {
            let _ = self.watcher.as_mut().map(|watcher| watcher.configure(notify::Config::default()));
        }
    }

    /// Ends the watches of folders with an event, so that [`watch_folders`](Self::watch_folders) starts them again.
    /// `notify` drops the watch of a path when its folder is removed or moved, even if the path already names another
    /// folder. Returns whether watches ended, or events may be missing: a full scan is then necessary.
    pub(super) fn end_outdated(&mut self, batch: &EventBatch) -> bool {
        self.is_silent &= batch.touched.is_empty();
        let is_outdated = |path: &PathBuf| batch.is_incomplete || batch.touched.contains(path);
        let outdated: Vec<PathBuf> = self.watched.keys().filter(|path| is_outdated(path)).cloned().collect();
        for path in &outdated {
            self.watched.remove(path);
            let _ = self.watcher.as_mut().map(|watcher| watcher.unwatch(path));
        }
        batch.is_incomplete || !outdated.is_empty()
    }

    /// Returns whether every change of a file in `snapshot` causes an event.
    pub(super) fn is_reliable(&self, snapshot: &Snapshot) -> bool {
        let watched: HashSet<&FolderId> = self.watched.values().collect();
        let is_reliable =
            |(path, folder): (&PathBuf, &Folder)| watched.contains(&folder.id) && reports_all_changes(path);
        !self.is_silent && !snapshot.has_hidden_changes && snapshot.folders.iter().all(is_reliable)
    }

    /// Watches exactly the folders of `snapshot`. Returns whether folders were added: their files may have changed
    /// between the scan and the start of the watch.
    pub(super) fn watch_folders(&mut self, snapshot: &Snapshot) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let is_same = self.watched.len() == snapshot.folders.len()
            && snapshot.folders.iter().all(|(path, folder)| self.watched.get(path) == Some(&folder.id));
        if !is_same {
            // The operating system watches a folder under one name only.
            let mut names: HashMap<FolderId, &PathBuf> = HashMap::new();
            for (path, folder) in &snapshot.folders {
                let name = names.entry(folder.id).or_insert(path);
                // If a folder has several names, prefer a name that covers all of its entries or is already watched.
                if folder.names.is_none() || self.watched.contains_key(path) {
                    *name = path;
                }
            }
            let is_preferred = |path: &PathBuf, id: FolderId| names.get(&id) == Some(&path);
            let gone = self.watched.extract_if(|path, id| !is_preferred(path, *id));
            for (path, _) in gone {
                let _ = watcher.unwatch(&path);
            }
        }
        self.set_names(snapshot);
        if is_same {
            return false;
        }
        let mut has_new = false;
        for (path, folder) in &snapshot.folders {
            if !self.watched.values().any(|id| *id == folder.id)
                && let Some(watcher) = &mut self.watcher
                && watcher.watch(path, RecursiveMode::NonRecursive).is_ok()
            {
                self.watched.insert(path.clone(), folder.id);
                has_new = true;
            }
        }
        has_new
    }

    fn set_names(&self, snapshot: &Snapshot) {
        let some = |(path, folder): (&PathBuf, &Folder)| Some((path.clone(), folder.names.clone()?));
        let names: HashMap<_, _> = snapshot.folders.iter().filter_map(some).collect();
        let mut state = lock(&self.events.state);
        if state.names != names {
            state.names = names;
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::loader::{LoadTarget, Loader};
    use super::*;
    use crate::model::LoadOptions;

    fn write(root: &Path, name: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    fn snapshot_of(root: &Path) -> Arc<Snapshot> {
        let options = LoadOptions { with_scripts: true, ..LoadOptions::default() };
        Loader::new(LoadTarget::Project(root.to_owned()), root, options).scan().snapshot
    }

    #[test]
    fn a_folder_in_the_place_of_another_is_watched() {
        let folder = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(folder.path()).unwrap();
        let (root, script) = (place.join("root"), place.join("root/scripts/a.lua"));
        write(&root, "specs/a.eld");
        write(&root, "scripts/a.lua");
        let events = Arc::<FileEvents>::default();
        let mut watcher = FolderWatcher::new(&events);
        assert!(watcher.watch_folders(&snapshot_of(&root)));
        let next_batch = |watcher: &mut FolderWatcher| {
            assert_eq!(events.wait(Instant::now() + Duration::from_secs(300)), Wakeup::Event);
            watcher.flush();
            events.take()
        };
        for number in 0..3 {
            fs::rename(root.join("scripts"), place.join(format!("old-{number}"))).unwrap();
            write(&root, "scripts/a.lua");
            let batch = next_batch(&mut watcher);
            assert!(watcher.end_outdated(&batch));
            assert!(watcher.watch_folders(&snapshot_of(&root)));
            events.take();
            write(&root, "scripts/a.lua");
            let batch = next_batch(&mut watcher);
            assert!(batch.touched.contains(&script) && !watcher.end_outdated(&batch), "{batch:?}");
        }
    }

    #[test]
    fn too_many_changes_are_replaced_by_a_scan() {
        let mut batch = EventBatch::default();
        for number in 0..=MAX_WRITES {
            assert!(!batch.is_incomplete && batch.touched.len() == number);
            batch.add(PathBuf::from(number.to_string()), None);
        }
        assert!(batch.is_incomplete && batch.touched.len() == 1);
    }

    /// Changes a project and a folder outside of it.
    type SetUp = fn(&Path, &Path);

    #[test]
    fn links_and_other_names_hide_changes() {
        let setups: [(&str, SetUp, bool); 6] = [
            ("plain files", |_, _| {}, false),
            ("no folder of scripts", |root, _| fs::remove_dir_all(root.join("scripts")).unwrap(), false),
            (
                "link to a file",
                |root, other| symlink(other.join("b.eld"), root.join("specs/b.eld")).unwrap(),
                true,
            ),
            ("link to a folder", |root, other| symlink(other, root.join("specs/other")).unwrap(), true),
            (
                "second name of a file",
                |root, other| fs::hard_link(root.join("scripts/a.lua"), other.join("c")).unwrap(),
                true,
            ),
            (
                "link above the project",
                |root, other| {
                    fs::rename(root, other.join("root")).unwrap();
                    symlink(other, root.with_file_name("link")).unwrap();
                },
                true,
            ),
        ];
        for (what, set_up, is_hidden) in setups {
            let folder = tempfile::tempdir().unwrap();
            let place = fs::canonicalize(folder.path()).unwrap();
            let (root, other) = (place.join("root"), place.join("other"));
            if fs::metadata(&place).unwrap().created().is_err() {
                return;
            }
            write(&root, "specs/a.eld");
            write(&root, "scripts/a.lua");
            write(&other, "b.eld");
            set_up(&root, &other);
            let root = if root.exists() { root } else { place.join("link/root") };
            assert_eq!(snapshot_of(&root).has_hidden_changes, is_hidden, "{what}");
        }
    }
}
