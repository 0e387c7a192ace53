//! Hot reload: `cargo bench --bench reload`, or `-- commands` for the part that measures processes, of the program
//! `DEFTOOL` if it is set. `DEFTOOL_SAVES` sets the number of saves in the last part; the default is 10,000.
//!
//! Goals: reloading one script in a project of 1,000 tools takes at most 5 ms of CPU, from the notification to the new
//! generation, including rescans. From a save to the first call with new code, p99 is at most 100 ms with kernel
//! notifications and one second without. Through `mcp`, a save costs at most 1.1 × what it costs through `rpc`: 3 ms of
//! CPU with 1,000 tools, and 8 ms with 10,000. An idle command uses at most 1 ms a second.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss)]

mod corpus;
#[cfg(unix)]
#[path = "../tests/it/support/storm.rs"]
mod storm;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use deftool_project::{Generation, LiveProject};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

/// Returns the CPU time of all threads except this one.
fn cpu_of_others() -> Duration {
    let spent = |who| {
        let usage = getrusage(who).unwrap();
        (usage.user_time() + usage.system_time()).num_microseconds().cast_unsigned()
    };
    Duration::from_micros(spent(UsageWho::RUSAGE_SELF).saturating_sub(spent(UsageWho::RUSAGE_THREAD)))
}

fn replace(path: &Path, text: &str) {
    let sibling = path.with_extension("new");
    fs::write(&sibling, text).unwrap();
    fs::rename(sibling, path).unwrap();
}

/// Measures saves of one file that `changed` tools use.
fn report(
    what: &str,
    (runs, changed): (usize, usize),
    folder: &Path,
    file: &str,
    text: impl Fn(usize) -> String,
) {
    let (sender, reloads) = channel();
    let listener = move |reloaded: Result<&Generation, &_>| {
        sender.send(reloaded.unwrap().changes.clone()).unwrap();
    };
    let project = LiveProject::open(folder, folder, Some(Box::new(listener))).unwrap();
    assert!(!project.current().load.has_errors());
    std::thread::sleep(Duration::from_millis(1500));
    let mut spent: Vec<Duration> = Vec::new();
    for run in 0..runs {
        let before = cpu_of_others();
        replace(&folder.join(file), &text(run));
        let changes = reloads.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(changes.changed.len(), changed, "{changes}");
        // Work after the switch to the new generation is included.
        std::thread::sleep(Duration::from_millis(60));
        spent.push(cpu_of_others().saturating_sub(before));
    }
    let before = cpu_of_others();
    std::thread::sleep(Duration::from_secs(5));
    let idle = cpu_of_others().saturating_sub(before) / 5;
    spent.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{what:<44} CPU a reload: min {:>5.2} ms   median {:>5.2} ms   max {:>5.2} ms   ({runs} runs)   idle: {:.2} ms a second",
        ms(spent[0]),
        ms(spent[runs / 2]),
        ms(spent[runs - 1]),
        ms(idle),
    );
}

fn main() {
    // The CPU time of processes is read from `/proc`.
    if cfg!(target_os = "linux") {
        [1_000, 10_000].into_iter().for_each(report_commands);
    }
    if std::env::args().any(|argument| argument == "commands") {
        return;
    }
    for tools in [1_000, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        corpus::write(folder.path(), tools, true).unwrap();
        let script = fs::read_dir(folder.path().join("scripts")).unwrap().next().unwrap().unwrap().path();
        let name = format!("scripts/{}", script.file_name().unwrap().to_str().unwrap());
        let text = fs::read_to_string(script).unwrap();
        let what = format!("one script of {tools} tools");
        report(&what, (100, 1), folder.path(), &name, |run| format!("{text}-- {run}\n"));
        if tools == 1_000 {
            report_shared(folder.path(), tools, &name);
        }
    }
    #[cfg(unix)]
    report_storm();
}

/// Every tool requires the same modules, and each module has a finding, so that no module can be skipped.
fn report_shared(folder: &Path, tools: usize, name: &str) {
    const MODULES: usize = 20;
    fs::create_dir_all(folder.join("scripts/lib")).unwrap();
    let module = "local M = {}\nfunction M.shout(text) return string.upper(text) .. json.encode(lost) end\n"
        .repeat(20);
    let module = format!("{module}return M\n");
    for number in 0..MODULES {
        fs::write(folder.join(format!("scripts/lib/m{number}.lua")), &module).unwrap();
    }
    let requires: Vec<_> = (0..MODULES).map(|number| format!("require('./lib/m{number}') ")).collect();
    let requires = requires.concat();
    for script in fs::read_dir(folder.join("scripts")).unwrap() {
        let path = script.unwrap().path();
        if path.is_file() {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, format!("{requires}{text}")).unwrap();
        }
    }
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let what = format!("one script of {tools} on {MODULES} modules");
    report(&what, (100, 1), folder, name, |run| format!("{text}-- {run}\n"));
    let what = format!("one module of {tools} tools");
    report(&what, (20, tools), folder, "scripts/lib/m0.lua", |run| format!("{module}-- {run}\n"));
}

/// Measures what a save costs in the process of a command, from the save to a call with new code, and what the idle
/// command costs.
fn report_commands(tools: usize) {
    const SAVES: usize = 30;
    let folder = tempfile::tempdir().unwrap();
    corpus::write(folder.path(), tools, true).unwrap();
    let script = folder.path().join("scripts/probe.lua");
    let save = |version: &str| replace(&script, &format!("return function() return \"{version}\" end\n"));
    save("version 0.");
    fs::write(folder.path().join("specs/probe.eld"), "(deftool :name \"probe\" :description \"d\")\n")
        .unwrap();
    for (command, arguments) in
        [("rpc", &["rpc"][..]), ("mcp", &["mcp"]), ("test --watch", &["test", "--watch"])]
    {
        let mut server = Server::start(arguments, folder.path());
        let mut spent = Vec::new();
        if command != "test --watch" {
            server.start_session(command);
            for number in 1..=SAVES {
                let before = server.cpu();
                let version = format!("version {number}.");
                save(&version);
                while !server.call_probe(command).contains(&version) {
                    std::thread::sleep(Duration::from_millis(12));
                }
                std::thread::sleep(Duration::from_millis(100));
                spent.push(server.cpu().saturating_sub(before));
            }
            spent.sort_unstable();
        }
        std::thread::sleep(Duration::from_secs(10));
        let before = server.cpu();
        std::thread::sleep(Duration::from_secs(20));
        let idle = server.cpu().saturating_sub(before).as_secs_f64() * 1e3 / 20.0;
        let of_save = spent
            .get(SAVES / 2)
            .map_or(String::from("-"), |spent| format!("{:.2} ms", spent.as_secs_f64() * 1e3));
        println!(
            "{command:<14} {tools:>6} tools   CPU a save: median {of_save:>9}   idle: {idle:.2} ms a second"
        );
    }
}

/// The process of a command that serves a project.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(arguments: &[&str], project: &Path) -> Self {
        let program = std::env::var("DEFTOOL").unwrap_or_else(|_| env!("CARGO_BIN_EXE_deftool").to_owned());
        let mut command = Command::new(program);
        command.args(arguments).arg("-C").arg(project);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    /// Sends a request and returns the line of its response.
    fn ask(&mut self, method: &str, params: &Value) -> String {
        writeln!(self.stdin, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .unwrap();
        loop {
            let mut line = String::new();
            self.stdout.read_line(&mut line).unwrap();
            if line.contains("\"id\":1") {
                return line;
            }
        }
    }

    fn start_session(&mut self, command: &str) {
        if command == "mcp" {
            let client = json!({"name": "bench", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
            self.ask("initialize", &params);
            self.stdin
                .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
                .unwrap();
        }
        assert!(self.call_probe(command).contains("version "));
        // Until the project is watched.
        std::thread::sleep(Duration::from_millis(1500));
    }

    fn call_probe(&mut self, command: &str) -> String {
        match command {
            "mcp" => self.ask("tools/call", &json!({"name": "probe", "arguments": {}})),
            _ => self.ask("call", &json!({"tool": "probe", "arguments": {}})),
        }
    }

    /// Returns the CPU time of the current threads of the process.
    fn cpu(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of_task = |task: std::io::Result<fs::DirEntry>| -> Option<u64> {
            fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
        };
        Duration::from_nanos(tasks.filter_map(of_task).sum())
    }
}

/// Measures the time from a save to the first call with new code, for each save method, under continuous calls.
#[cfg(unix)]
fn report_storm() {
    let saves = std::env::var("DEFTOOL_SAVES").map_or(10_000, |saves| saves.parse().unwrap());
    println!(
        "\n{:<42} {:>8} {:>9} {:>9} {:>9} {:>10}",
        "saves to the first call on new code", "saves", "p50", "p99", "max", "calls"
    );
    for method in storm::METHODS {
        let storm::Report { saves, latencies, calls } = method.run(saves);
        let method =
            if method.has_events { method.name.to_owned() } else { format!("{} (polled)", method.name) };
        let ms = |share: usize| latencies[(latencies.len() - 1) * share / 100].as_secs_f64() * 1e3;
        println!(
            "{method:<42} {saves:>8} {:>6.1} ms {:>6.1} ms {:>6.1} ms {calls:>10}",
            ms(50),
            ms(99),
            ms(100)
        );
    }
}
