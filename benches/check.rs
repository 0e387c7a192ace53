//! `deftool check` as a new process: `cargo bench --bench check`.
//!
//! `deftool call` of one tool and `deftool run` of a worker with `:tools` are measured too, because they read all specs of
//! a project.
//!
//! Goals on two cores: 1,600 tools in 200 files, all spec and schema rules, within 60 ms and 30 MB; with scripts within
//! 150 ms; linear time up to 100,000 tools; `--version` within 10 ms; `call` and `run` within 15 and 60 ms in a project of
//! 1,000 and 10,000 tools; in the quickstart, `call` within 8 ms and `run` within 10 ms, both within 15 MB.
//!
//! `DEFTOOL_PROGRAM` names another program to measure, such as the one in a package.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss)]

mod corpus;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

fn program() -> String {
    std::env::var("DEFTOOL_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_deftool").to_owned())
}

/// Returns the wall-clock time of one run, which must succeed.
fn run(arguments: &[&str], folder: &Path) -> Duration {
    let started = Instant::now();
    let status = Command::new(program())
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let took = started.elapsed();
    assert!(status.success(), "deftool {arguments:?} ended with {status}");
    took
}

fn report(what: &str, arguments: &[&str], folder: &Path, runs: usize) {
    // Warm up; the files are already in the page cache.
    run(arguments, folder);
    let mut times: Vec<Duration> = (0..runs).map(|_| run(arguments, folder)).collect();
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    // The peak of all children so far, in KiB, so run measurements in ascending order.
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as f64 / 1024.0;
    println!(
        "{what:<46} min {:>7.1} ms   median {:>7.1} ms   max {:>7.1} ms   peak memory {peak:.1} MB   ({runs} runs)",
        ms(times[0]),
        ms(times[runs / 2]),
        ms(times[runs - 1]),
    );
}

const CALLED: &str = r#"
(deftool :name "called" :description "Return one." :args ())
(defworker :name "w" :tools ["called"] :exit-tools [])
"#;

/// The replies of the model.
const SCENARIO: &str = r#"
(defscenario :name "one" (reply (call "called" ())) (reply :when (:last-role tool) "It is one."))
"#;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    report("--version", &["--version"], folder.path(), 50);
    let quickstart = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart"));
    report(
        "call in the quickstart",
        &["call", "get_weather", "location=Paris", "unit=celsius"],
        quickstart,
        50,
    );
    report("run in the quickstart", &["run", "--replay", "paris.recording.jsonl"], quickstart, 50);
    for (tools, runs) in [(1_000, 20), (10_000, 10)] {
        let place = at(&format!("project_{tools}"));
        corpus::write(&place, tools, true).unwrap();
        std::fs::write(place.join("specs/called.eld"), CALLED).unwrap();
        std::fs::write(place.join("scripts/called.lua"), "return function() return 1 end\n").unwrap();
        let what = format!("call in a project of {tools} tools");
        report(&what, &["call", "called"], &place, runs);
        std::fs::write(place.join("one.eld"), SCENARIO).unwrap();
        let request = ["run", "How much?", "--record", "one.recording.jsonl"];
        let program = program();
        let model = ["stub", "one.eld", "--", &program];
        run(&[&model[..], &request].concat(), &place);
        let what = format!("run of one of {tools} tools");
        report(&what, &["run", "--replay", "one.recording.jsonl"], &place, runs);
    }
    for (tools, runs) in [(1_600, 50), (10_000, 5), (100_000, 3)] {
        let place = at(&format!("specs_{tools}"));
        let bytes = corpus::write(&place, tools, false).unwrap();
        if tools == 1_600 {
            let place = at("scripts");
            corpus::write(&place, tools, true).unwrap();
            std::fs::rename(place.join("specs"), place.join("plain")).unwrap();
            let what = format!("check, 1600 tools ({:.1} MB)", bytes as f64 / 1e6);
            report(&what, &["check", "plain"], &place, runs);
            std::fs::rename(place.join("plain"), place.join("specs")).unwrap();
            report("check, 1600 tools with their scripts", &["check"], &place, runs);
            continue;
        }
        let what = format!("check, {tools} tools ({:.1} MB)", bytes as f64 / 1e6);
        std::fs::rename(place.join("specs"), place.join("plain")).unwrap();
        report(&what, &["check", "plain"], &place, runs);
    }
}
