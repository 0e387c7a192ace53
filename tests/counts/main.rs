//! The numbers of instructions that deftool executes: `cargo test --test counts`. Needs valgrind and binutils.
//!
//! Unlike times, they are the same on a busy machine. A number that differs from `expected.txt` by more than 5 % fails.
//! If the change is intended, `UPDATE_EXPECT=1` writes the new numbers, and the commit says why they changed. They
//! depend on the compiler and on the settings of `[profile.test]`.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
// A test stops at the first error.
#![allow(clippy::unwrap_used)]
// The numbers are small.
#![allow(clippy::cast_precision_loss)]

#[path = "../../benches/corpus/mod.rs"]
#[allow(dead_code)]
mod corpus;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use deftool_stub::{Answer, Received, Stub};
use deftool_test_support::server::Texts;
use serde_json::Value;
use tempfile::TempDir;

/// Tolerated difference, as a fraction.
const TOLERANCE: f64 = 0.05;

/// Tools in the project that is checked.
const TOOLS: usize = 100;

const SPECS: &str = r#"
(deftool :name "get_weather" :description "Get the weather at a place."
         :args ((:name "place" :type string :description "The place.")))
(defworker :name "counts" :model "stub" :tool-budget 100)
"#;

const SCRIPT: &str = "return function(place) return { place = place, temperature = 21 } end\n";

#[test]
fn the_numbers_of_instructions_are_as_expected() {
    let counter = Counter::new();
    let project = project();
    let many = tempfile::tempdir().unwrap();
    corpus::write(many.path(), TOOLS, true).unwrap();
    let replay = |prompt: &str| {
        let recording = record(project.path(), prompt);
        let recording = recording.to_str().unwrap();
        counter.count(project.path(), &["run", "--worker", "counts", "--replay", recording])
    };
    let each = |what: &str, few: u64, more: u64| {
        let [before, after] = [few, more].map(|count| replay(&format!("{what} {count}")));
        (after - before) / (more - few)
    };
    let counts = [
        ("start", counter.count(many.path(), &["--version"])),
        ("check of 100 tools", counter.count(many.path(), &["check"])),
        ("call", counter.count(project.path(), &["call", "get_weather", r#"{"place":"Paris"}"#])),
        ("one chunk", each("chunks", 200, 1_200)),
        ("one turn", each("turns", 4, 44)),
    ];
    compare(&counts);
}

/// Compares the counts with the file, or writes the file.
fn compare(counts: &[(&str, u64)]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counts/expected.txt");
    let text: Vec<String> = counts.iter().map(|(name, count)| format!("{name}: {count}\n")).collect();
    let text = text.concat();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return fs::write(file, text).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap();
    let mut differences = Vec::new();
    for (name, count) in counts {
        let known = expected.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let known: f64 = known.unwrap_or("0").parse().unwrap();
        let change = *count as f64 / known - 1.0;
        println!("{name}: {count} instructions ({:+.1} %)", change * 100.0);
        if change.abs() > TOLERANCE {
            differences.push(*name);
        }
    }
    assert!(
        differences.is_empty(),
        "changed by more than 5 %: {}; if that is intended, run the test again with UPDATE_EXPECT=1 and say why in \
         the commit; the numbers are now:\n{text}",
        differences.join(", ")
    );
}

/// Counts the instructions of the program.
struct Counter {
    folder: TempDir,
}

impl Counter {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Valgrind would read the debug information, which takes longer than the program.
        run(Command::new("strip")
            .arg("-o")
            .arg(folder.path().join("deftool"))
            .arg(env!("CARGO_BIN_EXE_deftool")));
        Self { folder }
    }

    /// Returns the smallest count of three runs: hash tables differ from run to run, and on a busy machine a program
    /// polls more often.
    fn count(&self, project: &Path, arguments: &[&str]) -> u64 {
        (0..3).map(|_| self.count_once(project, arguments)).min().unwrap()
    }

    fn count_once(&self, project: &Path, arguments: &[&str]) -> u64 {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
        valgrind.arg(self.folder.path().join("deftool")).args(arguments).current_dir(project);
        // Both the home folder and the number of threads would make a difference.
        valgrind.env("HOME", self.folder.path()).env("MALLOC_ARENA_MAX", "1");
        let printed = run(&mut valgrind);
        let count = printed.lines().find_map(|line| line.split_once(" refs:")).unwrap().1;
        count.trim().replace(',', "").parse().unwrap()
    }
}

/// Runs a command that must succeed, and returns what it printed to stderr.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {}: {stderr}", output.status);
    stderr
}

/// Returns a project with one tool.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("specs/counts.eld", SPECS), ("scripts/get_weather.lua", SCRIPT)] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Records a request with the prompt `prompt`, which selects the reply.
fn record(project: &Path, prompt: &str) -> PathBuf {
    let stub = Stub::answering(([127, 0, 0, 1], 0).into(), answer).unwrap();
    let file = project.join(format!("{}.jsonl", prompt.replace(' ', "-")));
    let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
    command
        .args(["run", prompt, "--worker", "counts", "--endpoint", &stub.endpoint(), "--record"])
        .arg(&file);
    run(command.current_dir(project));
    let recording = fs::read_to_string(&file).unwrap();
    fs::write(&file, one_event_per_read(&recording)).unwrap();
    file
}

fn answer(request: &Received) -> Answer {
    let prompt = request.texts("user").pop().unwrap_or_default();
    // Requests that examine the server have no prompt.
    let Some((what, count)) = prompt.split_once(' ') else { return Answer::text("") };
    let count: usize = count.parse().unwrap();
    let answered = request.messages().iter().filter(|message| message["role"] == "tool").count();
    match what {
        // The same call again and again would end the request.
        "turns" if answered < count => {
            Answer::calls(&[("get_weather", &format!(r#"{{"place":"Paris {:02}"}}"#, answered % 100))])
        }
        "turns" => Answer::text("It is 21 degrees in Paris."),
        _ => {
            // Consecutive lines differ.
            let chunk = |answer: Answer, number| answer.delta(&format!("{number} degrees in Paris\\n"));
            (0..count).fold(Answer::stream(), chunk).chunk(&deftool_stub::finish("stop")).done().end()
        }
    }
}

/// Splits the recorded reads so that each contains one event: how the kernel grouped them differs between runs.
fn one_event_per_read(recording: &str) -> String {
    let mut lines = String::new();
    let mut pending = String::new();
    for line in recording.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        if value["record"] == "data" {
            pending.push_str(value["text"].as_str().unwrap());
            let end = pending.rfind("\n\n").map_or(0, |end| end + 2);
            for event in pending.drain(..end).collect::<String>().split_inclusive("\n\n") {
                let mut data = value.clone();
                data["text"] = event.into();
                lines.extend([data.to_string(), String::from("\n")]);
            }
        } else {
            lines.extend([line, "\n"]);
        }
    }
    lines
}
