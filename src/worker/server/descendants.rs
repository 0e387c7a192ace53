//! The end of all that a guard's server started, in whatever group or session it is.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::stat::{Stat, processes};

/// How often is looked for what was started meanwhile.
const SWEEPS: usize = 20;

/// Kills all that descends from this process, to which its orphans fall.
pub(crate) fn kill_all() {
    for sweep in 0..SWEEPS {
        let all: Vec<Stat> = processes().collect();
        let found = descendants(&all, std::process::id());
        if found.is_empty() {
            return;
        }
        if sweep > 0 {
            // What was killed takes a moment to be gone.
            std::thread::sleep(Duration::from_millis(5));
        }
        for id in found {
            if let Some(id) = Pid::from_raw(id.cast_signed()) {
                let _ = kill_process(id, Signal::KILL);
            }
        }
    }
}

/// The living descendants of `root`. A dead one between keeps its children: they are its parent's only once it is buried.
fn descendants(all: &[Stat], root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<&Stat>> = HashMap::new();
    for stat in all {
        children.entry(stat.parent).or_default().push(stat);
    }
    let (mut found, mut pending, mut seen) = (Vec::new(), vec![root], HashSet::from([root]));
    while let Some(parent) = pending.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if seen.insert(child.id) {
                pending.push(child.id);
                if !child.is_dead {
                    found.push(child.id);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_through_the_dead() {
        let stat = |id, parent, is_dead| Stat { id, parent, group: id, ticks: 0, began: 0, is_dead };
        let all = [
            stat(1, 0, false),
            stat(5, 1, false),
            stat(6, 5, true),
            stat(7, 6, false),
            stat(8, 7, false),
            stat(9, 1, false),
        ];
        let mut found = descendants(&all, 5);
        found.sort_unstable();
        assert_eq!(found, [7, 8]);
        assert_eq!(descendants(&all, 9), [0; 0]);
        assert_eq!(descendants(&[stat(3, 3, false)], 3), [0; 0]);
    }
}
