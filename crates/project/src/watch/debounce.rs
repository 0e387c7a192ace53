//! Debouncing of file changes.
//!
//! A file that was closed after writing or moved into place is loaded at once. A file without known events is loaded
//! after its stamp has been unchanged for 40 ms. For a file that is known to be open for writing, the delay is 250 ms.
//! A missing file counts as deleted after 60 ms, because editors move a file away and write it again. All changes are
//! loaded together. Files that are not ready 250 ms after the first change are deferred and count as unreadable.
//!
//! The current time is a parameter.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::notifications::WriteState;
use crate::load::FileStamp;

/// Delay for a file without known events.
const DEBOUNCE: Duration = Duration::from_millis(40);

/// Delay until a missing file counts as deleted.
const DELETE_DELAY: Duration = Duration::from_millis(60);

/// Maximum wait for files that are not ready, and the delay for a file that is open.
const MAX_DEBOUNCE: Duration = Duration::from_millis(250);

/// Maximum number of consecutive loads that are discarded because of torn files. After that, these files are deferred.
const MAX_TRIES: u32 = 3;

/// The files that changed since the last load, with their debounce state.
#[derive(Debug, Default)]
pub(super) struct Debouncer {
    pending: HashMap<PathBuf, Pending>,
    writes: HashMap<PathBuf, WriteState>,
    /// The number of discarded loads, and the files that caused them.
    tries: u32,
    torn: HashSet<PathBuf>,
}

#[derive(Debug)]
struct Pending {
    stamp: Option<FileStamp>,
    /// The target, if the path is a link.
    target: Option<PathBuf>,
    /// The time at which the file was first found to differ from the last load.
    first: Instant,
    /// The time at which the current stamp was first seen.
    since: Instant,
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// No file changed.
    Idle,
    /// Decide again at this time.
    Wait(Instant),
    /// Load now, without these files.
    Load(HashSet<PathBuf>),
}

impl Debouncer {
    /// Records the write states of files.
    pub(super) fn record_writes(&mut self, writes: HashMap<PathBuf, WriteState>) {
        self.writes.extend(writes);
    }

    /// Sets the files that differ from the last load at `now`. `target_of` returns the target of a link.
    pub(super) fn update<'l>(
        &mut self,
        now: Instant,
        changed: Vec<(PathBuf, Option<FileStamp>)>,
        target_of: impl Fn(&Path) -> Option<&'l PathBuf>,
    ) {
        let mut before = std::mem::take(&mut self.pending);
        for (path, stamp) in changed {
            let pending = match before.remove(&path) {
                Some(pending) if pending.stamp == stamp => pending,
                other => {
                    let first = other.map_or(now, |pending| pending.first);
                    Pending { stamp, target: target_of(&path).cloned(), first, since: now }
                }
            };
            self.pending.insert(path, pending);
        }
        if self.pending.is_empty() {
            self.writes.clear();
        }
    }

    pub(super) fn decide(&self, now: Instant) -> Decision {
        let (mut deferred, mut next) = (HashSet::new(), None::<Instant>);
        for (path, pending) in &self.pending {
            let ready = self.ready_at(path, pending);
            if ready > now {
                deferred.insert(path.clone());
                next = Some(next.map_or(ready, |next| next.min(ready)));
            }
        }
        let Some(next) = next else {
            return if self.is_idle() { Decision::Idle } else { Decision::Load(self.defer_torn(deferred)) };
        };
        let first =
            self.pending.iter().filter(|(path, _)| !deferred.contains(*path)).map(|(_, one)| one.first);
        match first.min().map(|first| first + MAX_DEBOUNCE) {
            Some(late) if late <= now => Decision::Load(self.defer_torn(deferred)),
            Some(late) => Decision::Wait(next.min(late)),
            None => Decision::Wait(next),
        }
    }

    /// Returns whether no file has changed since the last load.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the files that changed since the last load.
    pub(super) fn pending(&self) -> impl Iterator<Item = &PathBuf> {
        self.pending.keys()
    }

    fn defer_torn(&self, mut deferred: HashSet<PathBuf>) -> HashSet<PathBuf> {
        if self.tries >= MAX_TRIES {
            deferred.extend(self.torn.iter().cloned());
        }
        deferred
    }

    fn ready_at(&self, path: &Path, pending: &Pending) -> Instant {
        if pending.stamp.is_none() {
            return pending.since + DELETE_DELAY;
        }
        let target = pending.target.as_deref();
        let write = self.writes.get(path).or_else(|| target.and_then(|target| self.writes.get(target)));
        match write {
            Some(WriteState::Closed | WriteState::Moved) => pending.since,
            Some(WriteState::Open) => pending.since + MAX_DEBOUNCE,
            // A file below a folder that was moved here is complete, even if it is a link.
            None if path
                .ancestors()
                .skip(1)
                .any(|folder| self.writes.get(folder) == Some(&WriteState::Moved)) =>
            {
                pending.since
            }
            Some(WriteState::Unknown) | None => pending.since + DEBOUNCE,
        }
    }

    /// Records that these files changed during a load, which is discarded.
    pub(super) fn mark_torn(&mut self, now: Instant, paths: Vec<PathBuf>) {
        self.tries += 1;
        for path in paths {
            if let Some(pending) = self.pending.get_mut(&path) {
                pending.since = now;
            }
            self.writes.remove(&path);
            self.torn.insert(path);
        }
    }

    /// Records that all files except `deferred` were loaded.
    pub(super) fn mark_loaded(&mut self, now: Instant, deferred: &HashSet<PathBuf>) {
        self.pending.retain(|path, _| deferred.contains(path));
        self.pending.values_mut().for_each(|pending| pending.first = now);
        self.writes.retain(|path, _| deferred.contains(path));
        self.torn.clear();
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the stamp of an existing file of `edition` bytes.
    fn stamp(edition: u64) -> Option<FileStamp> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "x".repeat(edition as usize)).unwrap();
        let stamp = FileStamp::at(&path);
        assert!(stamp.is_some());
        stamp
    }

    struct Clock {
        start: Instant,
        debouncer: Debouncer,
    }

    impl Clock {
        fn new() -> Self {
            Self { start: Instant::now(), debouncer: Debouncer::default() }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        /// Returns the decision at `ms` with these changed files, as text with waits in ms and deferred files by name.
        fn decide(&mut self, ms: u64, files: &[(&str, Option<FileStamp>)]) -> String {
            let now = self.at(ms);
            let files = files.iter().map(|(name, stamp)| (PathBuf::from(name), *stamp)).collect();
            self.debouncer.update(now, files, |_| None);
            match self.debouncer.decide(now) {
                Decision::Idle => String::from("idle"),
                Decision::Wait(until) => format!("wait {}", (until - self.start).as_millis()),
                Decision::Load(deferred) => {
                    let mut deferred: Vec<_> =
                        deferred.iter().map(|path| path.display().to_string()).collect();
                    deferred.sort();
                    self.debouncer.mark_loaded(now, &deferred.iter().map(PathBuf::from).collect());
                    format!("load without {deferred:?}")
                }
            }
        }

        fn write(&mut self, name: &str, write: WriteState) {
            self.debouncer.record_writes(HashMap::from([(PathBuf::from(name), write)]));
        }
    }

    #[test]
    fn a_file_is_loaded_when_it_is_complete() {
        let (one, other) = (stamp(1), stamp(2));
        let mut clock = Clock::new();
        assert_eq!(clock.decide(0, &[]), "idle");
        assert_eq!(clock.decide(1, &[("a", one)]), "wait 41");
        assert_eq!(clock.decide(30, &[("a", other)]), "wait 70");
        assert_eq!(clock.decide(70, &[("a", other)]), "load without []");
        // Open for writing, then closed.
        clock.write("a", WriteState::Open);
        assert_eq!(clock.decide(100, &[("a", one)]), "wait 350");
        clock.write("a", WriteState::Closed);
        assert_eq!(clock.decide(101, &[("a", one)]), "load without []");
        // A missing file may come back.
        assert_eq!(clock.decide(200, &[("a", None)]), "wait 260");
        assert_eq!(clock.decide(210, &[]), "idle");
        assert_eq!(clock.decide(220, &[("a", None)]), "wait 280");
        assert_eq!(clock.decide(320, &[("a", None)]), "load without []");
    }

    #[test]
    fn a_file_that_is_not_ready_is_deferred() {
        let (one, other) = (stamp(1), stamp(2));
        let mut clock = Clock::new();
        clock.write("a", WriteState::Closed);
        clock.write("b", WriteState::Open);
        assert_eq!(clock.decide(0, &[("a", one), ("b", one)]), "wait 250");
        assert_eq!(clock.decide(200, &[("a", one), ("b", other)]), "wait 250");
        assert_eq!(clock.decide(250, &[("a", one), ("b", other)]), "load without [\"b\"]");
        assert_eq!(clock.decide(260, &[("b", other)]), "wait 450");
        assert_eq!(clock.decide(450, &[("b", other)]), "load without []");
    }

    #[test]
    fn a_file_that_changes_during_every_load_is_deferred() {
        let one = stamp(1);
        let mut clock = Clock::new();
        for round in 0..u64::from(MAX_TRIES) {
            clock.write("a", WriteState::Closed);
            clock.write("b", WriteState::Closed);
            let now = clock.at(round);
            let files = ["a", "b"].map(|name| (PathBuf::from(name), one)).to_vec();
            clock.debouncer.update(now, files, |_| None);
            assert_eq!(clock.debouncer.decide(now), Decision::Load(HashSet::new()));
            clock.debouncer.mark_torn(now, vec![PathBuf::from("b")]);
        }
        clock.write("b", WriteState::Closed);
        assert_eq!(clock.decide(10, &[("a", one), ("b", one)]), "load without [\"b\"]");
    }

    #[test]
    fn a_file_in_a_moved_folder_is_complete() {
        let mut clock = Clock::new();
        clock.write("scripts", WriteState::Moved);
        assert_eq!(clock.decide(0, &[("scripts/lib/a", stamp(1))]), "load without []");
    }
}
