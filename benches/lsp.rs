//! The language server: `cargo bench --bench lsp`.
//!
//! The time from a change of a buffer to the findings that it causes, measured at a client: the client sends a change and
//! receives the findings over the pipes of the real binary. Each change adds or repairs a misspelt type, so that each
//! changes the findings. The CPU time is that of the server for one change. Goals: at most 3 ms in a file of 200 tools, at
//! most 8 ms with 10,000 tools in the project.
//!
//! Then the time from a key to the completions after it, in a list of tools, of which the project offers all.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss, dead_code)]

mod corpus;
#[path = "../tests/it/support/jsonrpc.rs"]
mod jsonrpc;
#[path = "../tests/it/support/lsp.rs"]
mod lsp;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lsp::{Client, at, uri};
use serde_json::json;

fn main() {
    for (tools, in_one_file) in [(200, true), (1_000, false), (10_000, false)] {
        let folder = tempfile::tempdir().unwrap();
        corpus::write(folder.path(), tools, true).unwrap();
        let root = folder.path().canonicalize().unwrap();
        if in_one_file {
            join(&root.join("specs"));
        }
        let what = if in_one_file { "a file of" } else { "a project of" };
        let what = format!("{what} {tools} tools");
        print(&what, "change to findings", changes(&root, RUNS));
        print(&what, "key to completions", completions(&root, RUNS));
    }
}

const RUNS: usize = 300;

/// Prints the times of runs, and the CPU time of the server for all of them.
fn print(what: &str, measured: &str, (mut times, cpu): (Vec<Duration>, Duration)) {
    times.sort_unstable();
    let ms = |index: usize| times[index].as_secs_f64() * 1e3;
    println!(
        "{what:<28} {measured}: CPU {:>5.2} ms   min {:>5.2} ms   median {:>5.2} ms   p99 {:>5.2} ms   max {:>5.2} ms   ({} runs)",
        cpu.as_secs_f64() * 1e3 / times.len() as f64,
        ms(0),
        ms(times.len() / 2),
        ms(times.len() * 99 / 100),
        ms(times.len() - 1),
        times.len(),
    );
}

/// Moves the text of all spec files to one.
fn join(specs: &Path) {
    let mut files: Vec<_> = fs::read_dir(specs).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for file in &files {
        fs::remove_file(file).unwrap();
    }
    fs::write(specs.join("all.eld"), text).unwrap();
}

/// Returns the CPU time that a process and its threads have used.
fn cpu_time(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let nanoseconds = threads.map(|thread| {
        let times = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        times.split(' ').next().and_then(|on_cpu| on_cpu.parse::<u64>().ok()).unwrap_or_default()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Returns the time from each change to its findings, and the CPU time of the server for all of them.
fn changes(root: &Path, runs: usize) -> (Vec<Duration>, Duration) {
    let mut files: Vec<_> =
        fs::read_dir(root.join("specs")).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let path = &files[files.len() / 2];
    let text = fs::read_to_string(path).unwrap();
    let misspelt = "(deftool :name \"misspelt\" :description \"Does it.\" :script \"x.lua\" :args ((:name \"x\" :type string :description \"An x.\")))\n";
    let column = misspelt.find("string").unwrap() as u64;
    let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
    command.arg("lsp");
    let mut client = Client::open(command, root, json!({}));
    client.did_open(path, &format!("{misspelt}{text}"));
    let is_misspelt = |codes: &[String]| codes.iter().any(|code| code == "1:DT204");
    client.wait_for(path, |codes| !is_misspelt(codes));
    let mut times = Vec::new();
    let server = client.connection.server.id();
    let before = cpu_time(server);
    for run in 0..runs {
        let (length, word) = if run % 2 == 0 { (6, "strng") } else { (5, "string") };
        client.findings.remove(&uri(path));
        let started = Instant::now();
        client.did_change(path, i32::try_from(run).unwrap() + 2, [0, column, 0, column + length], word);
        client.wait_for(path, |codes| is_misspelt(codes) == (run % 2 == 0));
        times.push(started.elapsed());
    }
    let cpu = cpu_time(server).saturating_sub(before);
    assert!(client.shut_down().success());
    (times, cpu)
}

/// Returns the time from each key in the list of a worker to the tools that are offered, and the CPU time of the server for
/// all of them.
fn completions(root: &Path, runs: usize) -> (Vec<Duration>, Duration) {
    let path = root.join("specs/worker.eld");
    let text = "(defworker :name \"w\" :tools [\"\"])\n";
    let column = text.find("\"])").unwrap() as u64;
    fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
    command.arg("lsp");
    let mut client = Client::open(command, root, json!({}));
    client.did_open(&path, text);
    client.request("textDocument/completion", at(&path, 0, column));
    let mut times = Vec::new();
    let server = client.connection.server.id();
    let before = cpu_time(server);
    for run in 0..runs {
        let (length, word) = if run % 2 == 0 { (0, "r") } else { (1, "") };
        let started = Instant::now();
        client.did_change(&path, i32::try_from(run).unwrap() + 2, [0, column, 0, column + length], word);
        let end = column + word.len() as u64;
        let offered = client.request("textDocument/completion", at(&path, 0, end));
        times.push(started.elapsed());
        assert!(!offered["items"].as_array().unwrap().is_empty(), "{offered}");
    }
    let cpu = cpu_time(server).saturating_sub(before);
    assert!(client.shut_down().success());
    (times, cpu)
}
