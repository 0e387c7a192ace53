//! What `deftool test` runs, and what comes of it.
//!
//! A load goes in; a [`TestResult`] for every example of the chosen tools comes out, whatever held it against what, with
//! the errors that kept something from being run; `scripts` adds the tests of scripts. A failing example is an error of
//! its spec, too; it is told once, as a result.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Severity};
use crate::project::{Load, LoadedTool};
use crate::schema::{Example, Violation, rules, try_examples};
use crate::text::{LineColumn, Location, SourceId, Sources, Span, one_line};

/// What kind of test it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call of `:accepts` or `:rejects`.
    Example,
    /// A test of a script.
    Script,
    /// Calls with made arguments.
    Fuzz,
}

impl Kind {
    /// The stable name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Example => "example",
            Self::Script => "script",
            Self::Fuzz => "fuzz",
        }
    }
}

/// A place in a file, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The file as the user named it.
    pub(super) file: String,
    pub(super) start: LineColumn,
    /// After the last character.
    pub(super) end: LineColumn,
}

impl Place {
    pub(super) fn of(at: Location, sources: &Sources) -> Self {
        let nowhere = LineColumn { line: 1, column: 1 };
        let (file, start, end) = sources.get(at.source).map_or((String::new(), nowhere, nowhere), |file| {
            (file.name.clone(), file.line_column(at.span.start), file.line_column(at.span.end))
        });
        Self { file, start, end }
    }

    /// The text of a line, from 1.
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

/// `specs/weather.eld:3:12`.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.start.line, self.start.column)
    }
}

/// One test and how it ended.
pub(super) struct TestResult {
    pub(super) kind: Kind,
    /// The tool that it is about; of a script's test none: it may call several.
    pub(super) tool: Option<String>,
    /// The tools that a script's test called.
    pub(super) called: BTreeSet<String>,
    /// What it is called among the tests of its tool or file.
    pub(super) name: String,
    /// Where it stands.
    pub(super) at: Place,
    /// Why it failed.
    pub(super) failure: Option<Failure>,
    /// What the schema has against the arguments, and where: also of an example that is rejected as it should be.
    pub(super) violation: Option<(Place, Violation)>,
    /// What was logged.
    pub(super) log: Vec<String>,
    pub(super) elapsed: Option<Duration>,
}

/// Why a test failed.
pub(super) struct Failure {
    /// What sort of failure.
    pub(super) kind: &'static str,
    /// Where that shows.
    pub(super) at: Place,
    /// In one clause.
    pub(super) message: String,
    /// More lines.
    pub(super) details: Vec<String>,
}

impl TestResult {
    pub(super) fn new(kind: Kind, name: impl Into<String>, at: Place) -> Self {
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

/// What came of the tests.
#[derive(Default)]
pub(super) struct TestRun {
    /// In the order of files and of forms in them.
    pub(super) results: Vec<TestResult>,
    /// What is wrong in the specs otherwise, so that something was not run.
    pub(super) errors: Vec<Diagnostic>,
    /// How many there are of each.
    pub(super) summary: TestSummary,
    /// Whether some tool was chosen.
    pub(super) is_about_a_tool: bool,
    /// The tools that have no examples.
    without_examples: BTreeSet<String>,
}

/// The counts.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct TestSummary {
    /// Examples that were run.
    pub(super) examples: usize,
    /// Tools that they belong to.
    pub(super) tools: usize,
    /// Examples and tests that are as they should be.
    pub(super) ok: usize,
    /// Examples and tests that are not.
    pub(super) failed: usize,
    /// Tools that have no examples.
    pub(super) without_examples: usize,
    /// Tools that were left out: their specs have other errors, or a later definition replaces them.
    pub(super) left_out: usize,
    /// Errors of the specs, failing examples aside.
    pub(super) errors: usize,
    /// Tests of scripts that were run.
    pub(super) tests: usize,
    /// Files that they stand in.
    pub(super) test_files: usize,
    /// Tools that have no examples and that no test called.
    pub(super) untested: usize,
    /// Of `--fuzz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fuzz: Option<FuzzSummary>,
}

/// The counts of `--fuzz`.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct FuzzSummary {
    /// What the arguments were made from.
    pub(super) seed: u64,
    /// Tools that were fuzzed.
    pub(super) tools: usize,
    /// Calls of their scripts, those for shrinking among them.
    pub(super) calls: usize,
    /// Wrong arguments that were held against schemas.
    pub(super) wrong: usize,
    /// Tools that were left out: they may do something to the world.
    pub(super) left_out: usize,
}

impl TestSummary {
    /// Whether the exit code says so.
    pub(super) fn fails(&self) -> bool {
        self.failed > 0 || self.errors > 0
    }
}

impl TestRun {
    /// Runs the examples of the tools with `filter` in their names.
    ///
    /// What is wrong outside of every tool is told when the file could hold what was asked for.
    pub(super) fn of(load: &Load, filter: Option<&str>) -> Self {
        let is_chosen = |loaded: &LoadedTool| filter.is_none_or(|part| loaded.tool.name.value.contains(part));
        let chosen: Vec<&LoadedTool> = load.tools.iter().filter(|loaded| is_chosen(loaded)).collect();
        if chosen.is_empty() && filter.is_some() {
            return Self::default();
        }
        let forms = Forms::of(load);
        let errors = || load.findings.iter().filter(|finding| finding.severity == Severity::Error);
        // A failing example makes its tool invalid, as other errors do; where it is known, the schema was whole.
        let (failing, broken): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
            errors().partition(|error| is_failing_example(error));
        let (failing, broken) = (forms.around_all(&failing), forms.around_all(&broken));
        let is_run = |loaded: &LoadedTool| {
            let form = form(loaded);
            (loaded.tool.valid || failing.contains(&form)) && !broken.contains(&form)
        };
        let files: HashSet<SourceId> = chosen.iter().map(|loaded| loaded.tool.source).collect();
        let is_about_a_tool = !chosen.is_empty();
        let (run, left_out): (Vec<&LoadedTool>, Vec<&LoadedTool>) =
            chosen.iter().partition(|loaded| is_run(loaded));
        let told: HashSet<Location> = left_out.iter().map(|loaded| form(loaded)).collect();
        let is_told = |error: &&Diagnostic| match forms.around(error.primary) {
            Some(form) => told.contains(&form),
            None => filter.is_none() || files.contains(&error.primary.source),
        };
        let errors: Vec<Diagnostic> = errors().filter(is_told).cloned().collect();
        let summary =
            TestSummary { left_out: left_out.len(), errors: errors.len(), ..TestSummary::default() };
        let mut tests = Self { errors, summary, is_about_a_tool, ..Self::default() };
        for loaded in run {
            tests.run_examples(loaded, &load.sources);
        }
        tests
    }

    fn run_examples(&mut self, loaded: &LoadedTool, sources: &Sources) {
        if loaded.tool.accepts.is_empty() && loaded.tool.rejects.is_empty() {
            self.without_examples.insert(loaded.tool.name.value.clone());
            return;
        }
        self.summary.tools += 1;
        for example in try_examples(&loaded.tool, &loaded.entry().validator) {
            self.results.push(TestResult::of_example(loaded, example, sources));
        }
    }

    /// Counts what was run.
    pub(super) fn count(&mut self) {
        let of_kind = |kind| self.results.iter().filter(move |result| result.kind == kind);
        let failed = self.results.iter().filter(|result| result.failure.is_some()).count();
        let files: BTreeSet<&str> = of_kind(Kind::Script).map(|result| result.at.file.as_str()).collect();
        let is_called = |tool: &&String| of_kind(Kind::Script).any(|result| result.called.contains(*tool));
        self.summary = TestSummary {
            examples: of_kind(Kind::Example).count(),
            tests: of_kind(Kind::Script).count(),
            test_files: files.len(),
            failed,
            ok: self.results.len() - failed,
            without_examples: self.without_examples.len(),
            untested: self.without_examples.iter().filter(|tool| !is_called(tool)).count(),
            ..self.summary
        };
    }
}

impl TestResult {
    fn of_example(loaded: &LoadedTool, example: Example, sources: &Sources) -> Self {
        let place = |span| Place::of(Location { source: loaded.tool.source, span }, sources);
        let is_ok = example.is_ok();
        let at = place(example.span);
        let violation = example.refusal.map(|refusal| (place(refusal.span), refusal.violation));
        let (failed_at, message) = match &violation {
            // Keys of the arguments may hold anything.
            Some((at, violation)) => (at.clone(), one_line(violation.to_string())),
            None => (at.clone(), String::from("it passes")),
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

fn is_failing_example(finding: &Diagnostic) -> bool {
    [&rules::ACCEPTED_EXAMPLE_FAILS, &rules::REJECTED_EXAMPLE_PASSES].contains(&finding.rule)
}

fn form(loaded: &LoadedTool) -> Location {
    Location { source: loaded.tool.source, span: loaded.tool.span }
}

/// The forms of tools, by where they begin.
struct Forms(BTreeMap<(SourceId, u32), Span>);

impl Forms {
    fn of(load: &Load) -> Self {
        let forms = load.tools.iter().map(form);
        Self(forms.map(|form| ((form.source, form.span.start), form.span)).collect())
    }

    fn around_all(&self, errors: &[&Diagnostic]) -> HashSet<Location> {
        errors.iter().filter_map(|error| self.around(error.primary)).collect()
    }

    /// The tool's form that a place lies in.
    fn around(&self, place: Location) -> Option<Location> {
        let before = self.0.range(..=(place.source, place.span.start)).next_back();
        let (&(source, _), &span) = before.filter(|((source, _), _)| *source == place.source)?;
        (place.span.end <= span.end).then_some(Location { source, span })
    }
}
