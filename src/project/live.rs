//! A project held loaded: a thread looks for changes, builds the next generation beside the current one and swaps it
//! in when it is whole.
//!
//! How changes are found and when files are taken is `watch`'s affair. Here it is decided what of a load counts: a tool that
//! is broken stays as it was last good, and one that is gone is removed when it is still gone a second later, since a
//! file that is truncated and written anew may be valid in between. A load that is as the current generation is none.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::cache::lock;
use super::generation::Generation;
use super::hints::Hints;
use super::loader::{Loader, Wanted};
use super::watch::{Watched, keep_watching, load_first};
use super::{Load, LoadOptions, ProjectError, find_root};

/// From the first look without a tool to the one that removes it.
const REMOVAL: Duration = Duration::from_secs(1);

/// Told of every reload, on the watching thread: the new generation, or why there is none.
pub type Listener = Box<dyn Fn(Result<&Generation, &ProjectError>) + Send>;

/// A project whose newest generation can be had at any time.
#[derive(Debug)]
pub struct LiveProject {
    state: Arc<Mutex<State>>,
    /// Ended with the project.
    hints: Arc<Hints>,
}

#[derive(Debug)]
struct State {
    current: Arc<Generation>,
    /// Number and changes of the newest generations, oldest first.
    history: VecDeque<(u64, String)>,
    /// Why the last load failed.
    error: Option<String>,
}

/// How many generations are remembered by what they changed.
const MAX_HISTORY: usize = 32;

impl LiveProject {
    /// Loads the project around `root` and keeps it loaded; names in messages are relative to `from`.
    ///
    /// # Errors
    /// When the first load fails.
    pub fn open(root: &Path, from: &Path, listener: Option<Listener>) -> Result<Self, ProjectError> {
        let started = Instant::now();
        let options = LoadOptions { with_scripts: true, ..LoadOptions::default() };
        let mut loader = Loader::new(Wanted::Project(find_root(root)?), from, options);
        let current = Arc::new(Generation::first(load_first(&mut loader)?, started));
        loader.keep_going();
        let state = Arc::new(Mutex::new(State { current, history: VecDeque::new(), error: None }));
        let hints = Arc::<Hints>::default();
        let mut watching = Watching { state: Arc::downgrade(&state), listener, missing: HashMap::new() };
        let hinted = Arc::clone(&hints);
        let spawned = std::thread::Builder::new()
            .name(String::from("deftool-watch"))
            .spawn(move || keep_watching(&mut watching, loader, &hinted));
        if let Err(error) = spawned {
            // The first generation still serves; it only stays as it is.
            tracing::warn!(%error, "cannot watch the project");
        }
        Ok(Self { state, hints })
    }

    /// The newest generation.
    pub fn current(&self) -> Arc<Generation> {
        Arc::clone(&lock(&self.state).current)
    }

    /// Why the project on disk cannot be loaded now; the newest generation is older than that.
    pub fn error(&self) -> Option<String> {
        lock(&self.state).error.clone()
    }

    /// Looks for changes now, instead of when it would, and waits until what is found is taken; at most `patience`.
    pub fn refresh(&self, patience: Duration) {
        self.hints.look_now(patience);
    }

    /// What the generations after `generation` changed, for a person.
    pub fn changes_since(&self, generation: u64) -> String {
        let state = lock(&self.state);
        let later = state.history.iter().filter(|(number, _)| *number > generation);
        later.map(|(_, changes)| changes.as_str()).collect::<Vec<_>>().join("; then ")
    }
}

impl Drop for LiveProject {
    fn drop(&mut self) {
        self.hints.end();
    }
}

/// The project as its thread holds it: it goes when nobody else holds it.
struct Watching {
    state: Weak<Mutex<State>>,
    listener: Option<Listener>,
    /// Tools of the current generation that the last load lacks, with the time from which they are gone.
    missing: HashMap<String, Instant>,
}

impl Watched for Watching {
    fn loaded(&mut self, loaded: Result<Load, ProjectError>, started: Instant) -> ControlFlow<()> {
        let Some(state) = self.state.upgrade() else { return ControlFlow::Break(()) };
        let before = Arc::clone(&lock(&state).current);
        let load = match loaded {
            Ok(load) => load,
            Err(error) => {
                let message = error.to_string();
                let former = lock(&state).error.replace(message.clone());
                if former.as_ref() != Some(&message) {
                    self.tell(Err(&error));
                }
                return ControlFlow::Continue(());
            }
        };
        let was_failing = lock(&state).error.take().is_some();
        let now = Instant::now();
        let missing = &self.missing;
        let is_gone = |name: &str| missing.get(name).is_some_and(|gone| *gone <= now);
        let (next, missing) = Generation::after(&before, load, started, is_gone);
        let since = |name: String| {
            let gone = self.missing.get(&name).copied().unwrap_or(now + REMOVAL);
            (name, gone)
        };
        self.missing = missing.into_iter().map(since).collect();
        // What is missing may be back in a moment.
        let is_same = if self.missing.is_empty() { next.is_as(&before) } else { next.has_tools_of(&before) };
        if is_same && !was_failing {
            return ControlFlow::Continue(());
        }
        let next = Arc::new(next);
        {
            let mut state = lock(&state);
            state.current = Arc::clone(&next);
            state.history.push_back((next.number, next.describe()));
            if state.history.len() > MAX_HISTORY {
                state.history.pop_front();
            }
        }
        self.tell(Ok(&next));
        ControlFlow::Continue(())
    }

    fn due(&self) -> Option<Instant> {
        self.missing.values().min().copied()
    }
}

impl Watching {
    fn tell(&self, loaded: Result<&Generation, &ProjectError>) {
        if let Some(listener) = &self.listener {
            listener(loaded);
        }
    }
}
