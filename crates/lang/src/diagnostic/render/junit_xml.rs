//! Test reports in JUnit XML, for GitLab, Jenkins and other CI systems.
//!
//! Sources: GitLab, "Unit test reports" (docs.gitlab.com), and `junit-10.xsd` of Jenkins' xUnit plugin, both read
//! 2026-11. The xUnit plugin rejects unknown attributes, for example `file` of a test, which GitLab supports.

use std::fmt::Write;

use crate::text::is_readable;

/// The tests of one file.
#[derive(Debug)]
pub struct JunitSuite {
    /// The file name, which is also the name of the suite.
    pub file: String,
    /// The tests.
    pub cases: Vec<JunitCase>,
}

/// One test.
#[derive(Debug)]
pub struct JunitCase {
    /// The class name, which is the kind of test.
    pub class: &'static str,
    /// The unique name.
    pub name: String,
    /// The failure, if the test fails.
    pub failure: Option<JunitFailure>,
    /// Further output; usually empty.
    pub output: String,
}

/// The failure of a test.
#[derive(Debug)]
pub struct JunitFailure {
    /// One clause that describes the failure.
    pub message: String,
    /// The kind of failure.
    pub kind: String,
    /// The full text.
    pub text: String,
}

/// Renders the XML document.
pub fn junit_xml(suites: &[JunitSuite]) -> String {
    let mut body = String::new();
    let (mut tests, mut failures) = (0, 0);
    for suite in suites {
        let failed = suite.cases.iter().filter(|case| case.failure.is_some()).count();
        tests += suite.cases.len();
        failures += failed;
        let name = escape(&suite.file);
        // Writing to a string cannot fail.
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

/// Escapes the value of an attribute. Tabs are escaped because a parser would convert them to spaces.
fn escape(text: &str) -> String {
    escape_text(text).replace('\t', "&#9;").replace('"', "&quot;")
}

/// Escapes text between tags. Replaces characters that XML 1.0 does not allow. Writes line breaks as character
/// references, so that quoted text never starts a line of the report, and also hidden characters and the
/// second `#` of `##`, which could start a CI runner command.
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
            _ if !is_readable(character) => _ = write!(escaped, "&#{};", u32::from(character)),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_valid_xml() {
        assert_eq!(
            escape("a\"b'<&>\u{1}\n\t\r\u{FFFF}\u{9b}\u{202e}"),
            "a&quot;b'&lt;&amp;&gt;\u{FFFD}&#10;&#9;&#13;\u{FFFD}&#155;&#8238;"
        );
    }

    #[test]
    fn quoted_text_cannot_start_a_line_or_runner_command() {
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
