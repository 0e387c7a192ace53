//! The limits of `deftool call`, and Ctrl-C.

use super::*;

/// Calls `tool` and stops the process for `pause` after its first log line.
#[cfg(unix)]
fn call_with_pause(project: &Project, tool: &str, pause: Duration) -> Ended {
    use rustix::process::{Pid, Signal, kill_process};
    let mut child = project.spawn(&["call", tool]);
    let mut line = [0; 5];
    child.stderr.as_mut().unwrap().read_exact(&mut line).unwrap();
    let id = Pid::from_child(&child);
    kill_process(id, Signal::STOP).unwrap();
    std::thread::sleep(pause);
    kill_process(id, Signal::CONT).unwrap();
    Ended::of(child.wait_with_output().unwrap())
}

/// A stopped process does not exceed the top-level limit. The call's own limit applies.
#[cfg(unix)]
#[test]
fn a_timeout_in_the_top_level_is_the_timeout_of_the_call() {
    let project = Project::new();
    let spec = "(deftool :name \"late\" :description \"x\" :args () :timeout \"1s\")\n";
    project.write("specs/late.eld", spec);
    let body = "log.info('begun')\nlocal n = 0\nfor i = 1, 3000000 do n = n + i % 7 end\n";
    project.write("scripts/late.lua", format!("{body}return function() return n end\n"));
    for _ in 0..20 {
        let ended = call_with_pause(&project, "late", Duration::from_millis(1_200));
        // The call may have ended before the process was stopped.
        if ended.code != Some(0) {
            assert!(ended.stderr.contains("error[timeout]"), "{ended:?}");
            return;
        }
    }
    panic!("every call ended before the process was stopped");
}

/// The limit counts CPU time, so that a busy machine does not make a top level exceed it.
#[cfg(unix)]
#[test]
fn the_top_level_limit_counts_cpu_time() {
    let project = Project::new();
    let body = "log.info('begun')\nlocal n = 0\nfor i = 1, 1000000 do n = n + i % 7 end\n";
    project.write("scripts/broken.lua", format!("{body}return function() return n end\n"));
    let ended = call_with_pause(&project, "broken", Duration::from_millis(500));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "2999998\n"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_exits_with_130() {
    let project = Project::new();
    project.write("scripts/broken.lua", "return function() log.info('begun') while true do end end");
    let mut child = project.spawn(&["call", "broken"]);
    let err = child.stderr.as_mut().unwrap();
    let mut line = [0; 5];
    err.read_exact(&mut line).unwrap();
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
}
