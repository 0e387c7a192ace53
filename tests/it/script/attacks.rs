//! Attacks, each with its expected end: scripts as files, run on a thread and in a child process.
//!
//! What a file's leading comments say: `expect: KIND or KIND` (how the call ends), `says: TEXT` (in the result or the message),
//! `path: PATH` (of the error), `async: true`, `twice: true` (called twice, with the same end), `within: MS` (a time limit of its own),
//! and what the spec allows: `read: NAME`, `write: NAME`, `net: HOST`, `run: PROGRAM`, `env: NAME`. Paths are those of a small
//! project: `notes/` with a file in it, `out/`, and [`CANARY`] in a file beside them that nothing grants.
//!
//! `cargo test --test it -- script::attacks --nocapture` prints the table of each way to run them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use deftool::script::Isolation;

use super::*;

/// How often a measured time is taken, to be in time once.
const ATTEMPTS: usize = 5;
/// What a call may take beyond twice its deadline before the test fails: the machine has other things to do. The table
/// counts as a hang what took more than twice its deadline.
const SLACK: Duration = Duration::from_millis(600);
/// How soon after an attack the next call is to be answered.
const NEXT: Duration = Duration::from_millis(500);
/// What no script may read.
const CANARY: &str = "canary-5eb63bbbe01eeed0";
/// Attacks at a time: one for each processor of a small machine.
const WORKERS: usize = 2;

/// One file.
struct Attack {
    name: String,
    script: Arc<Script>,
    expected: Expectation,
}

impl Attack {
    /// The part of the name before the first `_`: `cpu`, `memory`, `escape` and so on.
    fn class(&self) -> &str {
        self.name.split('_').next().unwrap()
    }
}

/// What the leading comments of an attack say.
#[derive(Default)]
struct Expectation {
    ends: Vec<String>,
    says: Vec<String>,
    path: Option<String>,
    twice: bool,
    within: Option<Duration>,
}

/// A line of the table.
#[derive(Default)]
struct Row {
    cases: usize,
    slowest: Duration,
    hangs: usize,
    crashes: usize,
    escapes: usize,
}

/// What became of one attack.
#[derive(Default)]
struct Verdict {
    wrong: Vec<String>,
    /// As `wrong`, but of time, and so only if it is so every time.
    late: Vec<String>,
    took: Duration,
    hangs: bool,
    crashes: bool,
    escapes: bool,
}

fn read_attack(file: &Path, project: &Path) -> Attack {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let bytes = std::fs::read(file).unwrap();
    let mut expected = Expectation::default();
    let mut script = Script::new("attack", format!("attacks/{name}"), &bytes);
    script.memory = Some(MEMORY);
    script.parameters = vec![Parameter::new("word")];
    script.root = Some(project.to_owned());
    let source = String::from_utf8_lossy(&bytes);
    let comments = source.lines().map_while(|line| line.strip_prefix("-- "));
    for (key, value) in comments.filter_map(|comment| comment.split_once(": ")) {
        let text = || value.to_owned();
        match key {
            "expect" => expected.ends = value.split(" or ").map(str::to_owned).collect(),
            "says" => expected.says.push(text()),
            "path" => expected.path = Some(text()),
            "twice" => expected.twice = value == "true",
            "within" => expected.within = Some(Duration::from_millis(value.parse().unwrap())),
            "async" => script.is_async = value == "true",
            "read" => script.permissions.read.push(PathGrant::new(value, project.join(value))),
            "write" => script.permissions.write.push(PathGrant::new(value, project.join(value))),
            "net" => script.permissions.net.push(text()),
            "run" => script.permissions.run.push(text()),
            "env" => script.permissions.env.push(text()),
            _ => {}
        }
    }
    assert!(!expected.ends.is_empty(), "{name} does not say how it ends");
    Attack { name, script: Arc::new(script), expected }
}

/// A project with something to read and something not to.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("p/notes/today.md", "nothing new"),
        ("p/out/old.md", "old"),
        ("p/secret.txt", CANARY),
        ("secret.txt", CANARY),
    ] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

impl Verdict {
    /// Adds what is not as expected in how a call of `attack` `ended`.
    fn judge(&mut self, attack: &Attack, ended: &Result<Value, ToolError>) {
        let (name, expected) = (&attack.name, &attack.expected);
        let (end, text) = match ended {
            Ok(value) => (String::from("ok"), value.to_string()),
            Err(error) => (error.kind.to_string(), error.message.clone()),
        };
        if expected.ends.contains(&end) {
            let unsaid = expected.says.iter().filter(|says| !text.contains(says.as_str()));
            self.wrong.extend(unsaid.map(|says| format!("{name}: {text:?} does not say {says:?}")));
        } else {
            let told = format!("{name}: expected {:?}, ended with {ended:?}", expected.ends);
            // Out of time where time is not the matter: a slow machine, or a hang.
            if end == "timeout" { &mut self.late } else { &mut self.wrong }.push(told);
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
        if format!("{ended:?}").contains(CANARY) {
            self.wrong.push(format!("{name}: read what it may not: {ended:?}"));
        }
        self.escapes = !self.wrong.is_empty() && !self.crashes;
    }
}

/// Runs `attack` and looks whether its runner is well afterwards; the best of a few times counts.
fn strike(runner: &ScriptRunner, attack: &Attack) -> Verdict {
    let normal = Arc::new(script("return function() return 'alive' end"));
    let limit = attack.expected.within.unwrap_or(DEADLINE * 2 + SLACK);
    let mut verdict = Verdict { took: Duration::MAX, ..Verdict::default() };
    for _ in 0..ATTEMPTS {
        verdict.late.clear();
        let mut slowest = Duration::ZERO;
        for _ in 0..if attack.expected.twice { 2 } else { 1 } {
            let context = CallContext { timeout: Some(DEADLINE), ..CallContext::default() };
            let arguments = call(json!({"word": "hello"}));
            let started = Instant::now();
            let ended = block_on(runner.call(Arc::clone(&attack.script), arguments, context));
            slowest = slowest.max(started.elapsed());
            verdict.judge(attack, &ended);
        }
        let started = Instant::now();
        let alive = block_on(runner.call(Arc::clone(&normal), call(json!({})), CallContext::default()));
        if alive != Ok(json!("alive")) {
            verdict.crashes = true;
            verdict.wrong.push(format!("{}: afterwards {alive:?}", attack.name));
        }
        verdict.took = verdict.took.min(slowest);
        if slowest > limit {
            verdict.late.push(format!("{}: took {slowest:?}", attack.name));
        }
        if started.elapsed() > NEXT {
            verdict.late.push(format!("{}: afterwards in {:?}", attack.name, started.elapsed()));
        }
        if verdict.late.is_empty() || !verdict.wrong.is_empty() {
            break;
        }
    }
    verdict.hangs = verdict.took > attack.expected.within.unwrap_or(DEADLINE * 2);
    verdict
}

/// Runs every attack with `isolation` and prints the table.
fn strike_all(title: &str, isolation: &Isolation) {
    let project = project();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let attacks: Vec<Attack> =
        files.iter().map(|file| read_attack(file, &project.path().join("p"))).collect();
    assert!(attacks.len() >= 120, "{} attacks", attacks.len());
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                // One place for calls: the normal call after an attack shows that the attack has left it.
                let runner = ScriptRunner::new(RunnerOptions {
                    threads: 1,
                    max_threads: 1,
                    isolation: isolation.clone(),
                    ..RunnerOptions::default()
                });
                while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = strike(&runner, attack);
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
            row.hangs += usize::from(verdict.hangs);
            row.crashes += usize::from(verdict.crashes);
            row.escapes += usize::from(verdict.escapes);
        }
        wrong.extend(verdict.wrong.into_iter().chain(verdict.late));
    }
    println!("\n{title}: deadline {} ms", DEADLINE.as_millis());
    println!(
        "{:10} {:>5} {:>12} {:>6} {:>8} {:>8}",
        "class", "cases", "slowest, ms", "hangs", "crashes", "escapes"
    );
    for (name, row) in &rows {
        let (name, slowest) = (name.trim_start_matches("~ "), row.slowest.as_millis());
        println!(
            "{name:10} {:>5} {slowest:>12} {:>6} {:>8} {:>8}",
            row.cases, row.hangs, row.crashes, row.escapes
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_attack_ends_as_expected_on_a_thread() {
    strike_all("on a thread", &Isolation::Threads);
}

#[test]
fn every_attack_ends_as_expected_in_a_process() {
    strike_all("in a process", &super::isolated::processes());
}
