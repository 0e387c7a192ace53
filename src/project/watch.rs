//! Files looked at again and again, and a load made anew whenever one of them is another.
//!
//! The operating system's events are hints only, and many are missed; what counts is a look at every file's size,
//! time and inode, on a hint and every second. A file is taken when two looks find the same, or
//! after a quarter of a second of being written on and on.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use notify::{RecursiveMode, Watcher};

use super::discover::is_script;
use super::scripts::script_places;
use super::{Input, Load, LoadOptions, LoadedTool, ProjectError, load_with, resolve_inputs};

/// From a hint to the second look: editors write in several steps.
const DEBOUNCE: Duration = Duration::from_millis(40);
/// The longest wait for a file that is written on and on.
const MAX_DEBOUNCE: Duration = Duration::from_millis(250);
/// Between looks without a hint.
pub(super) const SWEEP: Duration = Duration::from_secs(1);

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
    mut told: impl FnMut(Result<&Load, &ProjectError>) -> ControlFlow<()>,
) -> Result<(), ProjectError> {
    let resolve = || resolve_inputs(paths, folder);
    let inputs = resolve()?;
    let found = look_at(listed(&inputs));
    let mut loaded = load_with(&inputs, from, options)?;
    let mut seen = with_scripts(found, &inputs, &loaded);
    let roots: Vec<PathBuf> = inputs.into_iter().filter_map(|input| input.root).collect();
    let (hints, hinted) = sync_channel(1);
    let _watcher = watch(&roots, hints);
    let mut flow = told(Ok(&loaded));
    while flow.is_continue() {
        // Hints come from the watcher; without one there is a look every second.
        if hinted.recv_timeout(SWEEP) == Err(RecvTimeoutError::Disconnected) {
            std::thread::sleep(SWEEP);
        }
        let look = || {
            let mut files = listed(&resolve().unwrap_or_default());
            files.extend(named_scripts(&loaded));
            look_at(files)
        };
        let found = look();
        if found == seen {
            continue;
        }
        let found = settle(found, look);
        let inputs = resolve();
        let now = inputs.as_deref().unwrap_or_default().to_vec();
        flow = match inputs.and_then(|inputs| load_with(&inputs, from, options)) {
            Ok(next) => {
                loaded = next;
                told(Ok(&loaded))
            }
            Err(error) => told(Err(&error)),
        };
        seen = with_scripts(found, &now, &loaded);
    }
    Ok(())
}

/// What was found before loading, so that whatever has come since is different from it; only of scripts elsewhere, which
/// the load was the first to name, there was no look before.
fn with_scripts(found: Looks, inputs: &[Input], loaded: &Load) -> Looks {
    let listed: HashSet<PathBuf> = listed(inputs).into_iter().collect();
    let mut seen = look_at(named_scripts(loaded).filter(|path| !listed.contains(path)));
    seen.extend(found);
    seen
}

/// The files that are looked at whatever the specs say.
fn listed(inputs: &[Input]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for input in inputs {
        files.extend(input.files.iter().chain(&input.scripts).cloned());
        files.extend(input.around_scripts().unwrap_or_default());
        files.extend(input.root.iter().flat_map(|root| scripts_in(root)));
    }
    files
}

/// Where the scripts of a load's tools are looked for.
fn named_scripts(loaded: &Load) -> impl Iterator<Item = PathBuf> {
    let places = |tool: &LoadedTool| Some(script_places(loaded.roots.get(&tool.tool.source)?, &tool.tool));
    loaded.tools.iter().filter_map(places).flatten()
}

/// The scripts in a project's folder for them, used or not.
pub(super) fn scripts_in(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("scripts"));
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| is_script(path)).collect()
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
pub(super) type Looks = BTreeMap<PathBuf, Look>;

/// What a file looked like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    size: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

/// The files that are there.
pub(super) fn look_at(files: impl IntoIterator<Item = PathBuf>) -> Looks {
    let looks = files.into_iter().filter_map(|path| {
        let metadata = std::fs::metadata(&path).ok()?;
        let look = Look { size: metadata.len(), modified: metadata.modified().ok(), inode: inode(&metadata) };
        Some((path, look))
    });
    looks.collect()
}

/// What is found when two looks find the same, so that no half-written file is taken; what is written without a pause
/// is taken as it is in the end.
pub(super) fn settle(mut found: Looks, look: impl Fn() -> Looks) -> Looks {
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
