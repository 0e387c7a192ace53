//! The end of all that a process started, in whatever group or session it is.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::stat::{Stat, processes};

/// How long is looked for what was started meanwhile, and for the killed to be gone; a guard is waited for longer.
const LIMIT: Duration = Duration::from_millis(1_500);

/// All that descends from this process, to which its orphans fall.
#[derive(Debug, Default)]
pub(crate) struct Descendants {
    /// Processes that are none of them, nor is what descends from them; by number and beginning, as numbers are given anew.
    spared: HashSet<(u32, u64)>,
}

impl Descendants {
    /// Without those that are there now. What one of these starts later and then leaves behind cannot be told from the others.
    #[cfg(feature = "cli")]
    pub(crate) fn from_now_on() -> Self {
        let there = Self::default().living();
        Self { spared: there.iter().map(|stat| (stat.id, stat.began)).collect() }
    }

    /// Whether none lives.
    #[cfg(feature = "cli")]
    pub(crate) fn are_gone(&self) -> bool {
        self.living().is_empty()
    }

    /// Ends them all.
    pub(crate) fn kill(&self) {
        let begun = Instant::now();
        loop {
            let found = self.living();
            for id in found.iter().filter_map(|stat| Pid::from_raw(stat.id.cast_signed())) {
                let _ = kill_process(id, Signal::KILL);
            }
            if found.is_empty() || begun.elapsed() > LIMIT {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn living(&self) -> Vec<Stat> {
        let all: Vec<Stat> = processes().collect();
        self.among(&all, std::process::id())
    }

    /// The living descendants of `root`. A dead one between keeps its children: they are its parent's only once it is buried.
    fn among(&self, all: &[Stat], root: u32) -> Vec<Stat> {
        let mut children: HashMap<u32, Vec<&Stat>> = HashMap::new();
        for stat in all.iter().filter(|stat| !self.spared.contains(&(stat.id, stat.began))) {
            children.entry(stat.parent).or_default().push(stat);
        }
        let (mut found, mut pending, mut seen) = (Vec::new(), vec![root], HashSet::from([root]));
        while let Some(parent) = pending.pop() {
            for child in children.remove(&parent).unwrap_or_default() {
                if seen.insert(child.id) {
                    pending.push(child.id);
                    if !child.is_dead {
                        found.push(*child);
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_through_the_dead() {
        let stat = |id, parent, is_dead| Stat {
            id,
            parent,
            group: id,
            ticks: 0,
            began: 0,
            is_dead,
            is_stopped: false,
        };
        let all = [
            stat(1, 0, false),
            stat(5, 1, false),
            stat(6, 5, true),
            stat(7, 6, false),
            stat(8, 7, false),
            stat(9, 1, false),
        ];
        let found = |descendants: &Descendants, root| {
            let mut ids: Vec<u32> = descendants.among(&all, root).iter().map(|stat| stat.id).collect();
            ids.sort_unstable();
            ids
        };
        let every = Descendants::default();
        assert_eq!(found(&every, 5), [7, 8]);
        assert_eq!(found(&every, 9), [0; 0]);
        assert_eq!(every.among(&[stat(3, 3, false)], 3), []);
        // With its tree; another process of its number is not spared.
        let spare = |id, began| Descendants { spared: HashSet::from([(id, began)]) };
        assert_eq!(found(&spare(5, 0), 1), [9]);
        assert_eq!(found(&spare(5, 1), 1), [5, 7, 8, 9]);
    }
}
