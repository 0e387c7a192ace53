//! A project held loaded: a thread looks for changes, builds the next generation beside the current one and swaps it
//! in when it is whole.
//!
//! How changes are found is `watch`'s affair.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::generation::Generation;
use super::scripts::script_places;
use super::watch::{Looks, SWEEP, look_at, scripts_in, settle, watch};
use super::{ProjectError, resolve_inputs};

/// Told of every reload, on the watching thread: the new generation, or why there is none.
pub type Listener = Box<dyn Fn(Result<&Generation, &ProjectError>) + Send>;

/// A project whose newest generation can be had at any time.
#[derive(Debug)]
pub struct LiveProject {
    state: Arc<Mutex<State>>,
    /// Dropped with the project; the thread ends when nobody can send any more.
    _hints: SyncSender<()>,
    _watcher: Option<notify::RecommendedWatcher>,
}

#[derive(Debug)]
struct State {
    current: Arc<Generation>,
    /// Number and changes of the newest generations, oldest first.
    history: VecDeque<(u64, String)>,
}

/// How many generations are remembered by what they changed.
const MAX_HISTORY: usize = 32;

impl LiveProject {
    /// Loads the project at `root` and keeps it loaded; names in messages are relative to `from`.
    ///
    /// # Errors
    /// When the first load fails.
    pub fn open(root: &Path, from: &Path, listener: Option<Listener>) -> Result<Self, ProjectError> {
        let listed = look(root, None);
        let current = Arc::new(Generation::load(root, from, None)?);
        let mut seen = look(root, Some(&current));
        seen.extend(listed);
        let state = Arc::new(Mutex::new(State { current, history: VecDeque::new() }));
        // One hint that waits says as much as many.
        let (hints, hinted) = sync_channel(1);
        let watcher = watch(&[root.to_owned()], hints.clone());
        let watched = Watched {
            root: root.to_owned(),
            from: from.to_owned(),
            state: Arc::downgrade(&state),
            listener,
            seen,
        };
        let spawned = std::thread::Builder::new()
            .name(String::from("deftool-watch"))
            .spawn(move || watched.keep_current(&hinted));
        if let Err(error) = spawned {
            // The first generation still serves; it only stays as it is.
            tracing::warn!(%error, "cannot watch the project");
        }
        Ok(Self { state, _hints: hints, _watcher: watcher })
    }

    /// The newest generation.
    pub fn current(&self) -> Arc<Generation> {
        Arc::clone(&lock(&self.state).current)
    }

    /// What the generations after `generation` changed, for a person.
    pub fn changes_since(&self, generation: u64) -> String {
        let state = lock(&self.state);
        let later = state.history.iter().filter(|(number, _)| *number > generation);
        later.map(|(_, changes)| changes.as_str()).collect::<Vec<_>>().join("; then ")
    }
}

/// What it guards is swapped whole, so that a panic elsewhere leaves nothing half done.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watched {
    root: PathBuf,
    from: PathBuf,
    state: Weak<Mutex<State>>,
    listener: Option<Listener>,
    seen: Looks,
}

impl Watched {
    /// Until the project is dropped.
    fn keep_current(mut self, hints: &Receiver<()>) {
        loop {
            match hints.recv_timeout(SWEEP) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let Some(state) = self.state.upgrade() else { return };
            let generation = Arc::clone(&lock(&state).current);
            let look = || look(&self.root, Some(&generation));
            let found = look();
            if found == self.seen {
                continue;
            }
            let found = settle(found, look);
            if self.state.strong_count() == 1 {
                // Only this thread holds the project.
                return;
            }
            self.reload(&state, &generation);
            // What was seen before loading: whatever has come since is different from it. Only of a script elsewhere in
            // the project, which this generation is the first to name, there was no look before.
            let current = Arc::clone(&lock(&state).current);
            self.seen = self::look(&self.root, Some(&current));
            self.seen.retain(|path, _| !is_listed(&self.root, path));
            self.seen.extend(found);
        }
    }

    fn reload(&self, state: &Mutex<State>, before: &Generation) {
        let loaded = Generation::load(&self.root, &self.from, Some(before)).map(Arc::new);
        if let Ok(next) = &loaded {
            let mut state = lock(state);
            state.current = Arc::clone(next);
            state.history.push_back((next.number, next.describe()));
            if state.history.len() > MAX_HISTORY {
                state.history.pop_front();
            }
        }
        if let Some(listener) = &self.listener {
            listener(loaded.as_deref());
        }
    }
}

/// Whether a file is looked at whatever the specs say.
fn is_listed(root: &Path, path: &Path) -> bool {
    path.starts_with(root.join("specs")) || path.parent() == Some(&root.join("scripts"))
}

/// Every file that the project is made of.
fn look(root: &Path, generation: Option<&Generation>) -> Looks {
    let mut files: Vec<PathBuf> =
        resolve_inputs(&[], root).into_iter().flatten().flat_map(|input| input.files).collect();
    files.extend(scripts_in(root));
    if let Some(generation) = generation {
        files.extend(generation.load.tools.iter().flat_map(|loaded| script_places(root, &loaded.tool)));
    }
    look_at(files)
}
