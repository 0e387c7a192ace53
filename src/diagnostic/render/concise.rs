//! One line a finding: `file:line:column: severity[code]: message`, the form that editors parse.

use crate::diagnostic::Diagnostic;
use crate::text::{Sources, one_line};

/// The line of one finding, without a line end.
pub fn render_concise(finding: &Diagnostic, sources: &Sources) -> String {
    one_line(format!(
        "{}: {}[{}]: {}",
        sources.describe(finding.primary),
        finding.severity.as_str(),
        finding.rule.code,
        finding.message
    ))
}
