//! GitHub Actions workflow commands: each finding becomes an annotation on its line.
//!
//! Source: GitHub, "Workflow commands for GitHub Actions" (docs.github.com), and the escaping of `actions/toolkit`'s
//! `command.ts`, read 2026-11. GitHub shows at most ten errors and ten warnings per step; the log contains all.

use std::fmt::Write;

use crate::diagnostic::{Diagnostic, Severity};
use crate::text::{Sources, one_line};

/// Renders one finding as a command, one line without a line break.
pub fn render_github(finding: &Diagnostic, sources: &Sources) -> String {
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut line = format!("::{command} ");
    if let Some(file) = sources.get(finding.primary.source).filter(|file| file.is_file()) {
        let start = file.line_column(finding.primary.span.start);
        let end = file.line_column(finding.primary.span.end);
        let _ = write!(line, "file={},line={},endLine={},", property(&file.name), start.line, end.line);
        // GitHub rejects columns if the finding spans several lines.
        if start.line == end.line {
            let _ = write!(line, "col={},endColumn={},", start.column, end.column);
        }
    }
    let title = property(&format!("{} {}", finding.rule.code, finding.rule.name));
    // The log shows only the message, so it includes the location.
    let mut message = format!("{}: {}", sources.describe(finding.primary), finding.message);
    for more in finding.label.iter().chain(&finding.notes) {
        message.push('\n');
        message.push_str(more);
    }
    let _ = write!(line, "title={title}::{}", data(&message));
    one_line(line)
}

/// Escapes the text after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::rules;
    use crate::text::{Location, SourceFile, Span};

    #[test]
    fn escapes_everything_that_could_end_the_command() {
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new("a,b:c%\n.eld", "(one\ntwo"));
        let at = |start, end| Location { source, span: Span::new(start, end) };
        let finding = Diagnostic::new(&rules::UNCLOSED, at(0, 4), "100 %: a, b").note("one\r\n::error::two");
        assert_eq!(
            render_github(&finding, &sources),
            "::error file=a%2Cb%3Ac%25%0A.eld,line=1,endLine=1,col=1,endColumn=5,title=DT001 unclosed::\
             a,b:c%25%0A.eld:1:1: 100 %25: a, b%0Aone%0D%0A::error::two"
        );
        let finding = Diagnostic::new(&rules::UNCLOSED, at(0, 6), "x");
        assert!(render_github(&finding, &sources).contains(",line=1,endLine=2,title="));
    }
}
