//! The output of `deftool test` in each format.

use std::fmt::Write;

use deftool_lang::diagnostic::render::{JsonFinding, json_report, junit_xml};
use deftool_lang::text::{Sources, count, one_line};
use deftool_project::Touched;
use serde::Serialize;
use serde_json::Value;

use super::TestFormat;
use super::coverage::CoverageReport;
use super::junit::suites;
use super::run::{Failure, Kind, SourceRange, TestResult, TestRun, TestSummary, detail_lines};
use crate::cli::terminal::output::{
    eprint_progress, is_quiet, paint, print, print_findings, print_json, print_styled,
};

/// Writes the results to stdout and, except for JSON, a summary to stderr.
pub(super) fn print_results(
    run: &TestRun,
    coverage: Option<&CoverageReport>,
    sources: &Sources,
    format: TestFormat,
) {
    match format {
        TestFormat::Human => {
            print_styled(&lines(run));
            print_findings(&run.errors, sources);
            print_styled(&coverage.map_or_else(String::new, CoverageReport::lines));
            eprint_progress(&describe(&run.summary));
            if let Some(coverage) = coverage {
                eprint_progress(&coverage.describe());
            }
            if run.results.is_empty() && run.summary.without_examples > 0 {
                eprint_progress(EXAMPLES_HELP);
            }
        }
        TestFormat::Json => {
            print_json(&JsonRun::of(run, coverage, sources), true);
        }
        TestFormat::Junit => {
            print(&junit_xml(&suites(run, sources)));
            eprint_progress(&describe(&run.summary));
        }
    }
}

/// Prints the tests, which were not run.
pub(super) fn print_list(run: &TestRun, sources: &Sources, format: TestFormat) {
    let tests = run.results.iter();
    if format == TestFormat::Json {
        let findings = json_report(&run.errors, sources).findings;
        print_json(&JsonList { tests: tests.map(JsonTest::of).collect(), findings }, true);
    } else {
        for test in tests {
            print(&(one_line(title(test, &test.at)) + "\n"));
        }
        print_findings(&run.errors, sources);
    }
}

/// Returns the tool and the name of a test, and a location.
fn title(test: &TestResult, at: &SourceRange) -> String {
    let tool = test.tool.as_ref().map_or_else(String::new, |tool| format!("{tool} "));
    format!("{tool}{} {at}", test.name)
}

/// Prints the results as one line of JSON.
pub(super) fn print_json_line(run: &TestRun, sources: &Sources) {
    print_json(&JsonRun::of(run, None, sources), false);
}

/// Explains how to write examples.
const EXAMPLES_HELP: &str =
    "help: examples are calls that the schema must accept or reject; for a tool with an argument `city`:
  :accepts [(:city \"Paris\")]
  :rejects [(:city 7) ()]";

/// Describes the result, as in `5 examples of 2 tools: 4 ok, 1 failed; 1 tool without examples`.
pub(super) fn describe(summary: &TestSummary) -> String {
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
    if summary.broken_scripts > 0 {
        let verb = if summary.broken_scripts == 1 { "does" } else { "do" };
        let _ = write!(text, "; {} {verb} not load", count(summary.broken_scripts, "script"));
    }
    describe_errors(&mut text, summary);
    text
}

fn describe_errors(text: &mut String, summary: &TestSummary) {
    match (summary.errors, summary.left_out) {
        (0, _) => {}
        (errors, 0) => _ = write!(text, "; {}", count(errors, "error")),
        (errors, left_out) => {
            _ = write!(text, "; {}, {} skipped", count(errors, "error"), count(left_out, "tool"));
        }
    }
}

/// Returns one line per test, with `--quiet` per failed test, as in `ok   get_weather accepts 1 specs/weather.eld:12:12`, with details below failures.
pub(super) fn lines(run: &TestRun) -> String {
    let mut text = String::new();
    for result in run.results.iter().filter(|result| !is_quiet() || result.failure.is_some()) {
        let (mark, at, why) = match &result.failure {
            None => (paint("ok", anstyle::AnsiColor::Green) + "  ", &result.at, String::new()),
            Some(Failure { at, message, .. }) => {
                (paint("FAIL", anstyle::AnsiColor::Red), at, format!(": {message}"))
            }
        };
        let rest = one_line(title(result, at) + &why);
        let _ = writeln!(text, "{mark} {rest}");
        for line in detail_lines(result) {
            let _ = writeln!(text, "     {line}");
        }
    }
    if !text.is_empty() && !run.errors.is_empty() {
        text.push('\n');
    }
    text
}

/// The output of `--format json`.
#[derive(Serialize)]
struct JsonRun<'r> {
    /// All tests, in source order within a file.
    results: Vec<JsonResult<'r>>,
    /// Errors that prevented tests from running, in the format of `check --format json`.
    findings: Vec<JsonFinding>,
    /// The number of results.
    summary: TestSummary,
    /// What asks touch; only with `--coverage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<JsonCoverage<'r>>,
}

/// The member `coverage`.
#[derive(Serialize)]
struct JsonCoverage<'r> {
    /// The tools that an ask expects a call of.
    tools: JsonTouched,
    /// The arguments that an expected call states.
    arguments: JsonTouched,
    /// The values in `:enum` that an expected call states.
    values: JsonTouched,
    /// What no ask touches. The parts of something that is untouched are not listed.
    untouched: Vec<JsonUntouched<'r>>,
}

/// How many of something asks touch.
#[derive(Serialize)]
struct JsonTouched {
    /// Those that are touched.
    touched: usize,
    /// All.
    total: usize,
}

/// A tool, an argument of a touched tool, or a value of a touched argument.
#[derive(Serialize)]
struct JsonUntouched<'r> {
    tool: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'r Value>,
    /// The location of its definition.
    #[serde(flatten)]
    range: JsonRange<'r>,
}

/// The output of `--list --format json`.
#[derive(Serialize)]
struct JsonList<'r> {
    /// All tests, in source order within a file.
    tests: Vec<JsonTest<'r>>,
    /// Errors that prevent tests from running, in the format of `check --format json`.
    findings: Vec<JsonFinding>,
}

/// A test. Members as in [`JsonResult`].
#[derive(Serialize)]
struct JsonTest<'r> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'r str>,
    name: &'r str,
    #[serde(flatten)]
    range: JsonRange<'r>,
}

impl<'r> JsonTest<'r> {
    fn of(test: &'r TestResult) -> Self {
        Self {
            kind: test.kind.as_str(),
            tool: test.tool.as_deref(),
            name: &test.name,
            range: JsonRange::of(&test.at),
        }
    }
}

/// A test result. Lines and columns start at 1, columns count characters, ends are exclusive.
#[derive(Serialize)]
struct JsonResult<'r> {
    /// `example`, `load` or `script`.
    kind: &'static str,
    /// The tested tool; absent for script tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'r str>,
    /// The key and number of an example, as in `accepts 1`, or the name of a script test.
    name: &'r str,
    /// Whether the test passed.
    ok: bool,
    /// The location of the test.
    #[serde(flatten)]
    range: JsonRange<'r>,
    /// The failure message, one clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'r str>,
    /// The reason why the schema rejects the arguments; absent if it accepts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<JsonViolation<'r>>,
    /// Data of script tests.
    #[serde(flatten)]
    more: Option<JsonMore<'r>>,
}

/// Data of a script run.
#[derive(Serialize)]
struct JsonMore<'r> {
    /// The names of the tools that the test called.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<&'r str>>,
    /// `expectation`, or the kind of the error, as in `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    /// The location of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<JsonRange<'r>>,
    /// Details of the failure: more differences, a traceback, a command that reproduces it.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'r [String],
    /// Log lines.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    log: &'r [String],
    /// The duration in milliseconds.
    elapsed_ms: f64,
}

/// A range in a file.
#[derive(Serialize)]
struct JsonRange<'r> {
    /// The file name as given by the user.
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

/// The reason why a schema rejects an example.
#[derive(Serialize)]
struct JsonViolation<'r> {
    /// Path into the arguments, as in `.items[2].name`; empty for the whole arguments.
    path: &'r str,
    /// The message, one clause.
    message: &'r str,
    /// Line of the invalid value.
    line: usize,
    /// Column of the invalid value.
    column: usize,
}

impl<'r> JsonRun<'r> {
    fn of(run: &'r TestRun, coverage: Option<&'r CoverageReport>, sources: &'r Sources) -> Self {
        Self {
            results: run.results.iter().map(JsonResult::of).collect(),
            findings: json_report(&run.errors, sources).findings,
            summary: run.summary,
            coverage: coverage.map(JsonCoverage::of),
        }
    }
}

impl<'r> JsonCoverage<'r> {
    fn of(coverage: &'r CoverageReport) -> Self {
        let touched = |Touched { touched, total }: Touched| JsonTouched { touched, total };
        let untouched = coverage.untouched.iter().map(|part| JsonUntouched {
            tool: &part.tool,
            argument: part.argument.as_deref(),
            value: part.value.as_ref(),
            range: JsonRange::of(&part.at),
        });
        Self {
            tools: touched(coverage.tools),
            arguments: touched(coverage.arguments),
            values: touched(coverage.values),
            untouched: untouched.collect(),
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
        // Only examples with a result are called.
        let is_called = result.kind != Kind::Example || result.elapsed.is_some();
        let more = is_called.then(|| JsonMore {
            tools: (result.kind == Kind::Script).then(|| result.called.iter().map(String::as_str).collect()),
            failure: failure.map(|failure| failure.kind),
            failed_at: failure.map(|failure| JsonRange::of(&failure.at)),
            details: failure.map(|failure| failure.details.as_slice()).unwrap_or_default(),
            log: if failure.is_some() { &result.log } else { &[] },
            elapsed_ms: result.elapsed.map_or(0.0, |elapsed| (elapsed.as_secs_f64() * 1e6).round() / 1e3),
        });
        Self {
            kind: result.kind.as_str(),
            tool: result.tool.as_deref(),
            name: &result.name,
            ok: failure.is_none(),
            range: JsonRange::of(&result.at),
            message: failure.map(|failure| failure.message.as_str()),
            violation,
            more,
        }
    }
}

impl<'r> JsonRange<'r> {
    fn of(range: &'r SourceRange) -> Self {
        Self {
            file: &range.file,
            line: range.start.line,
            column: range.start.column,
            end_line: range.end.line,
            end_column: range.end.column,
        }
    }
}
