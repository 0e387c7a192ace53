//! What `deftool test` runs, and what comes of it.
//!
//! A load goes in; a [`TestResult`] for every example of the chosen tools comes out, whatever held it against what, with
//! the errors that kept something from being run. A failing example is an error of its spec, too; it is told once, as a
//! result.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Severity};
use crate::project::{Load, LoadedTool};
use crate::schema::{Example, Violation, rules, try_examples};
use crate::text::{Location, SourceId, Span, one_line};

/// One test and how it ended.
pub(super) struct TestResult<'l> {
    /// What kind of test it is.
    pub(super) kind: &'static str,
    /// The tool that it is about.
    pub(super) tool: &'l str,
    /// What it is called among the tests of its tool.
    pub(super) name: String,
    /// Where it stands.
    pub(super) at: Location,
    /// Why it failed, and where that shows.
    pub(super) failure: Option<(Location, String)>,
    /// What the schema has against the arguments, and where: also of an example that is rejected as it should be.
    pub(super) violation: Option<(Location, Violation)>,
}

/// What came of the tests.
pub(super) struct TestRun<'l> {
    /// In the order of files and of forms in them.
    pub(super) results: Vec<TestResult<'l>>,
    /// What is wrong in the specs otherwise, so that something was not run.
    pub(super) errors: Vec<Diagnostic>,
    /// How many there are of each.
    pub(super) summary: TestSummary,
}

/// The counts.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct TestSummary {
    /// Examples that were run.
    pub(super) examples: usize,
    /// Tools that they belong to.
    pub(super) tools: usize,
    /// Examples that are what the spec says.
    pub(super) ok: usize,
    /// Examples that are not.
    pub(super) failed: usize,
    /// Tools that have no examples.
    pub(super) without_examples: usize,
    /// Tools that were left out: their specs have other errors, or a later definition replaces them.
    pub(super) left_out: usize,
    /// Errors of the specs, failing examples aside.
    pub(super) errors: usize,
}

impl TestSummary {
    /// Whether the exit code says so.
    pub(super) fn fails(&self) -> bool {
        self.failed > 0 || self.errors > 0
    }
}

impl<'l> TestRun<'l> {
    /// Runs the examples of the tools with `filter` in their names; `None`: there is no such tool.
    ///
    /// What is wrong outside of every tool is told when the file could hold what was asked for.
    pub(super) fn of(load: &'l Load, filter: Option<&str>) -> Option<Self> {
        let is_chosen = |loaded: &LoadedTool| filter.is_none_or(|part| loaded.tool.name.value.contains(part));
        let chosen: Vec<&LoadedTool> = load.tools.iter().filter(|loaded| is_chosen(loaded)).collect();
        if chosen.is_empty() && filter.is_some() {
            return None;
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
        let mut tests = Self { results: Vec::new(), errors, summary };
        for loaded in run {
            tests.run_examples(loaded);
        }
        Some(tests)
    }

    fn run_examples(&mut self, loaded: &'l LoadedTool) {
        if loaded.tool.accepts.is_empty() && loaded.tool.rejects.is_empty() {
            self.summary.without_examples += 1;
            return;
        }
        self.summary.tools += 1;
        for example in try_examples(&loaded.tool, &loaded.entry().validator) {
            self.summary.examples += 1;
            let result = TestResult::of_example(loaded, example);
            let counter =
                if result.failure.is_none() { &mut self.summary.ok } else { &mut self.summary.failed };
            *counter += 1;
            self.results.push(result);
        }
    }
}

impl<'l> TestResult<'l> {
    fn of_example(loaded: &'l LoadedTool, example: Example) -> Self {
        let place = |span| Location { source: loaded.tool.source, span };
        let is_ok = example.is_ok();
        let at = place(example.span);
        let violation = example.refusal.map(|refusal| (place(refusal.span), refusal.violation));
        let failure = match &violation {
            // Keys of the arguments may hold anything.
            Some((at, violation)) => (*at, one_line(violation.to_string())),
            None => (at, String::from("it passes")),
        };
        Self {
            kind: "example",
            tool: &loaded.tool.name.value,
            name: format!("{} {}", example.expected.as_str(), example.number),
            at,
            failure: (!is_ok).then_some(failure),
            violation,
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
