//! Files looked at again and again, and a load made anew whenever one of them is another.
//!
//! The operating system's events are hints only, and many are missed; what counts is a look at every file's size,
//! time and inode, on a hint and every second. A file is taken when two looks find the same, or
//! after a quarter of a second of being written on and on.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use notify::{RecursiveMode, Watcher};

use super::discover::{scripts_in, tests_in};
use super::scripts::script_places;
use super::{Input, Load, LoadOptions, LoadedTool, ProjectError, load_with, resolve_inputs};

/// From a hint to the second look: editors write in several steps.
const DEBOUNCE: Duration = Duration::from_millis(40);
/// The longest wait for a file that is written on and on.
const MAX_DEBOUNCE: Duration = Duration::from_millis(250);
/// Between looks without a hint.
const SWEEP: Duration = Duration::from_secs(1);

/// What is held loaded.
pub(super) trait Watched {
    /// The files that are looked at whatever was loaded.
    fn listed(&self) -> Vec<PathBuf>;

    /// The places that are looked at because of what was loaded: where the scripts of its tools are looked for.
    fn named(&self) -> Vec<PathBuf>;

    /// Loads anew; breaks off when nobody wants that any more.
    fn reload(&mut self) -> ControlFlow<()>;

    /// Tells of what was loaded, once that is watched; breaks off likewise.
    fn tell(&mut self) -> ControlFlow<()>;

    /// What the files look like now.
    fn look(&self) -> Looks {
        Looks::at(self.listed(), self.named())
    }
}

/// Loads anew whenever what is found is other than what was `seen`, until `watched` breaks off or nobody can send hints
/// any more.
pub(super) fn keep_watching(watched: &mut impl Watched, mut seen: Looks, hinted: &Receiver<()>) {
    while hinted.recv_timeout(SWEEP) != Err(RecvTimeoutError::Disconnected) {
        let found = watched.look();
        if found == seen {
            continue;
        }
        let found = settle(found, || watched.look());
        if watched.reload().is_break() {
            return;
        }
        seen = found.loaded(watched.named());
        if watched.tell().is_break() {
            return;
        }
    }
}

/// Loads what `paths` mean, seen from `folder`, and loads it again whenever one of its files is another, until `told`
/// breaks off. Names in messages are relative to `from`. Files of no project are looked at every second.
///
/// # Errors
/// When the first load fails; a later failure is told.
pub fn keep_loading(
    paths: &[PathBuf],
    folder: &Path,
    from: &Path,
    options: &LoadOptions,
    told: impl FnMut(Result<&Load, &ProjectError>) -> ControlFlow<()>,
) -> Result<(), ProjectError> {
    let inputs = resolve_inputs(paths, folder)?;
    let found = Looks::at(listed(&inputs), Vec::new());
    let loaded = load_with(&inputs, from, options)?;
    let roots: Vec<PathBuf> = inputs.into_iter().filter_map(|input| input.root).collect();
    // Held here, so that there are looks without a watcher, too.
    let (hints, hinted) = sync_channel(1);
    let _watcher = watch(&roots, hints.clone());
    let seen = found.loaded(named(&loaded));
    let mut watched = Inputs { paths, folder, from, options, loaded, failed: None, told };
    if watched.tell().is_continue() {
        keep_watching(&mut watched, seen, &hinted);
    }
    drop(hints);
    Ok(())
}

/// What some paths mean, as it was last loaded.
struct Inputs<'a, T> {
    paths: &'a [PathBuf],
    folder: &'a Path,
    from: &'a Path,
    options: &'a LoadOptions,
    loaded: Load,
    /// Why there is nothing newer.
    failed: Option<ProjectError>,
    told: T,
}

impl<T: FnMut(Result<&Load, &ProjectError>) -> ControlFlow<()>> Watched for Inputs<'_, T> {
    fn listed(&self) -> Vec<PathBuf> {
        listed(&resolve_inputs(self.paths, self.folder).unwrap_or_default())
    }

    fn named(&self) -> Vec<PathBuf> {
        named(&self.loaded)
    }

    fn reload(&mut self) -> ControlFlow<()> {
        let inputs = resolve_inputs(self.paths, self.folder);
        match inputs.and_then(|inputs| load_with(&inputs, self.from, self.options)) {
            Ok(next) => (self.loaded, self.failed) = (next, None),
            Err(error) => self.failed = Some(error),
        }
        ControlFlow::Continue(())
    }

    fn tell(&mut self) -> ControlFlow<()> {
        (self.told)(self.failed.as_ref().map_or(Ok(&self.loaded), Err))
    }
}

/// The files of `inputs`, those that say something about them, and all scripts beside them.
pub(super) fn listed(inputs: &[Input]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for input in inputs {
        files.extend(input.files.iter().chain(&input.scripts).cloned());
        files.extend(input.around().unwrap_or_default());
        files.extend(input.root.iter().flat_map(|root| scripts_in(root)));
        files.extend(input.root.iter().flat_map(|root| tests_in(root)));
    }
    files
}

/// Where the scripts of a load's tools are looked for.
pub(super) fn named(loaded: &Load) -> Vec<PathBuf> {
    let places = |tool: &LoadedTool| Some(script_places(loaded.root_of(tool.tool.source)?, &tool.tool));
    loaded.tools.iter().filter_map(places).flatten().collect()
}

/// Sends a hint whenever something may have changed in the specs and scripts of `roots`.
pub(super) fn watch(roots: &[PathBuf], hints: SyncSender<()>) -> Option<notify::RecommendedWatcher> {
    let handler = move |event: notify::Result<notify::Event>| {
        // Our own reading is an event, too.
        let is_access = matches!(&event, Ok(event) if event.kind.is_access());
        if !is_access {
            let _ = hints.try_send(());
        }
    };
    let mut watcher = notify::recommended_watcher(handler).ok()?;
    // Without a working watch the sweep still finds everything, a little later.
    for folder in roots.iter().flat_map(|root| ["specs", "scripts"].map(|folder| root.join(folder))) {
        let _ = watcher.watch(&folder, RecursiveMode::Recursive);
    }
    Some(watcher)
}

/// Files by what they looked like.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Looks(BTreeMap<PathBuf, Look>);

/// What was found at a place.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    /// Whether it is looked at whatever was loaded.
    is_listed: bool,
    file: Option<FileLook>,
}

/// What a file looked like.
#[derive(Debug, PartialEq, Eq)]
struct FileLook {
    size: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl Looks {
    /// What is there now.
    pub(super) fn at(listed: Vec<PathBuf>, named: Vec<PathBuf>) -> Self {
        let mut looks = Self(BTreeMap::new());
        for (paths, is_listed) in [(listed, true), (named, false)] {
            for path in paths {
                looks.0.entry(path).or_insert_with_key(|path| Look { is_listed, file: FileLook::at(path) });
            }
        }
        looks
    }

    /// What was seen of all that counts after a load that names `named`. It is what was found before loading, so that
    /// whatever has come since is different from it; only of places that this load is the first to name there was no
    /// look before.
    pub(super) fn loaded(mut self, named: Vec<PathBuf>) -> Self {
        let places: HashSet<&PathBuf> = named.iter().collect();
        self.0.retain(|path, look| look.is_listed || places.contains(path));
        for path in named {
            self.0.entry(path).or_insert_with_key(|path| Look { is_listed: false, file: FileLook::at(path) });
        }
        self
    }
}

impl FileLook {
    fn at(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self { size: metadata.len(), modified: metadata.modified().ok(), inode: inode(&metadata) })
    }
}

/// What is found when two looks find the same, so that no half-written file is taken; what is written without a pause
/// is taken as it is in the end.
fn settle(mut found: Looks, look: impl Fn() -> Looks) -> Looks {
    let first_look = Instant::now();
    loop {
        std::thread::sleep(DEBOUNCE);
        let again = look();
        let is_settled = again == found;
        found = again;
        if is_settled || first_look.elapsed() >= MAX_DEBOUNCE {
            return found;
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}
