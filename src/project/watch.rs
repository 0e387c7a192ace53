//! Files looked at again and again, and a load made anew whenever one of them holds something else.
//!
//! What counts is a look: around (`look`), every second and wherever a hint of the operating system (`hints`) is about
//! more than the content of files that were there; else at those. Files that are
//! other than what was loaded are taken when they are whole (`settle`). A load is made beside the one that is there, from
//! what is another and the rest of the last one (`cache`); then everything is looked at again, and if a file that was
//! read is not as it was, the load is thrown away. So a load is the state of the disk at one moment, and no half-written
//! file is in it. A file that looks otherwise and holds the same is no change.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::hints::{Hints, Watches, Woken};
use super::loader::{Loader, Scan, Wanted};
use super::settle::{Decision, Settling};
use super::{Load, LoadOptions, ProjectError, find_root};

/// Between looks without a hint.
pub(super) const SWEEP: Duration = Duration::from_secs(1);
/// New folders are looked through again once they are watched; so often at most.
const MAX_FOLLOWED: usize = 3;

/// What is done with loads.
pub(super) trait Watched {
    /// Something was loaded that is not as before, or could not be. `started`: when its load began.
    fn loaded(&mut self, loaded: Result<Load, ProjectError>, started: Instant) -> ControlFlow<()>;

    /// When it wants to be given what is loaded again, though nothing is another.
    fn due(&self) -> Option<Instant> {
        None
    }
}

/// Loads `paths`, seen from `folder`, whenever one of the files that they mean holds something else, until `told`
/// breaks off; it is given when the load began, too. Names in messages are relative to `from`.
///
/// # Errors
/// When the first load fails; a later failure is told.
pub fn keep_loading(
    paths: &[PathBuf],
    folder: &Path,
    from: &Path,
    options: &LoadOptions,
    told: impl FnMut(Result<Load, &ProjectError>, Instant) -> ControlFlow<()>,
) -> Result<(), ProjectError> {
    let wanted = match paths {
        [] => Wanted::Project(find_root(folder)?),
        _ => Wanted::Paths(paths.to_vec(), folder.to_owned()),
    };
    let mut loader = Loader::new(wanted, from, options.clone());
    let started = Instant::now();
    let first = load_first(&mut loader)?;
    let mut watched = Told { told, error: None };
    if watched.loaded(Ok(first), started).is_continue() {
        keep_watching(&mut watched, loader, &Arc::default());
    }
    Ok(())
}

/// Loads that someone is told of.
struct Told<T> {
    told: T,
    /// Why there is nothing newer, as it was told last.
    error: Option<String>,
}

impl<T: FnMut(Result<Load, &ProjectError>, Instant) -> ControlFlow<()>> Watched for Told<T> {
    fn loaded(&mut self, loaded: Result<Load, ProjectError>, started: Instant) -> ControlFlow<()> {
        let error = loaded.as_ref().err().map(ToString::to_string);
        if error.is_some() && error == self.error {
            return ControlFlow::Continue(());
        }
        self.error = error;
        match loaded {
            Ok(load) => (self.told)(Ok(load), started),
            Err(error) => (self.told)(Err(&error), started),
        }
    }
}

/// The first load, of files none of which changes meanwhile, if they come to rest at all.
///
/// # Errors
/// When it fails.
pub(super) fn load_first(loader: &mut Loader) -> Result<Load, ProjectError> {
    const TRIES: usize = 3;
    let mut load = loader.load_all();
    for _ in 1..TRIES {
        if loader.torn().is_empty() {
            break;
        }
        load = loader.load_all();
    }
    loader.taken(&[].into());
    load
}

/// Loads anew whenever what is found is other than what was loaded, until `watched` breaks off or `hints` end.
pub(super) fn keep_watching(watched: &mut impl Watched, mut loader: Loader, hints: &Arc<Hints>) {
    let mut watches = Watches::new(hints);
    let mut settling = Settling::default();
    // Something may have happened between the first load and the watches.
    let mut sweep = Instant::now();
    let mut due = None;
    let mut asked = 0;
    loop {
        let wanted = watched.due();
        let until = due.unwrap_or_else(|| wanted.map_or(sweep, |wanted| wanted.min(sweep)));
        if hints.wait(until) == Woken::Ended {
            return;
        }
        let told = hints.take();
        let (is_sweep, is_wanted) =
            (Instant::now() >= sweep, wanted.is_some_and(|wanted| Instant::now() >= wanted));
        // What is told of is looked at now, and everything else soon.
        let is_all = is_sweep || told.is_vague;
        if is_all {
            asked = told.asked;
        }
        let glance = if is_all { None } else { loader.glance(told.touched.iter().chain(settling.pending())) };
        let scan = glance.unwrap_or_else(|| look(&loader, &mut watches));
        let now = Instant::now();
        if is_sweep {
            sweep = now + SWEEP;
        }
        settling.written(told.writes);
        let different = loader.differences(&scan, (!is_sweep).then_some(&told.touched));
        settling.found(now, different, |path| scan.looks.targets.get(path));
        due = None;
        let held = match settling.decide(now) {
            Decision::Load(held) => held,
            Decision::Wait(until) => {
                due = Some(until);
                continue;
            }
            Decision::Rest if is_wanted => [].into(),
            Decision::Rest => {
                hints.answer(asked);
                continue;
            }
        };
        let has_news = is_wanted || settling.pending().any(|path| !loader.has(path));
        let loaded = loader.load(scan, Some(settling.pending()), held.clone());
        let mut torn = loader.torn();
        // However it looks: who writes fast enough is not seen by the clock of the file system.
        watches.catch_up();
        torn.extend(hints.written(|path| loader.has(path) && !held.contains(path)));
        if !torn.is_empty() {
            let now = Instant::now();
            settling.tore(now, torn);
            due = Some(now);
            continue;
        }
        settling.loaded(Instant::now(), &held);
        let is_other = loader.taken(&held);
        if (has_news || is_other || loaded.is_err()) && watched.loaded(loaded, now).is_break() {
            return;
        }
        hints.answer(asked);
    }
}

/// Looks at everything, with all folders watched.
fn look(loader: &Loader, watches: &mut Watches) -> Scan {
    let mut scan = loader.scan();
    for _ in 0..MAX_FOLLOWED {
        if !watches.follow(&scan.looks) {
            break;
        }
        scan = loader.scan();
    }
    scan
}
