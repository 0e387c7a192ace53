//! The processes of this machine and the termination of this process's descendants, from `/proc/N/stat` (`man 5 proc`,
//! October 2026). On systems other than Linux, no processes are listed.

#![cfg_attr(not(unix), allow(dead_code))]

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};

/// Maximum time to search for descendants and to wait until the killed ones are gone.
const LIMIT: Duration = Duration::from_millis(1_500);
/// Pause between two searches.
const PAUSE: Duration = Duration::from_millis(2);

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The process ID.
    pub id: u32,
    /// The process ID of the parent.
    pub parent: u32,
    /// The process group.
    pub group: u32,
    /// CPU time in user and kernel mode, in clock ticks.
    pub ticks: u64,
    /// Start time, in clock ticks since boot.
    pub began: u64,
    /// Whether the process has ended, reaped or not. A zombie has not ended while its other threads run.
    pub is_dead: bool,
    /// Whether the process is stopped by a signal (state `T`). False if a debugger stopped it (state `t`).
    pub is_stopped: bool,
}

/// Returns all visible processes.
pub fn processes() -> impl Iterator<Item = Stat> {
    let entries = if cfg!(target_os = "linux") { std::fs::read_dir("/proc").ok() } else { None };
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?))
}

/// Returns whether a process of `group` is stopped by a signal.
pub fn is_stopped(group: u32) -> bool {
    processes().any(|stat| stat.group == group && stat.is_stopped)
}

/// Returns whether a process has ended, reaped or not. Always `false` on systems other than Linux.
pub fn is_dead(id: u32) -> bool {
    cfg!(target_os = "linux") && process(id).is_none_or(|stat| stat.is_dead)
}

/// Returns one process.
pub fn process(id: u32) -> Option<Stat> {
    // The process name need not be UTF-8.
    let line = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    read_line(&String::from_utf8_lossy(&line))
}

fn read_line(line: &str) -> Option<Stat> {
    // The process name is in parentheses and may contain any character.
    let (head, rest) = line.rsplit_once(')')?;
    let id = head.split_once(' ')?.0.parse().ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let small = |index: usize| u32::try_from(number(index)?).ok();
    let state = *fields.first()?;
    Some(Stat {
        id,
        parent: small(1)?,
        group: small(2)?,
        ticks: number(11)?.saturating_add(number(12)?),
        began: number(19)?,
        is_dead: matches!(state, "X" | "x") || (state == "Z" && number(17)? <= 1),
        is_stopped: state == "T",
    })
}

/// The descendants of this process, in any process group and session. This process must be a subreaper: otherwise
/// orphans are not among them.
#[derive(Debug, Default)]
pub struct Descendants {
    /// Processes that are excluded together with their descendants. Identified by process ID and start time, because
    /// process IDs are reused.
    excluded: HashSet<(u32, u64)>,
}

impl Descendants {
    /// Returns the descendants except those that exist now. A process that one of them starts later and leaves behind
    /// is included.
    pub fn from_now_on() -> Self {
        let existing = Self::default().all();
        Self { excluded: existing.iter().map(|stat| (stat.id, stat.began)).collect() }
    }

    /// Returns whether no descendant is alive. A process can fork and exit during the search: `true` proves nothing
    /// about a program that tries to escape.
    pub fn are_gone(&self) -> bool {
        self.all().iter().all(|stat| stat.is_dead)
    }

    /// Kills all descendants. Repeats until `are_gone`, or until a time limit.
    pub fn kill(&self, are_gone: impl Fn() -> bool) {
        let begun = Instant::now();
        let own = std::process::id();
        loop {
            let mut all = Vec::new();
            for stat in processes() {
                // Immediately: a process that forks and exits is replaced by its child before the search ends.
                if stat.parent == own && !self.excludes(&stat) {
                    kill_one(&stat);
                }
                all.push(stat);
            }
            self.among(&all, own).iter().for_each(kill_one);
            if are_gone() || begun.elapsed() > LIMIT {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn all(&self) -> Vec<Stat> {
        let all: Vec<Stat> = processes().collect();
        self.among(&all, std::process::id())
    }

    fn excludes(&self, stat: &Stat) -> bool {
        self.excluded.contains(&(stat.id, stat.began))
    }

    /// Returns the descendants of `root`. A zombie keeps its children until it is reaped.
    fn among(&self, all: &[Stat], root: u32) -> Vec<Stat> {
        let mut children: HashMap<u32, Vec<&Stat>> = HashMap::new();
        for stat in all.iter().filter(|stat| !self.excludes(stat)) {
            children.entry(stat.parent).or_default().push(stat);
        }
        let (mut found, mut pending, mut seen) = (Vec::new(), vec![root], HashSet::from([root]));
        while let Some(parent) = pending.pop() {
            for child in children.remove(&parent).unwrap_or_default() {
                if seen.insert(child.id) {
                    pending.push(child.id);
                    found.push(*child);
                }
            }
        }
        found
    }
}

/// Kills a process, even a zombie: threads can outlive the main thread, and the process is then listed as a zombie.
fn kill_one(stat: &Stat) {
    // Elsewhere, no processes are listed.
    #[cfg(unix)]
    if let Some(id) = Pid::from_raw(stat.id.cast_signed()) {
        let _ = kill_process(id, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_may_contain_any_characters() {
        let fields = "S 7 12 12 0 -1 4194560 1 2 3 4 250 17 5 6 20 0 1 0 4242 1000";
        let expected =
            Stat { id: 12, parent: 7, group: 12, ticks: 267, began: 4242, is_dead: false, is_stopped: false };
        for name in ["(sleep)", "(a) Z 9 (b)", "((())", "(x y\n)"] {
            assert_eq!(read_line(&format!("12 {name} {fields}")), Some(expected), "{name}");
        }
        assert_eq!(read_line(&format!("12 (a) Z{}", &fields[1..])), Some(Stat { is_dead: true, ..expected }));
        let threads = fields[1..].replace(" 0 1 0 ", " 0 2 0 ");
        assert_eq!(
            read_line(&format!("12 (a) Z{threads}")),
            Some(expected),
            "threads outlive the main thread"
        );
        let stopped = Stat { is_stopped: true, ..expected };
        for (state, stat) in [("T", stopped), ("t", expected), ("D", expected)] {
            assert_eq!(read_line(&format!("12 (a) {state}{}", &fields[1..])), Some(stat), "{state}");
        }
        for line in
            ["", "12 (sleep", "12 (sleep) S 7", "x (a) S 7 12 12 0 -1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", ")"]
        {
            assert_eq!(read_line(line), None, "{line}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_listed() {
        let own = process(std::process::id()).unwrap();
        assert!(!own.is_dead && own.began > 0);
        assert!(processes().any(|stat| (stat.id, stat.parent) == (own.id, own.parent)));
    }

    #[test]
    fn descendants_are_found_through_zombies() {
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
        assert_eq!(found(&every, 5), [6, 7, 8]);
        assert_eq!(found(&every, 9), [0; 0]);
        assert_eq!(every.among(&[stat(3, 3, false)], 3), []);
        // A process is excluded with its descendants, but not another process that reuses its ID.
        let exclude = |id, began| Descendants { excluded: HashSet::from([(id, began)]) };
        assert_eq!(found(&exclude(5, 0), 1), [9]);
        assert_eq!(found(&exclude(5, 1), 1), [5, 6, 7, 8, 9]);
    }
}
