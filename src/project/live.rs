//! A project held loaded: a thread looks for changes, builds the next generation beside the current one and swaps it
//! in when it is whole.
//!
//! How changes are found is `watch`'s affair.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::generation::Generation;
use super::watch::{Looks, Watched, keep_watching, listed, named, watch};
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
        let found = Looks::at(listed_in(root), Vec::new());
        let current = Arc::new(Generation::load(root, from, None)?);
        let seen = found.loaded(named(&current.load));
        let state = Arc::new(Mutex::new(State { current, history: VecDeque::new() }));
        // One hint that waits says as much as many.
        let (hints, hinted) = sync_channel(1);
        let watcher = watch(&[root.to_owned()], hints.clone());
        let state_of_thread = Arc::downgrade(&state);
        let mut watched = Watching {
            root: root.to_owned(),
            from: from.to_owned(),
            state: state_of_thread,
            listener,
            newest: None,
        };
        let spawned = std::thread::Builder::new()
            .name(String::from("deftool-watch"))
            .spawn(move || keep_watching(&mut watched, seen, &hinted));
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

/// The project as its thread holds it: it goes when nobody else holds it.
struct Watching {
    root: PathBuf,
    from: PathBuf,
    state: Weak<Mutex<State>>,
    listener: Option<Listener>,
    /// What has to be told of yet.
    newest: Option<Result<Arc<Generation>, ProjectError>>,
}

impl Watched for Watching {
    fn listed(&self) -> Vec<PathBuf> {
        listed_in(&self.root)
    }

    fn named(&self) -> Vec<PathBuf> {
        let current = self.state.upgrade().map(|state| Arc::clone(&lock(&state).current));
        current.map_or_else(Vec::new, |current| named(&current.load))
    }

    fn reload(&mut self) -> ControlFlow<()> {
        let Some(before) = self.state.upgrade().map(|state| Arc::clone(&lock(&state).current)) else {
            return ControlFlow::Break(());
        };
        let loaded = Generation::load(&self.root, &self.from, Some(&before)).map(Arc::new);
        let Some(state) = self.state.upgrade() else { return ControlFlow::Break(()) };
        if let Ok(next) = &loaded {
            let mut state = lock(&state);
            state.current = Arc::clone(next);
            state.history.push_back((next.number, next.describe()));
            if state.history.len() > MAX_HISTORY {
                state.history.pop_front();
            }
        }
        self.newest = Some(loaded);
        ControlFlow::Continue(())
    }

    fn tell(&mut self) -> ControlFlow<()> {
        if let (Some(listener), Some(newest)) = (&self.listener, self.newest.take()) {
            listener(newest.as_deref());
        }
        ControlFlow::Continue(())
    }
}

/// The files of the project at `root`, whatever its specs say.
fn listed_in(root: &Path) -> Vec<PathBuf> {
    listed(&resolve_inputs(&[], root).unwrap_or_default())
}
