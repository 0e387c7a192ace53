//! When a changed file is taken.
//!
//! A file that was closed after writing, or came by renaming, is taken at once; one of which nothing is known when two
//! looks 40 ms apart find the same; one that is known to be open, when it was not written for 250 ms. One that vanished
//! counts as gone after 60 ms: editors move a file away and write it anew. All that changed is taken together; what is not ready
//! 250 ms after the first change is held back then, and counts as unreadable.
//!
//! Time comes in as a value.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::hints::Write;
use super::look::FileLook;

/// Between two looks at a file of which nothing else is known.
const DEBOUNCE: Duration = Duration::from_millis(40);
/// From a file's end to its being gone.
const GONE: Duration = Duration::from_millis(60);
/// The longest wait for files that are not ready, and the pause after which a file that is open is taken.
const MAX_DEBOUNCE: Duration = Duration::from_millis(250);
/// So often a load is made anew because a file changed meanwhile.
const MAX_TRIES: u32 = 3;

/// The files that are other than what was loaded.
#[derive(Debug, Default)]
pub(super) struct Settling {
    pending: HashMap<PathBuf, Pending>,
    writes: HashMap<PathBuf, Write>,
    /// Loads that were worth nothing, and the files that were why.
    tries: u32,
    torn: HashSet<PathBuf>,
}

#[derive(Debug)]
struct Pending {
    look: Option<FileLook>,
    /// Where a link leads.
    target: Option<PathBuf>,
    /// When it was first found to be another.
    first: Instant,
    /// When it was first found as it is.
    since: Instant,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing is another.
    Rest,
    /// Look again then.
    Wait(Instant),
    /// Load, without these files.
    Load(HashSet<PathBuf>),
}

impl Settling {
    /// How files were written.
    pub(super) fn written(&mut self, writes: HashMap<PathBuf, Write>) {
        self.writes.extend(writes);
    }

    /// At `now` exactly these files are other than what was loaded; `target_of`: where those lead that are links.
    pub(super) fn found<'l>(
        &mut self,
        now: Instant,
        different: Vec<(PathBuf, Option<FileLook>)>,
        target_of: impl Fn(&Path) -> Option<&'l PathBuf>,
    ) {
        let mut before = std::mem::take(&mut self.pending);
        for (path, look) in different {
            let pending = match before.remove(&path) {
                Some(pending) if pending.look == look => pending,
                other => {
                    let first = other.map_or(now, |pending| pending.first);
                    Pending { look, target: target_of(&path).cloned(), first, since: now }
                }
            };
            self.pending.insert(path, pending);
        }
        if self.pending.is_empty() {
            self.writes.clear();
        }
    }

    pub(super) fn decide(&self, now: Instant) -> Decision {
        let (mut held, mut next) = (HashSet::new(), None::<Instant>);
        for (path, pending) in &self.pending {
            let ready = self.ready_at(path, pending);
            if ready > now {
                held.insert(path.clone());
                next = Some(next.map_or(ready, |next| next.min(ready)));
            }
        }
        let Some(next) = next else {
            let is_rest = self.pending.is_empty();
            return if is_rest { Decision::Rest } else { Decision::Load(self.hold_torn(held)) };
        };
        let first = self.pending.iter().filter(|(path, _)| !held.contains(*path)).map(|(_, one)| one.first);
        match first.min().map(|first| first + MAX_DEBOUNCE) {
            Some(late) if late <= now => Decision::Load(self.hold_torn(held)),
            Some(late) => Decision::Wait(next.min(late)),
            None => Decision::Wait(next),
        }
    }

    /// The files that are other than what was loaded.
    pub(super) fn pending(&self) -> impl Iterator<Item = &PathBuf> {
        self.pending.keys()
    }

    fn hold_torn(&self, mut held: HashSet<PathBuf>) -> HashSet<PathBuf> {
        if self.tries >= MAX_TRIES {
            held.extend(self.torn.iter().cloned());
        }
        held
    }

    fn ready_at(&self, path: &Path, pending: &Pending) -> Instant {
        if pending.look.is_none() {
            return pending.since + GONE;
        }
        let target = pending.target.as_deref();
        let write = self.writes.get(path).or_else(|| target.and_then(|target| self.writes.get(target)));
        match write {
            Some(Write::Closed | Write::Moved) => pending.since,
            Some(Write::Open) => pending.since + MAX_DEBOUNCE,
            // What comes with its folder, or behind a link, is whole, too.
            None if path.ancestors().skip(1).any(|folder| self.writes.get(folder) == Some(&Write::Moved)) => {
                pending.since
            }
            Some(Write::Unknown) | None => pending.since + DEBOUNCE,
        }
    }

    /// These files changed while they were loaded.
    pub(super) fn tore(&mut self, now: Instant, paths: Vec<PathBuf>) {
        self.tries += 1;
        for path in paths {
            if let Some(pending) = self.pending.get_mut(&path) {
                pending.since = now;
            }
            self.writes.remove(&path);
            self.torn.insert(path);
        }
    }

    /// All was loaded but for `held`.
    pub(super) fn loaded(&mut self, now: Instant, held: &HashSet<PathBuf>) {
        self.pending.retain(|path, _| held.contains(path));
        self.pending.values_mut().for_each(|pending| pending.first = now);
        self.writes.retain(|path, _| held.contains(path));
        self.torn.clear();
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is there, in its `edition`th form.
    fn look(edition: u64) -> Option<FileLook> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "x".repeat(edition as usize)).unwrap();
        let found = FileLook::at(&path);
        assert!(found.is_some());
        found
    }

    struct Clock {
        start: Instant,
        settling: Settling,
    }

    impl Clock {
        fn new() -> Self {
            Self { start: Instant::now(), settling: Settling::default() }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        /// After `ms`, `files` are other than what was loaded: what is decided, held files by name and waits in ms.
        fn decide(&mut self, ms: u64, files: &[(&str, Option<FileLook>)]) -> String {
            let now = self.at(ms);
            let files = files.iter().map(|(name, look)| (PathBuf::from(name), *look)).collect();
            self.settling.found(now, files, |_| None);
            match self.settling.decide(now) {
                Decision::Rest => String::from("rest"),
                Decision::Wait(until) => format!("wait {}", (until - self.start).as_millis()),
                Decision::Load(held) => {
                    let mut held: Vec<_> = held.iter().map(|path| path.display().to_string()).collect();
                    held.sort();
                    self.settling.loaded(now, &held.iter().map(PathBuf::from).collect());
                    format!("load without {held:?}")
                }
            }
        }

        fn write(&mut self, name: &str, write: Write) {
            self.settling.written(HashMap::from([(PathBuf::from(name), write)]));
        }
    }

    #[test]
    fn a_file_is_taken_when_it_is_whole() {
        let (one, other) = (look(1), look(2));
        let mut clock = Clock::new();
        assert_eq!(clock.decide(0, &[]), "rest");
        assert_eq!(clock.decide(1, &[("a", one)]), "wait 41");
        assert_eq!(clock.decide(30, &[("a", other)]), "wait 70");
        assert_eq!(clock.decide(70, &[("a", other)]), "load without []");
        // Known to be open, then closed.
        clock.write("a", Write::Open);
        assert_eq!(clock.decide(100, &[("a", one)]), "wait 350");
        clock.write("a", Write::Closed);
        assert_eq!(clock.decide(101, &[("a", one)]), "load without []");
        // What is gone may come back.
        assert_eq!(clock.decide(200, &[("a", None)]), "wait 260");
        assert_eq!(clock.decide(210, &[]), "rest");
        assert_eq!(clock.decide(220, &[("a", None)]), "wait 280");
        assert_eq!(clock.decide(320, &[("a", None)]), "load without []");
    }

    #[test]
    fn what_is_not_ready_holds_up_nothing_for_long() {
        let (one, other) = (look(1), look(2));
        let mut clock = Clock::new();
        clock.write("a", Write::Closed);
        clock.write("b", Write::Open);
        assert_eq!(clock.decide(0, &[("a", one), ("b", one)]), "wait 250");
        assert_eq!(clock.decide(200, &[("a", one), ("b", other)]), "wait 250");
        assert_eq!(clock.decide(250, &[("a", one), ("b", other)]), "load without [\"b\"]");
        assert_eq!(clock.decide(260, &[("b", other)]), "wait 450");
        assert_eq!(clock.decide(450, &[("b", other)]), "load without []");
    }

    #[test]
    fn a_file_that_changes_in_every_load_is_held_back_at_last() {
        let one = look(1);
        let mut clock = Clock::new();
        for round in 0..u64::from(MAX_TRIES) {
            clock.write("a", Write::Closed);
            clock.write("b", Write::Closed);
            let now = clock.at(round);
            let files = ["a", "b"].map(|name| (PathBuf::from(name), one)).to_vec();
            clock.settling.found(now, files, |_| None);
            assert_eq!(clock.settling.decide(now), Decision::Load(HashSet::new()));
            clock.settling.tore(now, vec![PathBuf::from("b")]);
        }
        clock.write("b", Write::Closed);
        assert_eq!(clock.decide(10, &[("a", one), ("b", one)]), "load without [\"b\"]");
    }

    #[test]
    fn what_comes_with_its_folder_is_whole() {
        let mut clock = Clock::new();
        clock.write("scripts", Write::Moved);
        assert_eq!(clock.decide(0, &[("scripts/lib/a", look(1))]), "load without []");
    }
}
