//! A project that reloads when its files change. A thread builds the next generation and then replaces the current one.
//!
//! `reload` detects changes and loads the files. This module decides what to keep of a load. A broken tool keeps its
//! last good version. A missing tool is removed after one second, because a file that is truncated and then written may
//! be valid in between. A load without changes is discarded.

mod beside;

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use deftool_lang::spec::ToolSelection;
use deftool_process::lock;

use super::loader::{LoadTarget, Loader};
use super::notifications::FileEvents;
use super::reload::{LoadHandler, load_first, run_watch_loop};
use crate::generation::Generation;
use crate::load::{find_root, read_workers};
use crate::model::{CurrentFolder, Load, LoadOptions, ProjectError};
use beside::Beside;

/// Time between the first load without a tool and its removal.
const REMOVAL_DELAY: Duration = Duration::from_secs(1);

/// A function that the watching thread calls after every reload, with the new generation or the error.
pub type Listener = Box<dyn Fn(Result<&Generation, &ProjectError>) + Send>;

/// A project with access to its latest generation.
#[derive(Debug)]
pub struct LiveProject {
    state: Arc<Mutex<State>>,
    watch: Arc<Watch>,
    /// The user's own project, if its tools are offered, too.
    beside: Option<Beside>,
}

#[derive(Debug)]
struct State {
    current: Arc<Generation>,
    /// Number and changes of the latest generations, oldest first.
    history: VecDeque<(u64, String)>,
    /// The error of the last load, if it failed.
    error: Option<String>,
}

/// Maximum length of the history.
const MAX_HISTORY: usize = 32;

impl LiveProject {
    /// Loads the project that contains `root` and watches it. File names in messages are relative to `from`.
    ///
    /// # Errors
    /// If the first load fails.
    pub fn open(root: &Path, from: &Path, listener: Option<Listener>) -> Result<Self, ProjectError> {
        Self::open_with(&find_root(root)?, from, LoadOptions::default(), listener)
    }

    /// Like [`open`](Self::open), for the user's own project, whose user works in `current`: a file that another user could
    /// have written counts as unreadable.
    ///
    /// # Errors
    /// If the first load fails.
    pub fn open_of_user(
        root: &Path,
        from: &Path,
        current: CurrentFolder,
        listener: Option<Listener>,
    ) -> Result<Self, ProjectError> {
        let options = LoadOptions { user: Some(current), ..LoadOptions::default() };
        Self::open_with(&find_root(root)?, from, options, listener)
    }

    /// Like [`open`](Self::open), with only the tools that one worker may use: the worker called `worker` or, without a
    /// name, the only worker of the project. If there is no such worker, loads all tools.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open_for_worker(root: &Path, from: &Path, worker: Option<&str>) -> Result<Self, ProjectError> {
        let root = find_root(root)?;
        let workers = read_workers(&root, from)?;
        let worker = match (worker, workers.as_slice()) {
            (Some(name), workers) => workers.iter().find(|worker| worker.name.value == name),
            (None, [worker]) => Some(worker),
            (None, _) => None,
        };
        let selection = worker.map(ToolSelection::of_worker).unwrap_or_default();
        Self::open_with(&root, from, LoadOptions { selection, ..LoadOptions::default() }, None)
    }

    fn open_with(
        root: &Path,
        from: &Path,
        options: LoadOptions,
        listener: Option<Listener>,
    ) -> Result<Self, ProjectError> {
        let started = Instant::now();
        let options = LoadOptions { with_scripts: true, ..options };
        let mut loader = Loader::new(LoadTarget::Project(root.to_owned()), from, options);
        let current = Arc::new(Generation::first(load_first(&mut loader)?, started));
        loader.keep_going();
        let state = Arc::new(Mutex::new(State { current, history: VecDeque::new(), error: None }));
        let events = Arc::<FileEvents>::default();
        let mut handler = ReloadHandler { state: Arc::downgrade(&state), listener, missing: HashMap::new() };
        let watch_events = Arc::clone(&events);
        let spawned = std::thread::Builder::new()
            .name(String::from("deftool-watch"))
            .spawn(move || run_watch_loop(&mut handler, loader, &watch_events));
        if let Err(error) = spawned {
            // The first generation stays usable. It is just not reloaded.
            tracing::warn!(%error, "cannot watch the project");
        }
        Ok(Self { state, watch: Arc::new(Watch(events)), beside: None })
    }

    /// Creates a project without files, for a worker outside of a project. It is never reloaded.
    pub fn without_files() -> Self {
        let current = Arc::new(Generation::empty());
        let state = Arc::new(Mutex::new(State { current, history: VecDeque::new(), error: None }));
        Self { state, watch: Arc::default(), beside: None }
    }

    /// Adds the tools of the user's own project ([`Generation::beside`]).
    #[must_use]
    pub fn beside(mut self, user: Arc<Self>) -> Self {
        self.beside = Some(Beside::new(user));
        self
    }

    /// Returns the same project without the tools of the user.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self { state: Arc::clone(&self.state), watch: Arc::clone(&self.watch), beside: None }
    }

    /// Returns the user's own project, if its tools are offered, too.
    pub fn user(&self) -> Option<&Arc<Self>> {
        self.beside.as_ref().map(Beside::user)
    }

    /// Returns the latest generation.
    pub fn current(&self) -> Arc<Generation> {
        let own = || Arc::clone(&lock(&self.state).current);
        self.beside.as_ref().map_or_else(own, |beside| beside.current(own))
    }

    /// Returns why the project on disk cannot be loaded, or that of the user. The current generation is then outdated.
    pub fn error(&self) -> Option<String> {
        let own = lock(&self.state).error.clone();
        own.or_else(|| self.user()?.error())
    }

    /// Scans for changes now and waits until they are loaded, at most for `timeout`.
    pub fn refresh(&self, timeout: Duration) {
        self.watch.0.rescan_now(timeout);
        if let Some(user) = self.user() {
            user.refresh(timeout);
        }
    }

    /// Describes the changes of all generations after `generation`.
    pub fn changes_since(&self, generation: u64) -> String {
        let own = |generation| self.own_changes_since(generation);
        self.beside.as_ref().map_or_else(|| own(generation), |beside| beside.changes_since(generation, own))
    }

    fn own_changes_since(&self, generation: u64) -> String {
        let state = lock(&self.state);
        let later = state.history.iter().filter(|(number, _)| *number > generation);
        later.map(|(_, changes)| changes.as_str()).collect::<Vec<_>>().join("; then ")
    }
}

/// The changes that the watching thread waits for. It ends when all projects with them are dropped.
#[derive(Debug, Default)]
struct Watch(Arc<FileEvents>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The [`LoadHandler`] of the watching thread. The thread ends when the project is dropped.
struct ReloadHandler {
    state: Weak<Mutex<State>>,
    listener: Option<Listener>,
    /// Tools of the current generation that the last load lacks, with the time at which they are removed.
    missing: HashMap<String, Instant>,
}

impl LoadHandler for ReloadHandler {
    fn on_load(&mut self, loaded: Result<Load, ProjectError>, started: Instant) -> ControlFlow<()> {
        let Some(state) = self.state.upgrade() else { return ControlFlow::Break(()) };
        let before = Arc::clone(&lock(&state).current);
        let load = match loaded {
            Ok(load) => load,
            Err(error) => {
                let message = error.to_string();
                let previous = lock(&state).error.replace(message.clone());
                if previous.as_ref() != Some(&message) {
                    self.notify(Err(&error));
                }
                return ControlFlow::Continue(());
            }
        };
        let was_failing = lock(&state).error.take().is_some();
        let now = Instant::now();
        let missing = &self.missing;
        let is_gone = |name: &str| missing.get(name).is_some_and(|removal| *removal <= now);
        let (next, missing) = Generation::after(&before, load, started, is_gone);
        let since = |name: String| {
            let removal = self.missing.get(&name).copied().unwrap_or(now + REMOVAL_DELAY);
            (name, removal)
        };
        self.missing = missing.into_iter().map(since).collect();
        // While tools are missing, differences other than changed tools are ignored: the missing tools may be back
        // soon.
        let is_same =
            if self.missing.is_empty() { next.is_equivalent(&before) } else { next.has_same_tools(&before) };
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
        self.notify(Ok(&next));
        ControlFlow::Continue(())
    }

    fn retry_at(&self) -> Option<Instant> {
        self.missing.values().min().copied()
    }
}

impl ReloadHandler {
    fn notify(&self, loaded: Result<&Generation, &ProjectError>) {
        if let Some(listener) = &self.listener {
            listener(loaded);
        }
    }
}
