//! What `deftool test` writes, in each format.

use std::fmt::Write;

use serde::Serialize;

use super::super::args::TestFormat;
use super::super::output::{clean, cut, paint, print, print_findings, print_json, print_painted, say};
use super::junit::suites;
use super::run::{Failure, FuzzSummary, Kind, Place, TestResult, TestRun, TestSummary};
use crate::diagnostic::render::{JsonFinding, json_report, junit_xml};
use crate::text::{Sources, count, one_line};

/// Most lines of a failure's details, and of what was logged, that people are shown.
const MAX_LINES: usize = 30;
/// Longest of these lines, in characters.
const MAX_LINE: usize = 400;

/// Longest command that makes a failure happen again; `--format json` has it whole.
const MAX_COMMAND: usize = 2_000;

/// Writes the results to stdout and, where that is not for a program, a summary to stderr.
pub(super) fn print_results(run: &TestRun, sources: &Sources, format: TestFormat) {
    match format {
        TestFormat::Human => {
            print_painted(&lines(run));
            print_findings(&run.errors, sources);
            say(&describe(&run.summary));
            if run.results.is_empty() && run.summary.without_examples > 0 {
                say(HOW_TO);
            }
        }
        TestFormat::Json => {
            print_json(&JsonRun::of(run, sources), true);
        }
        TestFormat::Junit => {
            print(&junit_xml(&suites(run, sources)));
            say(&describe(&run.summary));
        }
    }
}

/// The JSON of a run in one line.
pub(super) fn print_json_line(run: &TestRun, sources: &Sources) {
    print_json(&JsonRun::of(run, sources), false);
}

const HOW_TO: &str =
    "an example is a call that the schema must take or refuse; in the spec of a tool with an argument `city`:
  :accepts [(:city \"Paris\")]
  :rejects [(:city 7) ()]";

/// `5 examples of 2 tools: 4 ok, 1 failed; 1 tool without examples`.
pub(super) fn describe(summary: &TestSummary) -> String {
    if let Some(fuzz) = &summary.fuzz {
        return describe_fuzz(summary, fuzz);
    }
    let TestSummary { examples, tools, ok, failed, without_examples, tests, .. } = *summary;
    let in_files = || format!("{} in {}", count(tests, "test"), count(summary.test_files, "file"));
    let mut text = match (examples, tests, without_examples) {
        (0, 0, 0) => String::from("no examples"),
        (0, 0, _) => format!("no examples of {}", count(without_examples, "tool")),
        (0, _, _) => format!("{}:", in_files()),
        (_, 0, _) => format!("{} of {}:", count(examples, "example"), count(tools, "tool")),
        _ => format!("{} of {}, {}:", count(examples, "example"), count(tools, "tool"), in_files()),
    };
    if ok > 0 {
        let _ = write!(text, " {ok} ok");
    }
    if failed > 0 {
        let _ = write!(text, "{} {failed} failed", if ok > 0 { "," } else { "" });
    }
    match (examples + tests, tests) {
        (0, _) => {}
        (_, 0) if without_examples > 0 => {
            let _ = write!(text, "; {} without examples", count(without_examples, "tool"));
        }
        (_, 0) => {}
        _ if summary.untested > 0 => {
            let _ = write!(text, "; {} without examples and tests", count(summary.untested, "tool"));
        }
        _ => {}
    }
    describe_errors(&mut text, summary);
    text
}

fn describe_errors(text: &mut String, summary: &TestSummary) {
    match (summary.errors, summary.left_out) {
        (0, _) => {}
        (errors, 0) => _ = write!(text, "; {}", count(errors, "error")),
        (errors, left_out) => {
            _ = write!(text, "; {}, so {} left out", count(errors, "error"), count_were(left_out));
        }
    }
}

/// `2 tools fuzzed with seed 7, 400 calls and 96 wrong arguments: 1 ok, 2 failed; 1 left out`.
fn describe_fuzz(summary: &TestSummary, fuzz: &FuzzSummary) -> String {
    let mut text = format!(
        "{} fuzzed with seed {}, {} and {} wrong arguments:",
        count(fuzz.tools, "tool"),
        fuzz.seed,
        count(fuzz.calls, "call"),
        fuzz.wrong
    );
    match (summary.ok, summary.failed) {
        (0, 0) => text.push_str(" nothing to say"),
        (ok, 0) => _ = write!(text, " {ok} ok"),
        (0, failed) => _ = write!(text, " {failed} failed"),
        (ok, failed) => _ = write!(text, " {ok} ok, {failed} failed"),
    }
    if fuzz.left_out > 0 {
        let _ = write!(text, "; {} left out", fuzz.left_out);
    }
    describe_errors(&mut text, summary);
    text
}

fn count_were(tools: usize) -> String {
    format!("{} {}", count(tools, "tool"), if tools == 1 { "was" } else { "were" })
}

/// A line a test, `ok   get_weather accepts 1 specs/weather.eld:12:12`, and below a failing one what there is to say.
pub(super) fn lines(run: &TestRun) -> String {
    let mut text = String::new();
    for result in &run.results {
        let tool = result.tool.as_ref().map_or_else(String::new, |tool| format!("{tool} "));
        let (mark, at, why) = match &result.failure {
            None => (paint("ok", anstyle::AnsiColor::Green) + "  ", &result.at, String::new()),
            Some(Failure { at, message, .. }) => {
                (paint("FAIL", anstyle::AnsiColor::Red), at, format!(": {message}"))
            }
        };
        let rest = one_line(format!("{tool}{} {at}{why}", result.name));
        let _ = writeln!(text, "{mark} {rest}");
        for line in more_lines(result) {
            let _ = writeln!(text, "     {line}");
        }
    }
    if !run.results.is_empty() && !run.errors.is_empty() {
        text.push('\n');
    }
    text
}

/// What there is to say of a failing test beside why it failed.
pub(super) fn more_lines(result: &TestResult) -> Vec<String> {
    let Some(failure) = &result.failure else { return Vec::new() };
    // A command is to be copied whole.
    let longest = if result.kind == Kind::Fuzz { MAX_COMMAND } else { MAX_LINE };
    let shown = |line: &String| one_line(cut(&clean(line).replace('\t', " "), longest));
    let cut_off = |number: usize| number.checked_sub(MAX_LINES).filter(|more| *more > 0);
    let mut lines: Vec<String> = failure.details.iter().take(MAX_LINES).map(shown).collect();
    lines.extend(cut_off(failure.details.len()).map(|more| format!("and {}", count(more, "more line"))));
    // What was said last is nearest to the failure.
    let skipped = cut_off(result.log.len()).unwrap_or(0);
    if skipped > 0 {
        lines.push(format!("logged {} before", count(skipped, "line")));
    }
    lines.extend(result.log.iter().skip(skipped).map(|line| format!("logged {}", shown(line))));
    lines
}

/// The contract of `--format json`: one object.
#[derive(Serialize)]
struct JsonRun<'r> {
    /// Every test that was run, in source order within a file.
    results: Vec<JsonResult<'r>>,
    /// The errors that kept something from being run, as `check --format json` writes them.
    findings: Vec<JsonFinding>,
    /// How many there are of each.
    summary: TestSummary,
}

/// One test. Lines and columns count from 1, columns in characters, ends are exclusive.
#[derive(Serialize)]
struct JsonResult<'r> {
    /// `example`, `script` or `fuzz`.
    kind: &'static str,
    /// The tool that it is about; absent of a script's test.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'r str>,
    /// `accepts 1`, `rejects 2`: the key and which of it; the name of a script's test.
    name: &'r str,
    /// Whether it is as it should be.
    ok: bool,
    /// Where it stands.
    #[serde(flatten)]
    place: JsonPlace<'r>,
    /// Why it failed, in one clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'r str>,
    /// Why the schema refuses it; absent where the schema takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<JsonViolation<'r>>,
    /// Of a script's test and of fuzzing.
    #[serde(flatten)]
    more: Option<JsonMore<'r>>,
}

/// What there is to say of a script that was run.
#[derive(Serialize)]
struct JsonMore<'r> {
    /// The tools that the test called, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<&'r str>>,
    /// `expectation`, or what sort of error ended it, as in `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    /// Where the failure shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<JsonPlace<'r>>,
    /// More on the failure: further differences, a traceback, how to make it happen again.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'r [String],
    /// What was logged.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    log: &'r [String],
    /// How long it took.
    elapsed_ms: f64,
}

/// A place in a file.
#[derive(Serialize)]
struct JsonPlace<'r> {
    /// The file as the user named it.
    file: &'r str,
    /// Line of the first character.
    line: usize,
    /// Column of the first character.
    column: usize,
    /// Line of the end.
    end_line: usize,
    /// Column after the last character.
    end_column: usize,
}

/// Why a schema refuses an example.
#[derive(Serialize)]
struct JsonViolation<'r> {
    /// Path into the arguments, as in `.items[2].name`; empty for the arguments as a whole.
    path: &'r str,
    /// What is wrong there, in one clause.
    message: &'r str,
    /// Line of the guilty value.
    line: usize,
    /// Column of the guilty value.
    column: usize,
}

impl<'r> JsonRun<'r> {
    fn of(run: &'r TestRun, sources: &'r Sources) -> Self {
        Self {
            results: run.results.iter().map(JsonResult::of).collect(),
            findings: json_report(&run.errors, sources).findings,
            summary: run.summary,
        }
    }
}

impl<'r> JsonResult<'r> {
    fn of(result: &'r TestResult) -> Self {
        let violation = result.violation.as_ref().map(|(at, violation)| JsonViolation {
            path: &violation.path,
            message: &violation.message,
            line: at.start.line,
            column: at.start.column,
        });
        let failure = result.failure.as_ref();
        let more = (result.kind != Kind::Example).then(|| JsonMore {
            tools: (result.kind == Kind::Script).then(|| result.called.iter().map(String::as_str).collect()),
            failure: failure.map(|failure| failure.kind),
            failed_at: failure.map(|failure| JsonPlace::of(&failure.at)),
            details: failure.map(|failure| failure.details.as_slice()).unwrap_or_default(),
            log: if failure.is_some() { &result.log } else { &[] },
            elapsed_ms: result.elapsed.map_or(0.0, |elapsed| (elapsed.as_secs_f64() * 1e6).round() / 1e3),
        });
        Self {
            kind: result.kind.as_str(),
            tool: result.tool.as_deref(),
            name: &result.name,
            ok: failure.is_none(),
            place: JsonPlace::of(&result.at),
            message: failure.map(|failure| failure.message.as_str()),
            violation,
            more,
        }
    }
}

impl<'r> JsonPlace<'r> {
    fn of(place: &'r Place) -> Self {
        Self {
            file: &place.file,
            line: place.start.line,
            column: place.start.column,
            end_line: place.end.line,
            end_column: place.end.column,
        }
    }
}
