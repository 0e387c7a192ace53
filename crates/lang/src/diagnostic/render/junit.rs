//! Renders findings as JUnit XML tests.
//!
//! Each checked file is a suite with one test, so that test names are stable and a file without findings is a passing
//! test. The test fails for errors (with `strict` also for warnings); other findings become its output. All failing
//! findings of a file are in one `failure`, because GitLab supports only one per test, and only one test per name
//! (docs.gitlab.com, "Unit test reports", read 2026-11).

use std::fmt::Write;

use super::junit_xml::{JunitCase, JunitFailure, JunitSuite, junit_xml};
use super::render_concise;
use crate::diagnostic::{Diagnostic, Severity};
use crate::text::{Sources, count};

/// Builds the report with one test for each file in `checked` and for each other file with a finding.
pub fn junit_report(findings: &[Diagnostic], sources: &Sources, checked: &[&str], strict: bool) -> String {
    let name = |finding: &Diagnostic| sources.get(finding.primary.source).map(|file| file.name.as_str());
    let mut files: Vec<&str> = checked.to_vec();
    files.extend(findings.iter().filter_map(name));
    files.sort_unstable();
    files.dedup();
    let mut findings: Vec<&Diagnostic> = findings.iter().collect();
    // Stable sort: keeps the order within a file.
    findings.sort_by_key(|finding| name(finding));
    let mut rest = findings.as_slice();
    let suites = files.into_iter().map(|file| {
        let before = rest.partition_point(|finding| name(finding) < Some(file));
        let after = rest.partition_point(|finding| name(finding) <= Some(file));
        let of_file = rest.get(before..after).unwrap_or_default();
        rest = rest.get(after..).unwrap_or_default();
        let case = findings_case("deftool check", file, of_file, sources, strict);
        JunitSuite { file: file.to_owned(), cases: vec![case] }
    });
    junit_xml(&suites.collect::<Vec<_>>())
}

/// Builds the test for `file` with its findings.
pub fn findings_case(
    class: &'static str,
    file: &str,
    findings: &[&Diagnostic],
    sources: &Sources,
    strict: bool,
) -> JunitCase {
    let (failing, others): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        findings.iter().partition(|finding| match finding.severity {
            Severity::Error => true,
            Severity::Warning => strict,
            Severity::Note => false,
        });
    let failure = failing.first().map(|first| JunitFailure {
        message: match failing.len() {
            1 => first.message.clone(),
            number => format!("{}; first: {}", count(number, "finding"), first.message),
        },
        kind: first.rule.code.to_owned(),
        text: lines(&failing, sources),
    });
    JunitCase { class, name: file.to_owned(), failure, output: lines(&others, sources) }
}

fn lines(findings: &[&Diagnostic], sources: &Sources) -> String {
    let mut lines = String::new();
    for finding in findings {
        lines.push_str(&render_concise(finding, sources));
        lines.push('\n');
        for more in finding.label.iter().chain(&finding.notes) {
            let _ = writeln!(lines, "  {more}");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::rules;
    use crate::text::{Location, SourceFile, Span};

    #[test]
    fn each_file_is_a_test_that_fails_for_errors() {
        let mut sources = Sources::new();
        let mut at = |name: &str| Location {
            source: sources.add(SourceFile::new(name, "(a)\n")),
            span: Span::new(0, 1),
        };
        let error = Diagnostic::new(&rules::UNCLOSED, at("b.eld"), "<wrong>");
        let mut warning = Diagnostic::new(&rules::UNCLOSED, at("a.eld"), "odd");
        warning.severity = Severity::Warning;
        let findings = [error, warning];
        let report = junit_report(&findings, &sources, &["a.eld", "b.eld", "c.eld"], false);
        assert!(report.contains("tests=\"3\" failures=\"1\""), "{report}");
        assert!(
            report.contains("<failure message=\"&lt;wrong&gt;\" type=\"DT001\">b.eld:1:1: error"),
            "{report}"
        );
        assert!(report.contains("<system-out>a.eld:1:1: warning[DT001]: odd&#10;</system-out>"), "{report}");
        assert!(report.contains("name=\"c.eld\"/>"), "{report}");
        assert_eq!(junit_report(&findings, &sources, &[], true).matches("<failure ").count(), 2);
    }
}
