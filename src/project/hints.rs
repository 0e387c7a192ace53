//! What the operating system says of changes: that something may be another, and whether a file that was written is closed.
//!
//! Hints only. Many are missed: of a folder that is new, of what a link leads to, of file systems that are not local. What
//! counts is what a look around finds (`look`); a file that is known to be closed after writing is only taken sooner.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecursiveMode, Watcher};

use super::cache::lock;
use super::look::{Folder, FolderId, Looks};

/// After the last hint: one save is several of them, and several files are often saved together.
const QUIET: Duration = Duration::from_millis(10);
/// After the first one, where they do not end.
const MAX_QUIET: Duration = Duration::from_millis(40);
/// Of more files than this it is not remembered how they were written.
const MAX_WRITES: usize = 10_000;

/// How a file was last seen to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    /// Whoever writes it is not done.
    Open,
    /// It was closed after writing.
    Closed,
    /// It came here whole, by another name.
    Moved,
    /// It was made anew, or is gone.
    Unknown,
}

/// What hints wait in until someone looks.
#[derive(Debug, Default)]
pub(super) struct Hints {
    state: Mutex<State>,
    told: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The first and the last hint since the last look.
    hinted: Option<(Instant, Instant)>,
    told: Told,
    /// In these folders only some entries count.
    names: HashMap<PathBuf, HashSet<OsString>>,
    /// How often a look was asked for, and which of these were answered.
    asked: u64,
    answered: u64,
    has_ended: bool,
}

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// How files were written.
    pub(super) writes: HashMap<PathBuf, Write>,
    /// What something happened to.
    pub(super) touched: HashSet<PathBuf>,
    /// Whether there may be more than that.
    pub(super) is_vague: bool,
    /// The newest look that was asked for.
    pub(super) asked: u64,
}

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    Hinted,
    Due,
    /// Nobody wants to know any more.
    Ended,
}

impl Hints {
    /// Waits until something was hinted at and it was quiet for a moment, at most `until` nothing was.
    pub(super) fn wait(&self, until: Instant) -> Woken {
        let mut state = lock(&self.state);
        loop {
            if state.has_ended {
                return Woken::Ended;
            }
            let now = Instant::now();
            let due = match state.hinted {
                Some((first, last)) => (last + QUIET).min(first + MAX_QUIET),
                None => until,
            };
            if now >= due {
                let was_hinted = state.hinted.take().is_some();
                return if was_hinted { Woken::Hinted } else { Woken::Due };
            }
            let waited = self.told.wait_timeout(state, due - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What was told since this was last asked.
    pub(super) fn take(&self) -> Told {
        let mut state = lock(&self.state);
        let asked = state.asked;
        Told { asked, ..std::mem::take(&mut state.told) }
    }

    /// Has everything looked at, and waits until what was found is taken; at most so long.
    pub(super) fn look_now(&self, patience: Duration) {
        let started = Instant::now();
        let mut state = lock(&self.state);
        state.asked += 1;
        let mine = state.asked;
        state.told.is_vague = true;
        state.hinted = Some((started, started));
        self.told.notify_all();
        while state.answered < mine && !state.has_ended {
            let Some(left) = patience.checked_sub(started.elapsed()) else { return };
            state = self.told.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The look that was asked for is done.
    pub(super) fn answer(&self, asked: u64) {
        lock(&self.state).answered = asked;
        self.told.notify_all();
    }

    /// The files among those that are meant that were written since this was last asked, as far as is known.
    pub(super) fn written(&self, is_meant: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let state = lock(&self.state);
        state.told.writes.keys().filter(|path| is_meant(path)).cloned().collect()
    }

    /// Ends every wait, now and later.
    pub(super) fn end(&self) {
        lock(&self.state).has_ended = true;
        self.told.notify_all();
    }

    fn tell(&self, event: notify::Result<Event>) {
        let mut state = lock(&self.state);
        match event {
            Ok(event) if !event.need_rescan() && !event.paths.is_empty() => {
                let write = match event.kind {
                    EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Write::Closed),
                    // Our own reading is an event, too.
                    EventKind::Access(_) => return,
                    EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some(Write::Moved),
                    EventKind::Modify(ModifyKind::Data(_)) => Some(Write::Open),
                    // Another file from now on, or none.
                    EventKind::Create(_)
                    | EventKind::Remove(_)
                    | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Some(Write::Unknown),
                    EventKind::Any | EventKind::Modify(_) | EventKind::Other => None,
                };
                let counted: Vec<PathBuf> =
                    event.paths.into_iter().filter(|path| state.counts(path)).collect();
                if counted.is_empty() {
                    return;
                }
                for path in counted {
                    state.told.add(path, write);
                }
            }
            // What went wrong with watching is a reason to look.
            Ok(_) | Err(_) => state.told.is_vague = true,
        }
        let now = Instant::now();
        state.hinted = Some((state.hinted.map_or(now, |(first, _)| first), now));
        self.told.notify_all();
    }
}

impl Told {
    fn add(&mut self, path: PathBuf, write: Option<Write>) {
        if self.touched.len() >= MAX_WRITES {
            *self = Self { is_vague: true, ..Self::default() };
        }
        if let Some(write) = write {
            self.writes.insert(path.clone(), write);
        }
        self.touched.insert(path);
    }
}

impl State {
    fn counts(&self, path: &Path) -> bool {
        let names = path.parent().and_then(|folder| self.names.get(folder));
        names.is_none_or(|names| path.file_name().is_some_and(|name| names.contains(name)))
    }
}

/// The folders that the operating system watches for us.
pub(super) struct Watches {
    hints: Arc<Hints>,
    /// Without a watcher that works, looking every second still finds everything, a little later.
    watcher: Option<notify::RecommendedWatcher>,
    watched: HashMap<PathBuf, FolderId>,
}

impl Watches {
    pub(super) fn new(hints: &Arc<Hints>) -> Self {
        let told = Arc::clone(hints);
        let watcher = notify::recommended_watcher(move |event| told.tell(event)).ok();
        Self { hints: Arc::clone(hints), watcher, watched: HashMap::new() }
    }

    /// Waits until everything that happened before is told.
    pub(super) fn catch_up(&mut self) {
        // Each is answered by the thread that tells, which reads all events that there are in between.
        for _ in 0..2 {
            let _ = self.watcher.as_mut().map(|watcher| watcher.configure(notify::Config::default()));
        }
    }

    /// Watches the folders of `looks` and no other. Whether there are new ones, in which something may have happened
    /// between the look and the watch.
    pub(super) fn follow(&mut self, looks: &Looks) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let is_same = self.watched.len() == looks.folders.len()
            && looks.folders.iter().all(|(path, folder)| self.watched.get(path) == Some(&folder.id));
        if !is_same {
            // The operating system knows a folder by one name only.
            let mut names: HashMap<FolderId, &PathBuf> = HashMap::new();
            for (path, folder) in &looks.folders {
                let name = names.entry(folder.id).or_insert(path);
                // Of the names of one folder that under which all of it counts.
                if folder.names.is_none() || self.watched.contains_key(path) {
                    *name = path;
                }
            }
            let is_wanted = |path: &PathBuf, id: FolderId| names.get(&id) == Some(&path);
            let gone = self.watched.extract_if(|path, id| !is_wanted(path, *id));
            for (path, _) in gone {
                let _ = watcher.unwatch(&path);
            }
        }
        self.set_names(looks);
        if is_same {
            return false;
        }
        let mut has_new = false;
        for (path, folder) in &looks.folders {
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

    fn set_names(&self, looks: &Looks) {
        let some = |(path, folder): (&PathBuf, &Folder)| Some((path.clone(), folder.names.clone()?));
        let names: HashMap<_, _> = looks.folders.iter().filter_map(some).collect();
        let mut state = lock(&self.hints.state);
        if state.names != names {
            state.names = names;
        }
    }
}
