//! `process`: no program outlives its call. Its functions are tested in
//! `tests/test_command/scripts/scripts/process_test.lua`.

use super::*;

fn granted(source: &str, programs: &[&str]) -> (tempfile::TempDir, Script) {
    crate::support::process::set_guard();
    let folder = tempfile::tempdir().unwrap();
    let mut script = script(&format!("return function() {source} end"));
    script.permissions.run = programs.iter().map(|name| String::from(*name)).collect();
    script.root = Some(folder.path().canonicalize().unwrap());
    (folder, script)
}

fn run_granted(source: &str, programs: &[&str]) -> Result<Value, ToolError> {
    let (_folder, script) = granted(source, programs);
    run(script, json!({}))
}

/// Waits until `check` returns true, for up to a minute. Returns whether it did.
fn eventually(check: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < deftool_test_support::HANG_LIMIT {
        if check() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Returns whether the process `id` is running. A zombie is not.
fn is_alive(id: &str) -> bool {
    assert!(!id.is_empty(), "missing process ID");
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn programs_of_a_call_run_concurrently() {
    let source = "local sum = 0
         for i = 1, 12 do task.spawn(function() local run = process.run({ 'printf', '1' }) sum += tonumber(run.stdout) end) end
         repeat task.wait(0.01) until sum == 12
         return sum";
    assert_eq!(run_granted(source, &["printf"]), Ok(json!(12)));
}

#[test]
fn a_program_in_the_project_requires_its_path() {
    let (folder, mut script) =
        granted("return process.run({ 'tools/hello' }, { cwd = 'tools' }).stdout", &["tools/hello"]);
    let tools = folder.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    // Written by another process: a file that this process has open for writing may be inherited by a program of
    // another test, and then it cannot be executed.
    let write = "printf '#!/bin/sh\\npwd\\n' > hello && chmod 755 hello";
    let wrote = std::process::Command::new("sh").args(["-c", write]).current_dir(&tools).status();
    assert!(wrote.unwrap().success());
    let here = script.root.clone().unwrap();
    let shared = Arc::new(script);
    let ran = block_on(runner().value_of(Arc::clone(&shared), call(json!({})), CallContext::default()));
    assert_eq!(ran, Ok(json!(format!("{}\n", here.join("tools").display()))));

    script =
        Script::new("probe", "scripts/probe.lua", "return function() return process.run({ 'hello' }) end");
    script.permissions.run = vec![String::from("hello")];
    script.root = Some(here.join("tools"));
    let error = run(script, json!({})).unwrap_err();
    assert!(error.message.contains("program hello not found in PATH"), "{error}");

    set_mode(&tools.join("hello"), 0o644);
    let error = block_on(runner().value_of(shared, call(json!({})), CallContext::default())).unwrap_err();
    assert!(error.message.contains("tools/hello is not executable"), "{error}");
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;

    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_program_gets_only_its_own_environment() {
    // Cargo sets these for tests. They stand for secrets without a grant.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some() && std::env::var_os("CARGO_PKG_VERSION").is_some());
    let source = "return process.run({ 'env' }, { env = { MINE = '1' } }).stdout";
    let (_folder, mut script) = granted(source, &["env"]);
    script.permissions.env = ["CARGO_PKG_NAME", "MINE", "NOT_SET_AT_ALL"].map(String::from).to_vec();
    let printed = run(script, json!({})).unwrap();
    let mut names: Vec<&str> =
        printed.as_str().unwrap().lines().map(|line| line.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["CARGO_PKG_NAME", "LANG", "MINE", "PATH"], "{printed}");

    let (_folder, mut script) = granted(
        "return process.run({ 'sh', '-c', 'echo $BASH_ENV' }, { env = { BASH_ENV = 'x' } }).stdout",
        &["sh"],
    );
    script.permissions.env = vec![String::from("BASH_ENV")];
    assert_eq!(run(script, json!({})), Ok(json!("x\n")));

    let (_folder, mut script) = granted("process.run({ 'env' }, { env = { OTHER = 'x' } })", &["env"]);
    script.permissions.env = vec![String::from("MINE")];
    let error = run(script, json!({})).unwrap_err();
    let expected = "OTHER is not allowed: this tool may only set the variables \"MINE\"; to allow it, add :allow (:env [\"OTHER\"])";
    assert!(error.message.contains(expected), "{error}");
}

/// A program does not inherit open files.
#[cfg(target_os = "linux")]
#[test]
fn a_program_inherits_no_open_files() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("the-secret-file");
    let _open = std::fs::File::create(&secret).unwrap();
    let shown =
        run_granted("return process.run({ 'sh', '-c', 'ls -l /proc/self/fd' }).stdout", &["sh"]).unwrap();
    let shown = shown.as_str().unwrap();
    assert!(shown.contains("pipe:") && shown.contains("/dev/null"), "{shown}");
    assert!(!shown.contains("the-secret-file"), "{shown}");
}

#[cfg(target_os = "linux")]
#[test]
fn processes_left_in_the_group_are_killed() {
    for source in [
        // Left running at exit, with and without open pipes.
        "sleep 86400 & echo $! > child; exit 0",
        "sleep 86400 < /dev/null > /dev/null 2>&1 & echo $! > child; exit 0",
        "(trap '' TERM HUP INT; sleep 86400) & echo $! > child; exit 0",
    ] {
        let (folder, script) =
            granted(&format!("return process.run({{ 'sh', '-c', [[{source}]] }}).ok"), &["sh"]);
        assert_eq!(run(script, json!({})), Ok(json!(true)), "{source}");
        let id = std::fs::read_to_string(folder.path().join("child")).unwrap();
        assert!(eventually(|| !is_alive(id.trim())), "{source}");
    }
}

/// The programs of a call end with it, for every reason.
#[cfg(target_os = "linux")]
#[test]
fn ending_a_call_kills_its_programs() {
    let source = "process.run({ 'sh', '-c', [[trap '' TERM; sleep 300 & echo $! > child; echo $$ > leader; wait; wait]] })";
    let ids = |folder: &Path| {
        ["leader", "child"]
            .map(|name| std::fs::read_to_string(folder.join(name)).unwrap_or_default().trim().to_owned())
    };
    // The call times out. On a busy machine the program needs longer to start.
    let started = [500, 3_000, 12_000].into_iter().find_map(|limit| {
        let (folder, script) = granted(source, &["sh"]);
        let context = CallContext { timeout: Some(Duration::from_millis(limit)), ..CallContext::default() };
        let error = block_on(runner().value_of(Arc::new(script), call(json!({})), context)).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Timeout);
        Some(ids(folder.path())).filter(|ids| !ids.iter().any(String::is_empty))
    });
    assert!(started.expect("the program does not start").iter().all(|id| eventually(|| !is_alive(id))));

    // The caller or the runner is dropped.
    for goes in ["caller", "runner"] {
        let (folder, script) = granted(source, &["sh"]);
        let runner = runner();
        let path = folder.path().to_path_buf();
        block_on(async {
            let running =
                tokio::spawn(runner.value_of(Arc::new(script), call(json!({})), CallContext::default()));
            // A file exists before it has contents.
            while ids(&path).iter().any(String::is_empty) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if goes == "caller" {
                running.abort();
            } else {
                drop(runner);
            }
            let _ = running.await;
        });
        assert!(ids(&path).iter().all(|id| eventually(|| !is_alive(id))), "{goes}");
    }

    // The call has a result, and a task has left a program running.
    let is_there = "fs.exists('leader') and fs.stat('leader').size > 0";
    let source =
        format!("task.spawn(function() {source} end) repeat task.wait(0.01) until {is_there} return 1");
    let (folder, mut script) = granted(&source, &["sh"]);
    script.permissions.read = vec![PathGrant::new(".", folder.path())];
    assert_eq!(run(script, json!({})), Ok(json!(1)));
    assert!(ids(folder.path()).iter().all(|id| eventually(|| !is_alive(id))));
}

/// A process that leaves the session is killed by the guard when the program ends.
#[cfg(target_os = "linux")]
#[test]
fn a_daemon_ends_with_its_program() {
    let source = "return process.run({ 'sh', '-c', [[setsid sh -c 'echo $$ > daemon; exec sleep 300' & while [ ! -s daemon ]; do :; done; echo done]] }).stdout";
    let (folder, script) = granted(source, &["sh"]);
    assert_eq!(run(script, json!({})), Ok(json!("done\n")));
    let id = std::fs::read_to_string(folder.path().join("daemon")).unwrap();
    assert!(!is_alive(id.trim()));
}

/// A process that has left its session twice is killed when deftool is killed.
#[cfg(target_os = "linux")]
#[test]
fn a_daemon_does_not_outlive_a_killed_command() {
    let project = crate::support::project::Project::empty();
    project.write(
        "specs/linger.eld",
        "(deftool :name \"linger\" :description \"Wait.\" :allow (:run [\"sh\"]))\n",
    );
    let daemon = "setsid sh -c 'setsid sh -c \"echo \\$\\$ > daemon; exec sleep 300\" &' & echo $$ > id; exec sleep 300";
    let source = format!("return function() process.run({{ 'sh', '-c', [[{daemon}]] }}) end\n");
    project.write("scripts/linger.lua", source);
    for arguments in [&["--trust"][..], &["--trust", "--isolate", "process"]] {
        let ids = || {
            ["id", "daemon"]
                .map(|name| std::fs::read_to_string(project.path(name)).unwrap_or_default().trim().to_owned())
        };
        let _ = std::fs::remove_file(project.path("id"));
        let _ = std::fs::remove_file(project.path("daemon"));
        let mut command = project.spawn(&[&["call", "linger"], arguments].concat());
        assert!(eventually(|| ids().iter().all(|id| !id.is_empty())), "{arguments:?}");
        command.kill().unwrap();
        command.wait().unwrap();
        assert!(eventually(|| ids().iter().all(|id| !is_alive(id))), "{arguments:?}");
    }
}

/// Running programs does not change process attributes of deftool: tracing, core files and the subreaper flag.
#[cfg(target_os = "linux")]
#[test]
fn running_a_program_does_not_change_the_host_process() {
    use rustix::process::{Resource, child_subreaper, dumpable_behavior, getrlimit};

    let state = || {
        let limit = getrlimit(Resource::Core);
        (child_subreaper().unwrap(), dumpable_behavior().unwrap(), limit.current, limit.maximum)
    };
    let before = state();
    assert_eq!(run_granted("return process.run({ 'printf', '1' }).stdout", &["printf"]), Ok(json!("1")));
    assert_eq!(state(), before);
}

/// A program runs in its guard's session, which has no terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_program_has_a_session_of_its_own() {
    let shown = run_granted("return process.run({ 'cat', '/proc/self/stat' }).stdout", &["cat"]).unwrap();
    let fields = |about: &str| -> Vec<i32> {
        let rest = about.rsplit_once(')').unwrap().1;
        rest.split_whitespace().skip(1).take(4).map(|field| field.parse().unwrap()).collect()
    };
    let own = fields(&std::fs::read_to_string("/proc/self/stat").unwrap());
    // Parent, group, session, terminal.
    let program = fields(shown.as_str().unwrap());
    assert_eq!((program[2], program[3]), (program[0], 0), "{shown}");
    assert_ne!(program[2], own[2]);
}

/// A program cannot access the terminal that deftool runs in.
#[cfg(target_os = "linux")]
#[test]
fn a_program_cannot_access_the_terminal() {
    use crate::support::terminal::{Piped, Terminal};

    let project = crate::support::project::Project::empty();
    project.write("specs/tty.eld", "(deftool :name \"tty\" :description \"Ask.\" :allow (:run [\"sh\"]))\n");
    let source = "return function() return process.run({ 'sh', '-c', 'echo FORGED > /dev/tty; echo done' }).stdout end\n";
    project.write("scripts/tty.lua", source);
    let mut terminal = Terminal::start(&project, &["call", "tty", "--trust"], Piped::Nothing);
    terminal.wait_for("done");
    assert!(!terminal.output().contains("FORGED"), "{}", terminal.output());
    terminal.end();
}

/// An interrupted command leaves no program running, even if it exits at once.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_command_kills_its_programs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("specs")).unwrap();
    std::fs::create_dir(folder.path().join("scripts")).unwrap();
    let spec = "(deftool :name \"linger\" :description \"Wait for a long time.\" :allow (:run [\"sh\"]))\n";
    std::fs::write(folder.path().join("specs/linger.eld"), spec).unwrap();
    let source = "return function() process.run({ 'sh', '-c', [[trap '' TERM INT; echo $$ > id; exec sleep 300]] }) end\n";
    std::fs::write(folder.path().join("scripts/linger.lua"), source).unwrap();
    let test = "test('t', function() temp.write('a', '') tool.load('linger')() end)\n";
    std::fs::write(folder.path().join("scripts/linger_test.lua"), test).unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let id = || std::fs::read_to_string(folder.path().join("id")).unwrap_or_default().trim().to_owned();
    let commands = [&["call", "linger", "--trust"][..], &["test", "--trust"]];
    let signals = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)];
    for (arguments, (signal, code)) in
        commands.iter().flat_map(|command| signals.map(|signal| (*command, signal)))
    {
        let _ = std::fs::remove_file(folder.path().join("id"));
        // Under `nohup`, the tests ignore SIGHUP, and so would deftool.
        let mut command = std::process::Command::new("env")
            .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_deftool")])
            .args(arguments)
            .current_dir(folder.path())
            .env("TMPDIR", &temporary)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        assert!(eventually(|| !id().is_empty()), "{arguments:?}");
        assert!(is_alive(&id()));
        std::process::Command::new("kill").arg(signal).arg(command.id().to_string()).status().unwrap();
        assert_eq!(command.wait().unwrap().code(), Some(code), "{arguments:?} {signal}");
        assert!(eventually(|| !is_alive(&id())), "{arguments:?} {signal} {}", id());
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{arguments:?} {signal}");
    }
}
