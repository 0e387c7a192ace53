//! What Linux tells of its processes, from `/proc/N/stat` (`man 5 proc`, 2026-10). Elsewhere there is nothing to read, and
//! what is made of it is honestly absent.

/// A line of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) id: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// CPU time in user and kernel mode, in clock ticks.
    pub(super) ticks: u64,
    /// When it began, in clock ticks since the machine did.
    pub(super) began: u64,
    /// Dead, and only waits to be told so.
    pub(super) is_dead: bool,
    /// Stopped by a signal (state `T`); a debugger's hold (`t`) is not one.
    pub(super) is_stopped: bool,
}

/// All processes that can be seen.
pub(super) fn processes() -> impl Iterator<Item = Stat> {
    let entries = if cfg!(target_os = "linux") { std::fs::read_dir("/proc").ok() } else { None };
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?))
}

/// Whether a process of `group` is stopped: the leader, or one that it waits for.
pub(super) fn is_stopped(group: u32) -> bool {
    processes().any(|stat| stat.group == group && stat.is_stopped)
}

/// Whether a process has ended, buried or not. Unknown, and so `false`, where there is nothing to read.
pub(super) fn is_dead(id: u32) -> bool {
    cfg!(target_os = "linux") && process(id).is_none_or(|stat| stat.is_dead)
}

/// One process.
pub(super) fn process(id: u32) -> Option<Stat> {
    // A name need not be text.
    let line = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    read_line(&String::from_utf8_lossy(&line))
}

fn read_line(line: &str) -> Option<Stat> {
    // The name stands in brackets and may hold anything, brackets too.
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
        is_dead: matches!(state, "Z" | "X" | "x"),
        is_stopped: state == "T",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let fields = "S 7 12 12 0 -1 4194560 1 2 3 4 250 17 5 6 20 0 9 0 4242 1000";
        let expected =
            Stat { id: 12, parent: 7, group: 12, ticks: 267, began: 4242, is_dead: false, is_stopped: false };
        for name in ["(sleep)", "(a) Z 9 (b)", "((())", "(x y\n)"] {
            assert_eq!(read_line(&format!("12 {name} {fields}")), Some(expected), "{name}");
        }
        assert_eq!(read_line(&format!("12 (a) Z{}", &fields[1..])), Some(Stat { is_dead: true, ..expected }));
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
    fn this_process_is_among_all() {
        let own = process(std::process::id()).unwrap();
        assert!(!own.is_dead && own.began > 0);
        assert!(processes().any(|stat| (stat.id, stat.parent) == (own.id, own.parent)));
    }
}
