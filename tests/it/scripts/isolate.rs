//! `--isolate process` with the real binary: scripts run in child processes, and no child outlives the command.

#![allow(clippy::unwrap_used, clippy::expect_used)]
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command};
use std::time::{Duration, Instant};

use deftool_test_support::server::{Answer, Server, call, delta, finish};

use crate::support::project::{Ended, Project};

/// A project with a tool `spin` that never ends.
fn project() -> Project {
    let project = Project::new();
    project.write(
        "specs/spin.eld",
        "(deftool :name \"spin\" :description \"Never ends.\" :timeout \"60s\" :args ())\n",
    );
    project
        .write("scripts/spin.lua", "return function()\n  print('spinning')\n  while true do\n  end\nend\n");
    project
}

/// Returns the child processes of `parent`, including zombies.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

fn parent_of(id: u32) -> Option<u32> {
    let about = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    about.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Waits for the first child of `command` that is a script host, and returns its id.
fn host_of(command: &Child) -> u32 {
    wait_for(|| {
        children(command.id()).into_iter().find(|id| {
            std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.ends_with(b"script-host\0"))
        })
    })
}

/// Waits until the script of `command` runs. Returns the id of its host, and stderr after the script's first line.
fn spinning_host(command: &mut Child) -> (u32, BufReader<ChildStderr>) {
    let mut said = BufReader::new(command.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("spinning") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended before its script ran");
    }
    (host_of(command), said)
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < deftool_test_support::HANG_LIMIT, "timed out");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_gone(id: u32) -> Option<()> {
    (!std::path::Path::new(&format!("/proc/{id}")).exists()).then_some(())
}

fn signal(id: u32, name: &str) {
    assert!(Command::new("kill").args([name, &id.to_string()]).status().unwrap().success());
}

fn call_isolated(project: &Project, arguments: &[&str]) -> Ended {
    project.run(&[&["call"], arguments, &["--isolate", "process"]].concat())
}

#[test]
fn an_isolated_call_has_the_same_result() {
    let project = project();
    for arguments in [
        &["count", r#"{"text": "four"}"#][..],
        &["count", r#"{"text": "four"}"#, "--json"],
        &["broken"],
        &["missing"],
    ] {
        let (apart, here) =
            (call_isolated(&project, arguments), project.run(&[&["call"], arguments].concat()));
        let untimed = |text: &str| text.split("\"elapsed_ms\"").next().unwrap().to_owned();
        assert_eq!(untimed(&apart.stdout), untimed(&here.stdout));
        assert_eq!((apart.code, apart.stderr), (here.code, here.stderr));
    }
}

#[test]
fn a_child_that_is_killed_fails_the_call() {
    let project = project();
    let mut command = project.spawn(&["call", "spin", "--isolate", "process"]);
    let (host, mut said) = spinning_host(&mut command);
    // The process that compiled the script runs it.
    assert_eq!(children(command.id()), [host]);
    signal(host, "-KILL");
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let ended = Ended::of(command.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1));
    let told = "error[internal]: the process that ran the script died (signal 9); the engine and other calls are \
                not affected";
    assert!(rest.ends_with(&format!("{told}\n")), "{rest}");
}

#[test]
fn nothing_is_left_when_the_command_is_stopped_or_killed() {
    let project = project();
    for (name, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let mut command = project.spawn(&["call", "spin", "--isolate", "process"]);
        let (host, _said) = spinning_host(&mut command);
        signal(command.id(), name);
        let ended = Ended::of(command.wait_with_output().unwrap());
        assert_eq!(ended.code, code, "{ended:?}");
        wait_for(|| is_gone(host));
    }
}

/// Adds a tool that waits for a program.
fn waits(project: &Project) {
    let spec = "(deftool :name \"waits\" :description \"Waits.\" :timeout \"60s\" :allow (:run [\"sleep\"]) :args ())\n";
    project.write("specs/waits.eld", spec);
    project.write("scripts/waits.lua", "return function() process.run({ 'sleep', '3041.5' }) end\n");
}

/// Returns the process id of the program that a guard started by `host` runs.
fn program_of(host: u32) -> Option<u32> {
    children(host).into_iter().flat_map(children).find(|id| {
        std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line == b"sleep\x003041.5\x00")
    })
}

/// The script host and the program that the script runs end even if the command is killed and cannot clean up.
#[test]
fn nothing_that_a_script_started_outlives_a_command_that_is_killed() {
    let project = project();
    waits(&project);
    let command = project.spawn(&["call", "waits", "--isolate", "process", "--trust"]);
    // The process that compiled the script has no `PATH` and does not run it.
    let run_program = |host| Some((host, program_of(host)?));
    let (host, program) = wait_for(|| children(command.id()).into_iter().find_map(run_program));
    signal(command.id(), "-KILL");
    Ended::of(command.wait_with_output().unwrap());
    wait_for(|| is_gone(host));
    wait_for(|| is_gone(program));
}

/// The script host has its own process group, so Ctrl-C of a terminal, which signals the group of the command, does not
/// reach it.
#[test]
fn ctrl_c_does_not_reach_the_script_host() {
    let project = project();
    let mut command = project.command(&["call", "spin", "--isolate", "process"]);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut command = command.spawn().unwrap();
    let (host, _said) = spinning_host(&mut command);
    let group = |id: u32| {
        let about = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        about.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse::<u32>().ok()
    };
    wait_for(|| (group(host)? == host).then_some(()));
    assert_eq!(group(command.id()), Some(command.id()));
    signal(command.id(), "-INT");
    assert_eq!(Ended::of(command.wait_with_output().unwrap()).code, Some(130));
    wait_for(|| is_gone(host));
}

#[test]
fn run_works_with_children() {
    let project = project();
    let server = Server::script([
        Answer::chunks(&[
            call(0, "count", r#"{"text": "abc"}"#),
            call(1, "count", r#"{"text": "abcd"}"#),
            finish("tool_calls"),
        ]),
        Answer::chunks(&[delta("Done.\n"), call(0, "done", r#"{"summary": "ok"}"#), finish("stop")]),
    ]);
    let endpoint = server.endpoint();
    let ended = project.run(&["run", "hello", "--endpoint", &endpoint, "--isolate", "process"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Done.\n"), "{ended:?}");
    assert!(
        ended.stderr.contains("→ {\"length\":3}") && ended.stderr.contains("→ {\"length\":4}"),
        "{ended:?}"
    );
}
