//! The watch loop: reloads a project when a file changes.
//!
//! All files are scanned (`snapshot`) after notifications of the operating system (`notifications`). A notification about
//! the content of known files causes a scan of those files only. Without notifications, all files are scanned at
//! intervals that depend on their number: 1 to 60 seconds where every change causes a notification, and 1 to 5 seconds
//! elsewhere. Changed files are debounced (`debounce`). A new load reads the changed files and reuses the rest (`cache`).
//! Then the stamps are checked again, and if a file changed during the load, the load is discarded. A load is therefore
//! a consistent snapshot of the project without half-written files. A new stamp with the same content is not a change.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::debounce::{Debouncer, Decision};
use super::loader::{LoadTarget, Loader, Scan};
use super::notifications::{FileEvents, FolderWatcher, Wakeup};
use crate::load::find_root;
use crate::model::{Load, LoadOptions, ProjectError};

/// The time between full scans: a multiple of the time of a scan, between two limits.
struct RescanInterval {
    ratio: u32,
    least: Duration,
    most: Duration,
}

/// Where changes may cause no notification: within the limits, scans use 1 % of a CPU.
const FREQUENT: RescanInterval =
    RescanInterval { ratio: 100, least: Duration::from_secs(1), most: Duration::from_secs(5) };

/// Where every change causes a notification. Scans are the safeguard against errors in all that reports it, and use at
/// most 0.05 % of a CPU.
const RARE: RescanInterval =
    RescanInterval { ratio: 2_000, least: Duration::from_secs(1), most: Duration::from_secs(60) };

/// Maximum number of repeated scans while new folders are added to the watcher.
const MAX_WATCH_ROUNDS: usize = 3;

/// Time between the first load and the start of the watch. The operating system needs about 10 ms to end a watch, so a
/// process that exits before this time exits sooner.
const START_DELAY: Duration = Duration::from_millis(50);

/// A receiver of load results.
pub(super) trait LoadHandler {
    /// Handles a load with changes, or a failed load. `started`: when the load began.
    fn on_load(&mut self, loaded: Result<Load, ProjectError>, started: Instant) -> ControlFlow<()>;

    /// Returns when the project must be loaded again even if no file changed.
    fn retry_at(&self) -> Option<Instant> {
        None
    }
}

/// Loads `paths`, relative to `folder`, and reloads them whenever one of the files changes, until `on_load` returns
/// [`ControlFlow::Break`]. `on_load` receives the result and the start time of the load. File names in messages are
/// relative to `from`.
///
/// # Errors
/// If the first load fails. Later errors are passed to `on_load`.
pub fn keep_loading(
    paths: &[PathBuf],
    folder: &Path,
    from: &Path,
    options: &LoadOptions,
    on_load: impl FnMut(Result<Load, &ProjectError>, Instant) -> ControlFlow<()>,
) -> Result<(), ProjectError> {
    let target = match paths {
        [] => LoadTarget::Project(find_root(folder)?),
        _ => LoadTarget::Paths(paths.to_vec(), folder.to_owned()),
    };
    let mut loader = Loader::new(target, from, options.clone());
    let started = Instant::now();
    let first = load_first(&mut loader)?;
    let mut handler = LoadCallback { on_load, error: None };
    if handler.on_load(Ok(first), started).is_continue() {
        run_watch_loop(&mut handler, loader, &Arc::default());
    }
    Ok(())
}

/// A [`LoadHandler`] that calls a function.
struct LoadCallback<T> {
    on_load: T,
    /// The last error that was passed on.
    error: Option<String>,
}

impl<T: FnMut(Result<Load, &ProjectError>, Instant) -> ControlFlow<()>> LoadHandler for LoadCallback<T> {
    fn on_load(&mut self, loaded: Result<Load, ProjectError>, started: Instant) -> ControlFlow<()> {
        let error = loaded.as_ref().err().map(ToString::to_string);
        if error.is_some() && error == self.error {
            return ControlFlow::Continue(());
        }
        self.error = error;
        match loaded {
            Ok(load) => (self.on_load)(Ok(load), started),
            Err(error) => (self.on_load)(Err(&error), started),
        }
    }
}

/// Performs the first load. Retries if a file changes during the load.
///
/// # Errors
/// If the load fails.
pub(super) fn load_first(loader: &mut Loader) -> Result<Load, ProjectError> {
    const TRIES: usize = 3;
    let mut load = loader.load_all();
    for _ in 1..TRIES {
        if loader.torn().is_empty() {
            break;
        }
        load = loader.load_all();
    }
    loader.commit(&[].into());
    load
}

/// Reloads after every change until `handler` returns [`ControlFlow::Break`] or `events` is closed.
pub(super) fn run_watch_loop(handler: &mut impl LoadHandler, mut loader: Loader, events: &Arc<FileEvents>) {
    if events.wait(Instant::now() + START_DELAY) == Wakeup::Closed {
        return;
    }
    let mut watcher = FolderWatcher::new(events);
    let mut debouncer = Debouncer::default();
    // Scan at once: a file may have changed since the first load.
    let mut next_rescan = Instant::now();
    let mut debounce_end = None;
    let mut requested = 0;
    loop {
        let retry_at = handler.retry_at();
        let until = debounce_end
            .unwrap_or_else(|| retry_at.map_or(next_rescan, |retry_at| retry_at.min(next_rescan)));
        if events.wait(until) == Wakeup::Closed {
            return;
        }
        let batch = events.take();
        let (is_rescan_due, is_retry_due) =
            (Instant::now() >= next_rescan, retry_at.is_some_and(|retry_at| Instant::now() >= retry_at));
        // Scan the files with events now, and everything else at the next full scan.
        let is_full_scan = watcher.end_outdated(&batch) || is_rescan_due || batch.requested != requested;
        if is_full_scan {
            requested = batch.requested;
        }
        let partial = if is_full_scan {
            None
        } else {
            loader.scan_changed(batch.touched.iter().chain(debouncer.pending()))
        };
        let scan = partial.unwrap_or_else(|| {
            let (scan, pause) = scan_and_watch(&loader, &mut watcher);
            let next = Instant::now() + pause;
            next_rescan = if is_rescan_due { next } else { next.min(next_rescan) };
            scan
        });
        let now = Instant::now();
        let changed = loader.differences(&scan, (!is_rescan_due).then_some(&batch.touched));
        if is_rescan_due && batch.touched.is_empty() && debouncer.is_idle() && !changed.is_empty() {
            watcher.is_silent = true;
            next_rescan = next_rescan.min(now + FREQUENT.most);
        }
        debouncer.record_writes(batch.writes);
        debouncer.update(now, changed, |path| scan.snapshot.targets.get(path));
        debounce_end = None;
        let deferred = match debouncer.decide(now) {
            Decision::Load(deferred) => deferred,
            Decision::Wait(until) => {
                debounce_end = Some(until);
                continue;
            }
            Decision::Idle if is_retry_due => [].into(),
            Decision::Idle => {
                events.complete_rescan(requested);
                continue;
            }
        };
        let has_changes = is_retry_due || debouncer.pending().any(|path| !loader.has(path));
        let loaded = loader.load(scan, Some(debouncer.pending()), deferred.clone());
        let mut torn = loader.torn();
        // Also check the events: a fast write may not change the stamp.
        watcher.flush();
        torn.extend(events.written_files(|path| loader.has(path) && !deferred.contains(path)));
        if !torn.is_empty() {
            let now = Instant::now();
            debouncer.mark_torn(now, torn);
            debounce_end = Some(now);
            continue;
        }
        debouncer.mark_loaded(Instant::now(), &deferred);
        // No further event may follow for deferred files, or when the reason of a failure ends.
        debounce_end = (!deferred.is_empty()).then(Instant::now);
        if loaded.is_err() {
            next_rescan = next_rescan.min(now + FREQUENT.most);
        }
        let has_new_content = loader.commit(&deferred);
        if (has_changes || has_new_content || loaded.is_err()) && handler.on_load(loaded, now).is_break() {
            return;
        }
        events.complete_rescan(requested);
    }
}

/// Scans all files and watches all folders found. Also returns the time until the next full scan.
fn scan_and_watch(loader: &Loader, watcher: &mut FolderWatcher) -> (Scan, Duration) {
    let started = Instant::now();
    let mut scan = loader.scan();
    let mut has_new = true;
    for _ in 0..MAX_WATCH_ROUNDS {
        has_new = watcher.watch_folders(&scan.snapshot);
        if !has_new {
            break;
        }
        scan = loader.scan();
    }
    let interval = if !has_new && watcher.is_reliable(&scan.snapshot) { RARE } else { FREQUENT };
    let pause = interval.after(started.elapsed());
    (scan, pause)
}

impl RescanInterval {
    /// Returns the time until the next full scan after one that took `scan_time`.
    fn after(&self, scan_time: Duration) -> Duration {
        (scan_time * self.ratio).clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_project_uses_at_most_one_thousandth_of_a_cpu() {
        for micros in [100, 1_000, 5_000, 30_000, 60_000] {
            let scan_time = Duration::from_micros(micros);
            let pause = RARE.after(scan_time);
            assert!(pause >= scan_time * 1_000 && pause <= RARE.most, "{scan_time:?}: {pause:?}");
            assert!(FREQUENT.after(scan_time) <= FREQUENT.most);
        }
    }
}
