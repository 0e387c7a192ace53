//! What `deftool test` writes, in each format.

use std::fmt::Write;

use serde::Serialize;

use super::args::TestFormat;
use super::output::{paint, print, print_findings, print_painted, say};
use super::test_run::{TestResult, TestRun, TestSummary};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::render::{
    JsonFinding, JunitCase, JunitFailure, JunitSuite, findings_case, json_report, junit_xml,
};
use crate::text::{LineColumn, Location, Sources, count, one_line};

/// Writes the results to stdout and, where that is not for a program, a summary to stderr.
pub(super) fn print_results(run: &TestRun<'_>, sources: &Sources, format: TestFormat) {
    match format {
        TestFormat::Human => {
            print_painted(&lines(run, sources));
            print_findings(&run.errors, sources);
            say(&describe(&run.summary));
            if run.summary.examples == 0 && run.summary.without_examples > 0 {
                say(HOW_TO);
            }
        }
        TestFormat::Json => {
            let report = JsonRun::of(run, sources);
            print(&format!("{}\n", serde_json::to_string_pretty(&report).unwrap_or_default()));
        }
        TestFormat::Junit => {
            print(&junit_xml(&suites(run, sources)));
            say(&describe(&run.summary));
        }
    }
}

/// The JSON of a run in one line.
pub(super) fn print_json_line(run: &TestRun<'_>, sources: &Sources) {
    print(&format!("{}\n", serde_json::to_string(&JsonRun::of(run, sources)).unwrap_or_default()));
}

const HOW_TO: &str =
    "an example is a call that the schema must take or refuse; in the spec of a tool with an argument `city`:
  :accepts [(:city \"Paris\")]
  :rejects [(:city 7) ()]";

/// `5 examples of 2 tools: 4 ok, 1 failed; 1 tool without examples`.
pub(super) fn describe(summary: &TestSummary) -> String {
    let TestSummary { examples, tools, ok, failed, without_examples, left_out, errors } = *summary;
    let mut text = match (examples, without_examples) {
        (0, 0) => String::from("no examples"),
        (0, _) => format!("no examples of {}", count(without_examples, "tool")),
        _ => format!("{} of {}:", count(examples, "example"), count(tools, "tool")),
    };
    if ok > 0 {
        let _ = write!(text, " {ok} ok");
    }
    if failed > 0 {
        let _ = write!(text, "{} {failed} failed", if ok > 0 { "," } else { "" });
    }
    if examples > 0 && without_examples > 0 {
        let _ = write!(text, "; {} without examples", count(without_examples, "tool"));
    }
    match (errors, left_out) {
        (0, _) => {}
        (_, 0) => _ = write!(text, "; {}", count(errors, "error")),
        _ => _ = write!(text, "; {}, so {} left out", count(errors, "error"), count_were(left_out)),
    }
    text
}

fn count_were(tools: usize) -> String {
    format!("{} {}", count(tools, "tool"), if tools == 1 { "was" } else { "were" })
}

/// A line a test: `ok   get_weather accepts 1 specs/weather.eld:12:12`.
fn lines(run: &TestRun<'_>, sources: &Sources) -> String {
    let mut text = String::new();
    for TestResult { tool, name, at, failure, .. } in &run.results {
        let (mark, at, why) = match failure {
            None => (paint("ok", anstyle::AnsiColor::Green) + "  ", at, String::new()),
            Some((at, why)) => (paint("FAIL", anstyle::AnsiColor::Red), at, format!(": {why}")),
        };
        let rest = one_line(format!("{tool} {name} {}{why}", sources.describe(*at)));
        let _ = writeln!(text, "{mark} {rest}");
    }
    if !run.results.is_empty() && !run.errors.is_empty() {
        text.push('\n');
    }
    text
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
    /// `example`.
    kind: &'static str,
    /// The tool that it is about.
    tool: &'r str,
    /// `accepts 1`, `rejects 2`: the key and which of it.
    name: &'r str,
    /// Whether it is what the spec says.
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
    fn of(run: &'r TestRun<'_>, sources: &'r Sources) -> Self {
        Self {
            results: run.results.iter().map(|result| JsonResult::of(result, sources)).collect(),
            findings: json_report(&run.errors, sources).findings,
            summary: run.summary,
        }
    }
}

impl<'r> JsonResult<'r> {
    fn of(result: &'r TestResult<'_>, sources: &'r Sources) -> Self {
        let violation = result.violation.as_ref().map(|(at, violation)| {
            let LineColumn { line, column } = place(*at, sources).1;
            JsonViolation { path: &violation.path, message: &violation.message, line, column }
        });
        let (file, start, end) = place(result.at, sources);
        Self {
            kind: result.kind,
            tool: result.tool,
            name: &result.name,
            ok: result.failure.is_none(),
            place: JsonPlace {
                file,
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
            },
            message: result.failure.as_ref().map(|(_, message)| message.as_str()),
            violation,
        }
    }
}

/// A place's file, start and end.
fn place(at: Location, sources: &Sources) -> (&str, LineColumn, LineColumn) {
    let nowhere = LineColumn { line: 1, column: 1 };
    sources.get(at.source).map_or(("", nowhere, nowhere), |file| {
        (&file.name, file.line_column(at.span.start), file.line_column(at.span.end))
    })
}

/// A suite a file: the errors of the file are one test of its name, every example is another.
fn suites(run: &TestRun<'_>, sources: &Sources) -> Vec<JunitSuite> {
    let (mut results, mut errors) = (run.results.as_slice(), run.errors.as_slice());
    let mut suites = Vec::new();
    while let Some(source) =
        [results.first().map(|result| result.at), errors.first().map(|error| error.primary)]
            .into_iter()
            .flatten()
            .map(|at| at.source)
            .min()
    {
        let file = sources.get(source).map_or("", |file| file.name.as_str());
        let (of_file, others) =
            errors.split_at(errors.partition_point(|error| error.primary.source <= source));
        errors = others;
        let mut cases = Vec::new();
        if !of_file.is_empty() {
            let of_file: Vec<&Diagnostic> = of_file.iter().collect();
            cases.push(findings_case("deftool test", file, &of_file, sources, false));
        }
        let (of_file, others) =
            results.split_at(results.partition_point(|result| result.at.source <= source));
        results = others;
        cases.extend(of_file.iter().map(|result| case(result, file, sources)));
        suites.push(JunitSuite { file: file.to_owned(), cases });
    }
    suites
}

/// The file is part of its name: several projects may have a tool of a name.
fn case(result: &TestResult<'_>, file: &str, sources: &Sources) -> JunitCase {
    let name = format!("{file}: {} {}", result.tool, result.name);
    let failure = result.failure.as_ref().map(|(at, message)| JunitFailure {
        message: message.clone(),
        kind: result.kind.to_owned(),
        text: format!("{}: {message}\n", sources.describe(*at)),
    });
    JunitCase { class: "deftool test", name, failure, output: String::new() }
}
