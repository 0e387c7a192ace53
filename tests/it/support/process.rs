//! Guards of the processes that tests start, and measurements of a running process.

use deftool_process::HelperProgram;

/// Uses the real binary as the guard of programs and servers that this process starts.
pub(crate) fn set_guard() {
    let program = env!("CARGO_BIN_EXE_deftool").into();
    deftool_process::set_guard(HelperProgram { program, arguments: vec!["guard".into()] });
}

/// Returns the peak memory of a process so far, in KiB.
pub(crate) fn peak_memory(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Returns the number of `write` calls of a process so far.
pub(crate) fn write_calls(id: u32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{id}/io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap().parse().unwrap()
}
