//! Hostile sources that must not crash the compiler.

use deftool_test_support::cpu::CpuClock;
use deftool_test_support::step;

use super::*;

/// Returns hostile sources of up to about `size` bytes.
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
        // Each jump leads to the next: an optimizer that follows all of them takes seconds.
        ("loops left at once", many("while 1 do break end ", 47_000)),
        ("repeats left at once", many("repeat break until x ", 47_000)),
        ("loops in loops left at once", many("while 1 do while 1 do break end break end ", 25_000)),
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
    for (name, source) in hostile_sources(1 << 17) {
        let clock = CpuClock::start();
        let contract = check_script(&script(&source));
        let took = clock.elapsed();
        println!(
            "{name}: {took:?} {}",
            match &contract {
                Ok(contract) => format!("{contract:?}").chars().take(100).collect::<String>(),
                Err(problem) => problem.to_string(),
            }
        );
        assert!(took < Duration::from_secs(30), "{name}: {took:?}");
        let is_late = contract.is_err_and(|problem| problem.message.contains("takes longer"));
        assert!(!is_late, "{name}");
    }
}

/// A valid script truncated at any byte either has a compile error or runs to its end.
#[test]
fn a_truncated_script_has_an_error_or_runs() {
    let whole = include_str!("cut_off.lua");
    let runner = runner();
    let mut compiled = 0;
    for end in 0..=whole.len() {
        let cut = Arc::new(Script::new("cut", "scripts/cut.lua", &whole.as_bytes()[..end]));
        match check_script(&cut) {
            Err(problem) => assert!(!problem.message.is_empty(), "at {end}"),
            Ok(_) => {
                compiled += 1;
                let ended = block_on(runner.value_of(cut, call(json!({})), CallContext::default()));
                let kind = ended.map_err(|error| error.kind);
                assert!(
                    matches!(kind, Ok(_) | Err(ToolErrorKind::Load | ToolErrorKind::Script)),
                    "at {end}: {kind:?}"
                );
            }
        }
    }
    assert!(compiled > 3 && compiled < whole.len() / 2, "{compiled}");
}

#[test]
fn a_source_above_the_length_limit_is_rejected_unread() {
    for (piece, count) in [("local a\n", 2_000_000), ("elseif x then ", 1_000_000), ("-", 14 << 20)] {
        let script = script(&piece.repeat(count));
        let problem = check_script(&script).unwrap_err();
        assert!(problem.message.contains("longer than 1024 KiB"), "{problem}");
    }
}

/// A crash of the compiler would end the child process.
#[test]
fn a_hostile_source_does_not_crash_a_child_process() {
    let options = RunnerOptions {
        threads: 1,
        max_threads: 1,
        isolation: isolated::processes(),
        ..RunnerOptions::default()
    };
    let runner = ScriptRunner::new(options);
    for (name, source) in hostile_sources((1 << 20) / step(8)) {
        let context = CallContext { timeout: Some(DEADLINE), ..CallContext::default() };
        let ended = block_on(runner.value_of(Arc::new(script(&source)), call(json!({})), context));
        let kind = ended.map_err(|error| error.kind);
        assert!(
            matches!(
                kind,
                Ok(_)
                    | Err(ToolErrorKind::Load
                        | ToolErrorKind::Script
                        | ToolErrorKind::Memory
                        | ToolErrorKind::Timeout)
            ),
            "{name}: {kind:?}"
        );
    }
}
