//! Test results as JUnit XML: one suite per file.

use std::collections::BTreeMap;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::diagnostic::render::{JunitCase, JunitFailure, JunitSuite, findings_case};
use deftool_lang::text::{SourceId, Sources};

use super::run::{TestResult, TestRun, detail_lines};

/// Returns one suite per file, in the order of the files. The errors of a file form one test case with its name.
pub(super) fn suites(run: &TestRun, sources: &Sources) -> Vec<JunitSuite> {
    let mut of_file: BTreeMap<&str, Vec<&TestResult>> = BTreeMap::new();
    for result in &run.results {
        of_file.entry(&result.at.file).or_default().push(result);
    }
    let mut errors: BTreeMap<SourceId, Vec<&Diagnostic>> = BTreeMap::new();
    for error in &run.errors {
        errors.entry(error.primary.source).or_default().push(error);
    }
    let mut suites: Vec<JunitSuite> = Vec::new();
    for (source, file) in sources.iter() {
        let errors = errors.remove(&source).unwrap_or_default();
        let results = of_file.remove(file.name.as_str()).unwrap_or_default();
        let mut cases = Vec::new();
        if !errors.is_empty() {
            cases.push(findings_case("deftool test", &file.name, &errors, sources, false));
        }
        cases.extend(results.into_iter().map(case));
        if !cases.is_empty() {
            suites.push(JunitSuite { file: file.name.clone(), cases });
        }
    }
    // Test files are not in `sources`.
    suites.extend(of_file.into_iter().map(|(file, results)| JunitSuite {
        file: file.to_owned(),
        cases: results.into_iter().map(case).collect(),
    }));
    suites
}

/// Returns a test case. Its name includes the file, because several projects may have a tool with the same name.
fn case(result: &TestResult) -> JunitCase {
    let tool = result.tool.as_ref().map_or_else(String::new, |tool| format!("{tool} "));
    let name = format!("{}: {tool}{}", result.at.file, result.name);
    let failure = result.failure.as_ref().map(|failure| {
        let mut text = format!("{}: {}\n", failure.at, failure.message);
        for line in detail_lines(result) {
            text.extend([line.as_str(), "\n"]);
        }
        let kind = if failure.kind == "example" { "example" } else { result.kind.as_str() };
        JunitFailure { message: failure.message.clone(), kind: kind.to_owned(), text }
    });
    JunitCase { class: "deftool test", name, failure, output: String::new() }
}
