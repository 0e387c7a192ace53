//! JUnit XML, as GitLab, Jenkins and others read it.
//!
//! A file that was checked is a suite of one test, so that names are the same in every run and a clean file is a test
//! that passes. It fails for errors (`strict`: for warnings, too); what does not fail it is its output. Everything of a
//! file is in one `failure`, because GitLab takes only one of a test, and only one test of a name. Sources: GitLab,
//! "Unit test reports" (docs.gitlab.com), and `junit-10.xsd` of Jenkins' xUnit plugin, which refuses what it does not name
//! (a test's `file`, which GitLab would take, is such), read 2026-11.

use std::fmt::Write;

use super::render_concise;
use crate::diagnostic::{Diagnostic, Severity};
use crate::text::{Sources, count};

/// The report on the files called `checked`, each of which is a test, and on every other file with a finding.
pub fn junit_report(findings: &[Diagnostic], sources: &Sources, checked: &[&str], strict: bool) -> String {
    let mut files: Vec<&str> = checked.to_vec();
    let with_findings = findings.iter().filter_map(|finding| sources.get(finding.primary.source));
    files.extend(with_findings.map(|file| file.name.as_str()));
    files.sort_unstable();
    files.dedup();
    let mut suites = String::new();
    let mut failed = 0;
    let mut findings: Vec<&Diagnostic> = findings.iter().collect();
    let name = |finding: &Diagnostic| sources.get(finding.primary.source).map(|file| file.name.as_str());
    // Stable: those of one file stay in their order.
    findings.sort_by_key(|finding| name(finding));
    let mut rest = findings.as_slice();
    for file in &files {
        let before = rest.partition_point(|finding| name(finding) < Some(file));
        let after = rest.partition_point(|finding| name(finding) <= Some(file));
        let of_file = rest.get(before..after).unwrap_or_default();
        rest = rest.get(after..).unwrap_or_default();
        let fails = write_suite(&mut suites, file, of_file, sources, strict);
        failed += usize::from(fails);
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"deftool\" tests=\"{}\" failures=\"{failed}\" errors=\"0\">\n{suites}</testsuites>\n",
        files.len()
    )
}

/// Whether its test fails.
fn write_suite(
    out: &mut String,
    file: &str,
    findings: &[&Diagnostic],
    sources: &Sources,
    strict: bool,
) -> bool {
    let (failing, others): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        findings.iter().partition(|finding| match finding.severity {
            Severity::Error => true,
            Severity::Warning => strict,
            Severity::Note => false,
        });
    let fails = !failing.is_empty();
    let name = escape(file);
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" file=\"{name}\" tests=\"1\" failures=\"{}\" errors=\"0\" skipped=\"0\">",
        u8::from(fails)
    );
    let _ = write!(out, "    <testcase classname=\"deftool check\" name=\"{name}\"");
    if findings.is_empty() {
        out.push_str("/>\n");
    } else {
        out.push_str(">\n");
        if let Some(first) = failing.first() {
            let message = match failing.len() {
                1 => first.message.clone(),
                number => format!("{}, the first: {}", count(number, "finding"), first.message),
            };
            let _ = writeln!(
                out,
                "      <failure message=\"{}\" type=\"{}\">{}</failure>",
                escape(&message),
                first.rule.code,
                escape_text(&lines(&failing, sources))
            );
        }
        if !others.is_empty() {
            let _ = writeln!(out, "      <system-out>{}</system-out>", escape_text(&lines(&others, sources)));
        }
        out.push_str("    </testcase>\n");
    }
    out.push_str("  </testsuite>\n");
    fails
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

/// The value of an attribute, whose line ends and tabs a parser would make blanks.
fn escape(text: &str) -> String {
    escape_text(text).replace('\t', "&#9;").replace('\n', "&#10;").replace('"', "&quot;")
}

/// Text between tags. What XML 1.0 cannot hold is replaced, a bare CR is written as its number.
fn escape_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\r' => escaped.push_str("&#13;"),
            '\t' | '\n' => escaped.push(character),
            '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => escaped.push(char::REPLACEMENT_CHARACTER),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::rules;
    use crate::text::{Location, SourceFile, Span};

    #[test]
    fn everything_is_legal_in_xml() {
        assert_eq!(
            escape("a\"b'<&>\u{1}\n\t\r\u{FFFF}"),
            "a&quot;b'&lt;&amp;&gt;\u{FFFD}&#10;&#9;&#13;\u{FFFD}"
        );
    }

    #[test]
    fn a_file_is_a_test_and_fails_for_errors() {
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
        assert!(report.contains("<system-out>a.eld:1:1: warning[DT001]: odd\n</system-out>"), "{report}");
        assert!(report.contains("name=\"c.eld\"/>"), "{report}");
        assert_eq!(junit_report(&findings, &sources, &[], true).matches("<failure ").count(), 2);
    }
}
