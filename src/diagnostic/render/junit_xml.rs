//! A test report in JUnit XML, as GitLab, Jenkins and others read it.
//!
//! Goes in: suites of tests; comes out: one document. Sources: GitLab, "Unit test reports" (docs.gitlab.com), and
//! `junit-10.xsd` of Jenkins' xUnit plugin, which refuses what it does not name (a test's `file`, which GitLab would take,
//! is such), read 2026-11.

use std::fmt::Write;

use crate::text::is_control;

/// The tests of one file.
#[derive(Debug)]
pub struct JunitSuite {
    /// The file, by which the suite is called.
    pub file: String,
    /// Its tests.
    pub cases: Vec<JunitCase>,
}

/// One test.
#[derive(Debug)]
pub struct JunitCase {
    /// What kind of test it is.
    pub class: &'static str,
    /// What it is called: one name, one test.
    pub name: String,
    /// Why it fails, if it does.
    pub failure: Option<JunitFailure>,
    /// What else there is to say; mostly nothing.
    pub output: String,
}

/// Why a test fails.
#[derive(Debug)]
pub struct JunitFailure {
    /// In one clause.
    pub message: String,
    /// What sort of failure.
    pub kind: String,
    /// At length.
    pub text: String,
}

/// The document.
pub fn junit_xml(suites: &[JunitSuite]) -> String {
    let mut body = String::new();
    let (mut tests, mut failures) = (0, 0);
    for suite in suites {
        let failed = suite.cases.iter().filter(|case| case.failure.is_some()).count();
        tests += suite.cases.len();
        failures += failed;
        let name = escape(&suite.file);
        // Writing to a string does not fail.
        let _ = writeln!(
            body,
            "  <testsuite name=\"{name}\" file=\"{name}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\">",
            suite.cases.len()
        );
        for case in &suite.cases {
            write_case(&mut body, case);
        }
        body.push_str("  </testsuite>\n");
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"deftool\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">\n{body}</testsuites>\n"
    )
}

fn write_case(out: &mut String, case: &JunitCase) {
    let _ = write!(out, "    <testcase classname=\"{}\" name=\"{}\"", escape(case.class), escape(&case.name));
    if case.failure.is_none() && case.output.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str(">\n");
    if let Some(JunitFailure { message, kind, text }) = &case.failure {
        let (message, kind, text) = (escape(message), escape(kind), escape_text(text));
        let _ = writeln!(out, "      <failure message=\"{message}\" type=\"{kind}\">{text}</failure>");
    }
    if !case.output.is_empty() {
        let _ = writeln!(out, "      <system-out>{}</system-out>", escape_text(&case.output));
    }
    out.push_str("    </testcase>\n");
}

/// The value of an attribute, whose tabs a parser would make blanks.
fn escape(text: &str) -> String {
    escape_text(text).replace('\t', "&#9;").replace('"', "&quot;")
}

/// Text between tags. What XML 1.0 cannot hold is replaced. Line ends, so that no text begins a line of the report, what a
/// terminal obeys, and the second `#` of what begins a CI runner's command are written as their numbers.
fn escape_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\r' => escaped.push_str("&#13;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push(character),
            '#' if escaped.ends_with('#') => escaped.push_str("&#35;"),
            '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => escaped.push(char::REPLACEMENT_CHARACTER),
            _ if is_control(character) => _ = write!(escaped, "&#{};", u32::from(character)),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_legal_in_xml() {
        assert_eq!(
            escape("a\"b'<&>\u{1}\n\t\r\u{FFFF}\u{9b}\u{202e}"),
            "a&quot;b'&lt;&amp;&gt;\u{FFFD}&#10;&#9;&#13;\u{FFFD}&#155;&#8238;"
        );
    }

    #[test]
    fn no_text_begins_a_line_or_a_command_of_a_runner() {
        let failure = || JunitFailure {
            message: String::from("\n::error::m"),
            kind: String::from("k\n::error::k"),
            text: String::from("t\n::error::t\r\n##[error]t\u{2028}::error::t"),
        };
        let case = JunitCase {
            class: "c",
            name: String::from("n\n::error::n"),
            failure: Some(failure()),
            output: String::from("\n::stop-commands::o\n"),
        };
        let report = junit_xml(&[JunitSuite { file: String::from("f\n::error::f"), cases: vec![case] }]);
        for line in report.lines() {
            assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{line}");
        }
        assert!(report.contains("t&#10;::error::t&#13;&#10;#&#35;[error]t"), "{report}");
        assert_eq!(report.lines().count(), 9, "{report}");
    }
}
