//! One reply of 50,000 chunks through `deftool run` and `deftool rpc`, beside curl: CPU time and context switches of the process.

use std::process::{Command, Stdio};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::rpc;
use crate::server::{RUN_CHUNKS, Server};

const ROUNDS: usize = 7;

/// Runs a program to its end.
type Program<'a> = Box<dyn FnMut() + 'a>;

pub(crate) fn measure() {
    let server = Server::start();
    let home = std::env::temp_dir().join(format!("deftool-bench-run-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    for (what, prompt) in [("one chunk a write", "run 1"), ("60 chunks a write", "run 60")] {
        let body = serde_json::json!({"stream": true, "messages": [{"role": "user", "content": prompt}]});
        let url = format!("{}/chat/completions", server.endpoint);
        let curl = || {
            let mut command = Command::new("curl");
            command
                .args(["-sN", "-H", "content-type: application/json", "-d"])
                .arg(body.to_string())
                .arg(&url);
            command
        };
        let run = |options: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
            command.args(["run", prompt, "--no-stdin", "--model", "stub", "--endpoint", &server.endpoint]);
            command.args(options).current_dir(&home).env("XDG_STATE_HOME", &home);
            command
        };
        let (mut curl, mut run, mut run_json) = (curl(), run(&[]), run(&["--json"]));
        let mut programs: [(&str, Program, Vec<Cost>); 4] = [
            ("curl", Box::new(|| execute(&mut curl)), Vec::new()),
            ("run", Box::new(|| execute(&mut run)), Vec::new()),
            ("run --json", Box::new(|| execute(&mut run_json)), Vec::new()),
            ("rpc", Box::new(|| rpc::read(&server, prompt)), Vec::new()),
        ];
        for _ in 0..ROUNDS {
            for (_, program, costs) in &mut programs {
                costs.push(cost(program));
            }
        }
        let median = |costs: &[Cost]| {
            let mut costs = costs.to_vec();
            costs.sort_by(|a, b| a.cpu_us.total_cmp(&b.cpu_us));
            costs[costs.len() / 2]
        };
        let curl = median(&programs[0].2).cpu_us;
        for (name, _, costs) in &programs {
            let Cost { cpu_us, switches } = median(costs);
            let least = costs.iter().map(|cost| cost.cpu_us).fold(f64::MAX, f64::min);
            let most = costs.iter().map(|cost| cost.cpu_us).fold(0.0, f64::max);
            println!(
                "run {what}: {name:<10} {cpu_us:>5.2} µs a chunk ({least:.2}–{most:.2}), {:>5.2} × curl, {switches} context switches",
                cpu_us / curl
            );
        }
    }
    std::fs::remove_dir_all(&home).unwrap();
}

#[derive(Clone, Copy)]
struct Cost {
    /// CPU time of a chunk, in microseconds.
    cpu_us: f64,
    switches: i64,
}

/// Runs a program to its end.
fn execute(command: &mut Command) {
    let ended = command.stdout(Stdio::null()).stderr(Stdio::inherit()).status().unwrap();
    assert!(ended.success(), "{command:?}: {ended}");
}

/// Returns the cost of a program that `program` runs to its end.
fn cost(program: impl FnOnce()) -> Cost {
    let of_children = || getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let cpu = |usage: &Usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let switches = |usage: &Usage| usage.voluntary_context_switches() + usage.involuntary_context_switches();
    let before = of_children();
    program();
    let after = of_children();
    Cost {
        cpu_us: (cpu(&after) - cpu(&before)) as f64 / RUN_CHUNKS as f64,
        switches: switches(&after) - switches(&before),
    }
}
