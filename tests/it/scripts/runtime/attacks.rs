//! Attacks: scripts in files with their expected outcome, run on a thread and in a child process.
//!
//! The leading comments of a file: `expect: KIND or KIND` (the outcome), `says: TEXT` (contained in the result or
//! message), `path: PATH` (of the error), `async: true`, `twice: true` (called twice, with the same outcome),
//! `deadline: MS`, `within: MS` (the time limit of the test, by default twice the deadline), and permissions in a
//! [`Fixture`]: `read: NAME`, `write: NAME`, `run: PROGRAM`, `env: NAME`.
//!
//! `cargo test --test it -- attacks --nocapture` prints a table of the results.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use deftool_script::Isolation;
use deftool_test_support::step;

use super::fixture::{CANARY, Fixture};
use super::*;

/// Maximum number of attempts to meet a time limit.
const ATTEMPTS: usize = 12;
/// Tolerance beyond twice the deadline before the test fails, for busy machines. The table counts a call that took more
/// than twice its deadline as a hang.
const SLACK: Duration = Duration::from_millis(600);
/// Time limit for the next call after an attack.
const NEXT: Duration = Duration::from_secs(10);
/// Number of attacks at a time: one per processor of a small machine.
const WORKERS: usize = 2;

/// An attack file.
struct Attack {
    name: String,
    source: Vec<u8>,
    is_async: bool,
    /// The permissions: pairs of a key and a grant in the [`Fixture`].
    allows: Vec<(String, String)>,
    deadline: Duration,
    expected: Expectation,
}

impl Attack {
    /// Returns the part of the name before the first `_`: `cpu`, `memory`, `escape` and so on.
    fn class(&self) -> &str {
        self.name.split('_').next().unwrap()
    }
}

/// The expectations in the leading comments of an attack.
#[derive(Default)]
struct Expectation {
    ends: Vec<String>,
    says: Vec<String>,
    path: Option<String>,
    twice: bool,
    within: Option<Duration>,
}

/// A row of the table.
#[derive(Default)]
struct Row {
    cases: usize,
    slowest: Duration,
    /// The maximum of the run time divided by the deadline.
    share: f64,
    hangs: usize,
    crashes: usize,
    escapes: usize,
}

/// The result of one attack.
#[derive(Default)]
struct Verdict {
    wrong: Vec<String>,
    /// Missed time limits. The test fails only if every attempt misses a limit.
    late: Vec<String>,
    took: Duration,
    hangs: bool,
    crashes: bool,
    escapes: bool,
}

fn read_attack(file: &Path) -> Attack {
    let mut attack = Attack {
        name: file.file_name().unwrap().to_string_lossy().into_owned(),
        source: std::fs::read(file).unwrap(),
        is_async: false,
        allows: Vec::new(),
        deadline: DEADLINE,
        expected: Expectation::default(),
    };
    let source = String::from_utf8_lossy(&attack.source).into_owned();
    let expected = &mut attack.expected;
    let comments = source.lines().map_while(|line| line.strip_prefix("-- "));
    for (key, value) in comments.filter_map(|comment| comment.split_once(": ")) {
        let text = || value.to_owned();
        let time = || Duration::from_millis(value.parse().unwrap());
        match key {
            "expect" => expected.ends = value.split(" or ").map(str::to_owned).collect(),
            "says" => expected.says.push(text()),
            "path" => expected.path = Some(text()),
            "twice" => expected.twice = value == "true",
            "within" => expected.within = Some(time()),
            "async" => attack.is_async = value == "true",
            "deadline" => attack.deadline = time(),
            "read" | "write" | "run" | "env" => attack.allows.push((key.to_owned(), text())),
            _ => {}
        }
    }
    assert!(!expected.ends.is_empty(), "{} has no `expect` comment", attack.name);
    // A shorter deadline suffices for scripts that only spin.
    if expected.ends == ["timeout"] && attack.class() == "cpu" && attack.deadline == DEADLINE {
        attack.deadline /= 2;
    }
    attack
}

impl Verdict {
    /// Compares the outcome of a call with the expectations of `attack` and records the differences.
    fn record(&mut self, attack: &Attack, ended: &Result<Value, ToolError>) {
        let (name, expected) = (&attack.name, &attack.expected);
        let (end, text) = match ended {
            Ok(value) => (String::from("ok"), value.to_string()),
            Err(error) => (error.kind.to_string(), error.message.clone()),
        };
        if expected.ends.contains(&end) {
            let missing = expected.says.iter().filter(|says| !text.contains(says.as_str()));
            self.wrong.extend(missing.map(|says| format!("{name}: {text:?} does not contain {says:?}")));
        } else {
            let difference = format!("{name}: expected {:?}, found {ended:?}", expected.ends);
            // An unexpected timeout: a slow machine, or a hang.
            if end == "timeout" { &mut self.late } else { &mut self.wrong }.push(difference);
            self.crashes |= end == "internal";
        }
        if let (Some(path), Err(error)) = (&expected.path, ended)
            && error.path.as_ref() != Some(path)
        {
            self.wrong.push(format!("{name}: path {:?}", error.path));
        }
        if text.chars().any(|character| character.is_control() && character != '\n' && character != '\t') {
            self.wrong.push(format!("{name}: control characters in {text:?}"));
        }
        if text.contains(CANARY) || text.contains(env!("CARGO_PKG_DESCRIPTION")) {
            self.wrong.push(format!("{name}: exposed a secret: {text:?}"));
        }
        self.escapes = !self.wrong.is_empty() && !self.crashes;
    }
}

/// Runs `attack` and checks that its runner still works afterwards. The best of several times counts.
fn run_attack(runner: &ScriptRunner, attack: &Attack) -> Verdict {
    let normal = Arc::new(script("return function() return 'alive' end"));
    let mut script = Script::new("attack", format!("attacks/{}", attack.name), &attack.source);
    script.is_async = attack.is_async;
    script.memory = Some(MEMORY);
    script.parameters = vec![Parameter::new("word")];
    let fixture = (!attack.allows.is_empty()).then(|| Fixture::new(&attack.source));
    if let Some(fixture) = &fixture {
        fixture.grant(&mut script, &attack.allows);
    }
    let script = Arc::new(script);
    let ends_in_time = !attack.expected.ends.iter().any(|end| end == "timeout");
    let mut verdict = Verdict { took: Duration::MAX, ..Verdict::default() };
    for attempt in 0..ATTEMPTS {
        // On a busy machine, attacks that must end before the deadline get a longer one in the next attempt.
        let deadline = attack.deadline * if ends_in_time { 1 << attempt.min(4) } else { 1 };
        let limit = attack.expected.within.unwrap_or(deadline * 2 + SLACK);
        verdict.late.clear();
        let mut slowest = Duration::ZERO;
        for _ in 0..if attack.expected.twice { 2 } else { 1 } {
            let context = CallContext { timeout: Some(deadline), ..CallContext::default() };
            let arguments = call(json!({"word": "hello"}));
            let started = Instant::now();
            let ended = block_on(runner.value_of(Arc::clone(&script), arguments, context));
            slowest = slowest.max(started.elapsed());
            verdict.record(attack, &ended);
        }
        let started = Instant::now();
        let alive = block_on(runner.value_of(Arc::clone(&normal), call(json!({})), CallContext::default()));
        if alive != Ok(json!("alive")) {
            verdict.crashes = true;
            verdict.wrong.push(format!("{}: the next call returned {alive:?}", attack.name));
        }
        verdict.took = verdict.took.min(slowest);
        if slowest > limit {
            verdict.late.push(format!("{}: took {slowest:?}", attack.name));
        }
        if started.elapsed() > NEXT {
            verdict.late.push(format!("{}: the next call took {:?}", attack.name, started.elapsed()));
        }
        if let Some(damage) = fixture.as_ref().and_then(Fixture::damage) {
            verdict.escapes = true;
            verdict.wrong.push(format!("{}: {damage}", attack.name));
        }
        if verdict.late.is_empty() || !verdict.wrong.is_empty() {
            break;
        }
    }
    verdict.hangs = verdict.took > attack.expected.within.unwrap_or(attack.deadline * 2);
    verdict
}

/// Runs every attack with `isolation` and prints the table.
fn run_all(title: &str, isolation: &Isolation) {
    crate::support::process::set_guard();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 120, "{} attacks", files.len());
    let attacks: Vec<Attack> = files.iter().step_by(step(8)).map(|file| read_attack(file)).collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                // One call at a time: the normal call after an attack shows that the attack has ended.
                let runner = ScriptRunner::new(RunnerOptions {
                    threads: 1,
                    max_threads: 1,
                    isolation: isolation.clone(),
                    ..RunnerOptions::default()
                });
                while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = run_attack(&runner, attack);
                    verdicts.lock().unwrap().push((attack, verdict));
                }
            });
        }
    });
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (attack, verdict) in verdicts.into_inner().unwrap() {
        for name in [attack.class(), "~ all"] {
            let row = rows.entry(name).or_default();
            row.cases += 1;
            row.slowest = row.slowest.max(verdict.took);
            row.share = row.share.max(verdict.took.as_secs_f64() / attack.deadline.as_secs_f64());
            row.hangs += usize::from(verdict.hangs);
            row.crashes += usize::from(verdict.crashes);
            row.escapes += usize::from(verdict.escapes);
        }
        wrong.extend(verdict.wrong.into_iter().chain(verdict.late));
    }
    println!("\n{title}; the default deadline is {} ms", DEADLINE.as_millis());
    println!("class      cases  slowest, ms  of its deadline  hangs  crashes  escapes");
    for (name, row) in &rows {
        let Row { cases, slowest, share, hangs, crashes, escapes } = row;
        let (name, slowest) = (name.trim_start_matches("~ "), slowest.as_millis());
        println!("{name:10} {cases:>5} {slowest:>12} {share:>16.2} {hangs:>6} {crashes:>8} {escapes:>8}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_attack_ends_as_expected_on_a_thread() {
    run_all("on a thread", &Isolation::Threads);
}

#[test]
fn every_attack_ends_as_expected_in_a_process() {
    run_all("in a process", &super::isolated::processes());
}
