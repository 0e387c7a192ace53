//! Attacks, each with its expected end: scripts as files, and sources that the compiler must survive.

use super::fixture::{CANARY, Fixture};
use super::*;

/// How often a measured time is taken, to be in time once.
const ATTEMPTS: usize = 5;

/// What the leading comments of an attack say.
#[derive(Default)]
struct Expectation {
    ends: Vec<String>,
    says: Vec<String>,
    path: Option<String>,
    is_async: bool,
    twice: bool,
    within: Option<Duration>,
    deadline: Option<Duration>,
    /// What the spec allows, each as a key and a grant in the [`Fixture`].
    allows: Vec<(String, String)>,
}

fn expectation(source: &str) -> Expectation {
    let mut expected = Expectation::default();
    for line in source.lines() {
        let Some(comment) = line.strip_prefix("-- ") else { break };
        let Some((key, value)) = comment.split_once(": ") else { continue };
        match key {
            "expect" => expected.ends = value.split(" or ").map(str::to_owned).collect(),
            "says" => expected.says.push(value.to_owned()),
            "path" => expected.path = Some(value.to_owned()),
            "async" => expected.is_async = value == "true",
            "twice" => expected.twice = value == "true",
            "deadline" => expected.deadline = Some(Duration::from_millis(value.parse().unwrap())),
            "read" | "write" | "run" | "env" => expected.allows.push((key.to_owned(), value.to_owned())),
            "within" => expected.within = Some(Duration::from_millis(value.parse().unwrap())),
            _ => {}
        }
    }
    expected
}

/// Adds to `wrong` what is not as `expected` in how an attack `ended`.
fn judge(name: &str, expected: &Expectation, ended: &Result<Value, ToolError>, wrong: &mut Vec<String>) {
    let (end, text) = match ended {
        Ok(value) => (String::from("ok"), value.to_string()),
        Err(error) => (error.kind.to_string(), error.message.clone()),
    };
    if !expected.ends.contains(&end) {
        wrong.push(format!("{name}: expected {:?}, ended with {ended:?}", expected.ends));
    }
    for says in &expected.says {
        if !text.contains(says.as_str()) {
            wrong.push(format!("{name}: {text:?} does not say {says:?}"));
        }
    }
    if let (Some(path), Err(error)) = (&expected.path, ended)
        && error.path.as_ref() != Some(path)
    {
        wrong.push(format!("{name}: path {:?}", error.path));
    }
    if text.contains(CANARY) || text.contains(env!("CARGO_PKG_DESCRIPTION")) {
        wrong.push(format!("{name}: a secret came out: {text:?}"));
    }
    if text.chars().any(|character| character.is_control() && character != '\n' && character != '\t') {
        wrong.push(format!("{name}: control characters in {text:?}"));
    }
}

#[test]
fn every_attack_ends_as_expected_and_the_runner_lives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 40, "{} attacks", files.len());
    // One thread: the normal call after an attack shows that the attack has left it.
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let normal = Arc::new(script("return function() return 'alive' end"));
    let mut wrong = Vec::new();
    let mut slowest = Duration::ZERO;
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&file).unwrap();
        let expected = expectation(&String::from_utf8_lossy(&bytes));
        let mut attack = Script::new("attack", format!("attacks/{name}"), &bytes);
        attack.is_async = expected.is_async;
        attack.memory = Some(MEMORY);
        attack.parameters = vec![Parameter::new("word")];
        let fixture = (!expected.allows.is_empty()).then(|| Fixture::new(&bytes));
        if let Some(fixture) = &fixture {
            fixture.grant(&mut attack, &expected.allows);
        }
        let attack = Arc::new(attack);
        let deadline = expected.deadline.unwrap_or(DEADLINE);
        let limit = expected.within.unwrap_or(deadline * 2 + Duration::from_millis(150));
        // A loaded machine may be slow once: the best time of a few counts.
        let mut late = Vec::new();
        for _ in 0..ATTEMPTS {
            late.clear();
            for _ in 0..if expected.twice { 2 } else { 1 } {
                let context = CallContext { timeout: Some(deadline), ..CallContext::default() };
                let arguments = call(json!({"word": "hello"}));
                let started = Instant::now();
                let ended = block_on(runner.call(Arc::clone(&attack), arguments, context));
                let took = started.elapsed();
                if !matches!(&ended, Err(error) if error.kind == ToolErrorKind::Load) {
                    slowest = slowest.max(took);
                }
                if took > limit {
                    late.push(format!("{name}: took {took:?}: {ended:?}"));
                }
                let timed_out = matches!(&ended, Err(error) if error.kind == ToolErrorKind::Timeout);
                let slow = timed_out && !expected.ends.iter().any(|end| end == "timeout");
                judge(&name, &expected, &ended, if slow { &mut late } else { &mut wrong });
            }
            let started = Instant::now();
            let alive = block_on(runner.call(Arc::clone(&normal), call(json!({})), CallContext::default()));
            if alive != Ok(json!("alive")) {
                wrong.push(format!("{name}: afterwards {alive:?}"));
            }
            if started.elapsed() > Duration::from_millis(250) {
                late.push(format!("{name}: afterwards in {:?}", started.elapsed()));
            }
            if let Some(fixture) = &fixture {
                wrong.extend(fixture.damage().map(|damage| format!("{name}: {damage}")));
            }
            if late.is_empty() {
                break;
            }
        }
        wrong.append(&mut late);
    }
    println!("slowest attack: {slowest:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sources of about `size` bytes at most that are hard to read.
pub(crate) fn hostile_sources(size: usize) -> Vec<(&'static str, String)> {
    let many = |piece: &str, most: usize| piece.repeat(most.min((size / piece.len()).saturating_sub(10)));
    vec![
        ("parentheses", format!("return {}", many("(", 200_000))),
        ("closed parentheses", format!("return {}1{}", many("(", 200_000), many(")", 200_000))),
        ("tables", format!("return {}{}", many("{", 200_000), many("}", 200_000))),
        ("functions", format!("return {}", many("function() return ", 40_000))),
        (
            "closed functions",
            format!("return {} 1 {}", many("function() return ", 30_000), many(" end", 30_000)),
        ),
        ("ifs", format!("{}{}", many("if x then ", 50_000), many("end ", 50_000))),
        ("elseifs", format!("if x then {}end", many("elseif x then ", 60_000))),
        ("unary", format!("return {}1", many("not ", 200_000))),
        ("minus", format!("return {}1", many("- ", 400_000))),
        ("concat", format!("return {}'a'", many("'a'..", 150_000))),
        ("sum", format!("return {}1", many("1+", 400_000))),
        ("sum of names", format!("return {}a", many("a+", 400_000))),
        ("and", format!("return {}a", many("a and ", 150_000))),
        ("power", format!("return {}a", many("a^", 400_000))),
        ("calls", format!("return f{}", many("()", 400_000))),
        ("string calls", format!("return f{}", many("''", 400_000))),
        ("indices", format!("return f{}", many(".a", 400_000))),
        ("methods", format!("return f{}", many(":a()", 200_000))),
        ("locals", many("local a\n", 120_000)),
        ("locals in one", format!("local a{}", many(",a", 400_000))),
        ("assignments", format!("a{} = 1", many(",a", 400_000))),
        ("returns", format!("return a{}", many(",a", 400_000))),
        ("parameters", format!("return function(a{}) end", many(",a", 400_000))),
        ("arguments", format!("return f(1{})", many(",1", 400_000))),
        ("items", format!("return {{1{}}}", many(",1", 400_000))),
        ("empty tables", format!("return {{{}}}", many("{},", 300_000))),
        ("keys", format!("return {{{}}}", many("a=1,", 250_000))),
        ("globals", many("a=b ", 250_000)),
        ("blocks", format!("{}{}", many("do ", 120_000), many("end ", 120_000))),
        ("loops", format!("{}{}", many("while x do ", 60_000), many("end ", 60_000))),
        ("repeats", many("repeat ", 140_000)),
        ("types", format!("local x: {}", many("{", 200_000))),
        ("type functions", format!("local x: {}", many("(", 200_000))),
        ("type unions", format!("local x: a{}", many("|a", 200_000))),
        ("optional types", format!("local x: a{}", many("?", 400_000))),
        ("generic types", format!("local x: {}", many("a<", 200_000))),
        ("if expressions", format!("return {}", many("if x then ", 100_000))),
        ("else expressions", format!("return {} 1", many("if x then 1 else ", 60_000))),
        ("interpolation", format!("return {}", many("`{", 200_000))),
        ("long bracket", format!("return [{}[", many("=", 500_000))),
        ("casts", format!("return a{}", many("::a", 200_000))),
        ("labels", many("::a:: ", 100_000)),
        ("function statements", many("function f() end ", 60_000)),
        ("captures", format!("local a {}", many("function f() return a end ", 30_000))),
        ("attributes", format!("{}function f() end", many("@native ", 100_000))),
        ("nulls", "\0".repeat(1000)),
        ("long name", format!("return {}", many("a", 1_000_000))),
        ("long number", format!("return {}", many("9", 1_000_000))),
        ("long string", format!("return '{}'", many("a", 1_000_000))),
        ("escapes", format!("return '{}'", many("\\u{10FFFF}", 100_000))),
        ("broken bytes", String::from("return '\u{FFFD}'")),
    ]
}

#[test]
fn a_hostile_source_does_not_crash_the_compiler() {
    for (name, source) in hostile_sources(1 << 20) {
        let started = Instant::now();
        let contract = check_script(&script(&source));
        let took = started.elapsed();
        println!(
            "{name}: {took:?} {}",
            match &contract {
                Ok(contract) => format!("{contract:?}").chars().take(100).collect::<String>(),
                Err(problem) => problem.to_string(),
            }
        );
        assert!(took < Duration::from_secs(5), "{name}: {took:?}");
    }
}
