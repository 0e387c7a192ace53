//! Test runs of `deftool test`.
//!
//! A [`TestRun`] contains a [`TestResult`] for each example of the selected tools and for each of their scripts that does
//! not load, and the errors that prevented examples from running; `scripts` adds the script tests. A failing example is
//! also an error finding of its spec; it is reported once, as a result.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::{Example, Violation, rules, try_examples};
use deftool_lang::spec::SampleCall;
use deftool_lang::text::{LineColumn, Location, SourceId, Sources, Span, count, one_line};
use deftool_lang::tool::ToolError;
use deftool_project::{Load, LoadedTool, ScriptState};
use deftool_script::{LocalVm, ScriptSink};
use serde::Serialize;
use serde_json::Value;

use crate::cli::outcome::CliError;
use crate::cli::terminal::output::{clean, cut, eprint_error};

/// Maximum number of printed lines of details and of log output, each.
const MAX_LINES: usize = 30;
/// Maximum length of these lines, in characters.
const MAX_LINE: usize = 400;

/// The kind of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An example of `:accepts` or `:rejects`.
    Example,
    /// A load of a tool's script. Only failures are results.
    Load,
    /// A script test.
    Script,
}

impl Kind {
    /// Returns the stable name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Example => "example",
            Self::Load => "load",
            Self::Script => "script",
        }
    }
}

/// A range in a file, with line and column numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceRange {
    /// The file name as given by the user.
    pub(super) file: String,
    pub(super) start: LineColumn,
    /// The position after the last character.
    pub(super) end: LineColumn,
}

impl SourceRange {
    pub(super) fn of(at: Location, sources: &Sources) -> Self {
        let nowhere = LineColumn { line: 1, column: 1 };
        let (file, start, end) = sources.get(at.source).map_or((String::new(), nowhere, nowhere), |file| {
            (file.name.clone(), file.line_column(at.span.start), file.line_column(at.span.end))
        });
        Self { file, start, end }
    }

    /// Returns the range of the text of a line; line numbers start at 1.
    pub(super) fn of_line(file: &str, source: &str, line: usize) -> Self {
        let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let indent = text.chars().take_while(|c| c.is_whitespace()).count();
        let length = text.trim_end().chars().count().max(indent);
        Self {
            file: file.to_owned(),
            start: LineColumn { line, column: indent + 1 },
            end: LineColumn { line, column: length + 1 },
        }
    }
}

/// Formats the start, as in `specs/weather.eld:3:12`.
impl std::fmt::Display for SourceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.start.line, self.start.column)
    }
}

/// The result of one test.
pub(super) struct TestResult {
    pub(super) kind: Kind,
    /// The tested tool; `None` for script tests, which may call several.
    pub(super) tool: Option<String>,
    /// The tools that a script test called.
    pub(super) called: BTreeSet<String>,
    /// The name, unique within its tool or file.
    pub(super) name: String,
    /// The location of the test.
    pub(super) at: SourceRange,
    /// The failure, if the test failed.
    pub(super) failure: Option<Failure>,
    /// The schema violation and its location; also set for examples that are rejected as expected.
    pub(super) violation: Option<(SourceRange, Violation)>,
    /// Log lines.
    pub(super) log: Vec<String>,
    pub(super) elapsed: Option<Duration>,
}

/// The failure of a test.
pub(super) struct Failure {
    /// The kind of the failure.
    pub(super) kind: &'static str,
    /// The location of the failure.
    pub(super) at: SourceRange,
    /// The message, one clause.
    pub(super) message: String,
    /// Further lines.
    pub(super) details: Vec<String>,
}

impl TestResult {
    pub(super) fn new(kind: Kind, name: impl Into<String>, at: SourceRange) -> Self {
        Self {
            kind,
            tool: None,
            called: BTreeSet::new(),
            name: name.into(),
            at,
            failure: None,
            violation: None,
            log: Vec::new(),
            elapsed: None,
        }
    }
}

/// The results of all tests.
#[derive(Default)]
pub(super) struct TestRun {
    /// The results, in the order of files and of forms within them.
    pub(super) results: Vec<TestResult>,
    /// Errors in the specs that prevented tests from running.
    pub(super) errors: Vec<Diagnostic>,
    /// The number of results.
    pub(super) summary: TestSummary,
    /// Whether at least one tool was selected.
    pub(super) has_tools: bool,
    /// The tools without examples.
    without_examples: BTreeSet<String>,
    /// The examples with a result, which are called.
    pub(super) samples: Vec<Sample>,
}

/// An example with a result.
pub(super) struct Sample {
    /// The index of its result.
    pub(super) index: usize,
    /// The project, if the spec belongs to one.
    pub(super) root: Option<PathBuf>,
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) returns: Value,
    /// The location of the result in the spec.
    pub(super) at: SourceRange,
}

/// The number of results of a test run.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct TestSummary {
    /// Examples that ran.
    pub(super) examples: usize,
    /// Tools of these examples.
    pub(super) tools: usize,
    /// Examples and tests that passed.
    pub(super) ok: usize,
    /// Examples and tests that failed.
    pub(super) failed: usize,
    /// Tools without examples.
    pub(super) without_examples: usize,
    /// Tools that were skipped because of errors in their specs or because a later definition replaces them.
    pub(super) left_out: usize,
    /// Errors in the specs, except failing examples.
    pub(super) errors: usize,
    /// Tools whose scripts are missing, do not compile or do not load.
    pub(super) broken_scripts: usize,
    /// Script tests that ran.
    pub(super) tests: usize,
    /// Files of these tests.
    pub(super) test_files: usize,
    /// Tools without examples that no test called.
    pub(super) untested: usize,
}

impl TestSummary {
    /// Returns whether the results cause exit code 1.
    pub(super) fn fails(&self) -> bool {
        self.failed > 0 || self.errors > 0 || self.broken_scripts > 0
    }
}

impl TestRun {
    /// Runs the examples of the tools whose names contain `filter`. `is_list`: the scripts are not loaded.
    ///
    /// Errors outside of tools are included if they are in a file with a selected tool.
    pub(super) fn of(load: &Load, filter: Option<&str>, is_list: bool) -> Self {
        let is_selected =
            |loaded: &LoadedTool| filter.is_none_or(|part| loaded.tool.name.value.contains(part));
        let selected: Vec<&LoadedTool> =
            load.tools.iter().map(AsRef::as_ref).filter(|loaded| is_selected(loaded)).collect();
        if selected.is_empty() && filter.is_some() {
            return Self::default();
        }
        let forms = Forms::of(load);
        // Examples need no script, so errors in scripts are reported apart. A spec file that cannot be read is no script.
        let is_of_file = |error: &Diagnostic| {
            load.checked.contains(&error.primary.source) && forms.enclosing(error.primary).is_none()
        };
        let errors = || {
            let errors = load.findings.iter().filter(|finding| finding.severity == Severity::Error);
            errors.filter(|error| !deftool_project::rules::breaks_script(error.rule) || is_of_file(error))
        };
        // A failing example makes its tool invalid, but it requires a valid schema. Therefore, the examples of tools
        // without other errors can run.
        let (failing, broken): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
            errors().partition(|error| is_failing_example(error));
        let (failing, broken) = (forms.enclosing_all(&failing), forms.enclosing_all(&broken));
        let is_run = |loaded: &LoadedTool| {
            let form = form(loaded);
            (loaded.tool.valid || failing.contains(&form)) && !broken.contains(&form)
        };
        let files: HashSet<SourceId> = selected.iter().map(|loaded| loaded.tool.source).collect();
        let has_tools = !selected.is_empty();
        let (run, skipped): (Vec<&LoadedTool>, Vec<&LoadedTool>) =
            selected.iter().partition(|loaded| is_run(loaded));
        let reported: HashSet<Location> = skipped.iter().map(|loaded| form(loaded)).collect();
        let is_reported = |error: &&Diagnostic| match forms.enclosing(error.primary) {
            Some(form) => reported.contains(&form),
            None => filter.is_none() || files.contains(&error.primary.source),
        };
        let errors: Vec<Diagnostic> = errors().filter(is_reported).cloned().collect();
        let summary = TestSummary { left_out: skipped.len(), errors: errors.len(), ..TestSummary::default() };
        let mut tests = Self { errors, summary, has_tools, ..Self::default() };
        for loaded in run {
            tests.run_examples(loaded, load);
            if !is_list && let Err(error) = load_script(loaded) {
                tests.results.push(TestResult::of_broken_script(loaded, error, &load.sources));
            }
        }
        tests
    }

    fn run_examples(&mut self, loaded: &LoadedTool, load: &Load) {
        if loaded.tool.accepts.is_empty() && loaded.tool.rejects.is_empty() {
            self.without_examples.insert(loaded.tool.name.value.clone());
            return;
        }
        self.summary.tools += 1;
        for example in try_examples(&loaded.tool, &loaded.entry().validator) {
            let source = loaded.tool.source;
            if let Some(SampleCall { arguments, returns: Some(returns) }) = example.sample
                && example.is_ok()
            {
                self.samples.push(Sample {
                    index: self.results.len(),
                    root: load.root_of(source).map(Path::to_owned),
                    tool: loaded.tool.name.value.clone(),
                    arguments: arguments.to_value(),
                    returns: returns.to_value(),
                    at: SourceRange::of(Location { source, span: returns.span }, &load.sources),
                });
            }
            self.results.push(TestResult::of_example(loaded, example, &load.sources));
        }
    }

    /// Reports that the tests of a project cannot run, as an error.
    pub(super) fn fail(&mut self, project: &str, error: &CliError) {
        eprint_error(&format!("the tests of {project} did not run: {error}"));
        self.summary.errors += 1;
    }

    /// Updates the counts of the summary.
    pub(super) fn count(&mut self) {
        let of_kind = |kind| self.results.iter().filter(move |result| result.kind == kind);
        let broken_scripts = of_kind(Kind::Load).count();
        let failed = self.results.iter().filter(|result| result.failure.is_some()).count() - broken_scripts;
        let files: BTreeSet<&str> = of_kind(Kind::Script).map(|result| result.at.file.as_str()).collect();
        let is_called = |tool: &&String| of_kind(Kind::Script).any(|result| result.called.contains(*tool));
        self.summary = TestSummary {
            examples: of_kind(Kind::Example).count(),
            tests: of_kind(Kind::Script).count(),
            test_files: files.len(),
            failed,
            ok: self.results.len() - failed - broken_scripts,
            broken_scripts,
            without_examples: self.without_examples.len(),
            untested: self.without_examples.iter().filter(|tool| !is_called(tool)).count(),
            ..self.summary
        };
    }
}

impl TestResult {
    fn of_broken_script(loaded: &LoadedTool, error: ToolError, sources: &Sources) -> Self {
        let at = Location { source: loaded.tool.source, span: loaded.tool.name.span };
        let at = SourceRange::of(at, sources);
        let details = error.details.iter().flat_map(|details| details.lines()).map(str::to_owned).collect();
        let failure =
            Failure { kind: error.kind.as_str(), at: at.clone(), message: one_line(error.message), details };
        Self {
            tool: Some(loaded.tool.name.value.clone()),
            failure: Some(failure),
            ..Self::new(Kind::Load, "loads", at)
        }
    }

    fn of_example(loaded: &LoadedTool, example: Example<'_>, sources: &Sources) -> Self {
        let range = |span| SourceRange::of(Location { source: loaded.tool.source, span }, sources);
        let is_ok = example.is_ok();
        let at = range(example.span);
        let violation = example.refusal.map(|refusal| (range(refusal.span), refusal.violation));
        let (failed_at, message) = match &violation {
            // Keys of the arguments may contain any text.
            Some((at, violation)) => (at.clone(), one_line(violation.to_string())),
            None => (at.clone(), String::from("the schema accepts it")),
        };
        let failure = Failure { kind: "example", at: failed_at, message, details: Vec::new() };
        Self {
            tool: Some(loaded.tool.name.value.clone()),
            failure: (!is_ok).then_some(failure),
            violation,
            ..Self::new(Kind::Example, format!("{} {}", example.expected.as_str(), example.number), at)
        }
    }
}

/// Compiles the script of a tool and runs its top level. A tool in Emacs Lisp needs no script.
fn load_script(loaded: &LoadedTool) -> Result<(), ToolError> {
    match &loaded.script {
        ScriptState::Ready(script) => {
            LocalVm::new(Arc::clone(script), ScriptSink::new(|_| {}))?.run_top_level()
        }
        ScriptState::Broken(_) if loaded.tool.function.is_some() => Ok(()),
        ScriptState::Broken(error) => Err(error.clone()),
        ScriptState::None => Ok(()),
    }
}

fn is_failing_example(finding: &Diagnostic) -> bool {
    [&rules::ACCEPTED_EXAMPLE_FAILS, &rules::REJECTED_EXAMPLE_PASSES].contains(&finding.rule)
}

fn form(loaded: &LoadedTool) -> Location {
    Location { source: loaded.tool.source, span: loaded.tool.span }
}

/// The forms of all tools, by start.
struct Forms(BTreeMap<(SourceId, u32), Span>);

impl Forms {
    fn of(load: &Load) -> Self {
        let forms = load.tools.iter().map(|loaded| form(loaded));
        Self(forms.map(|form| ((form.source, form.span.start), form.span)).collect())
    }

    /// Returns the forms that contain `errors`.
    fn enclosing_all(&self, errors: &[&Diagnostic]) -> HashSet<Location> {
        errors.iter().filter_map(|error| self.enclosing(error.primary)).collect()
    }

    /// Returns the tool form that contains `location`.
    fn enclosing(&self, location: Location) -> Option<Location> {
        let before = self.0.range(..=(location.source, location.span.start)).next_back();
        let (&(source, _), &span) = before.filter(|((source, _), _)| *source == location.source)?;
        (location.span.end <= span.end).then_some(Location { source, span })
    }
}

/// Returns the details and log lines of a failed test.
pub(super) fn detail_lines(result: &TestResult) -> Vec<String> {
    let Some(failure) = &result.failure else { return Vec::new() };
    let shown = |line: &String| one_line(cut(&clean(line).replace('\t', " "), MAX_LINE));
    let cut_off = |number: usize| number.checked_sub(MAX_LINES).filter(|more| *more > 0);
    let mut lines: Vec<String> = failure.details.iter().take(MAX_LINES).map(shown).collect();
    lines.extend(cut_off(failure.details.len()).map(|more| format!("and {}", count(more, "more line"))));
    // Print the last log lines: they are nearest to the failure.
    let skipped = cut_off(result.log.len()).unwrap_or(0);
    if skipped > 0 {
        lines.push(format!("logged {} before", count(skipped, "line")));
    }
    lines.extend(result.log.iter().skip(skipped).map(|line| format!("logged {}", shown(line))));
    lines
}
