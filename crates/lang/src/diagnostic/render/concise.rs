//! One line per finding: `file:line:column: severity[code]: message`, a format that editors parse.

use crate::diagnostic::Diagnostic;
use crate::text::{Sources, one_line};

/// Renders one finding as a line without a line break.
pub fn render_concise(finding: &Diagnostic, sources: &Sources) -> String {
    one_line(format!(
        "{}: {}[{}]: {}",
        sources.describe(finding.primary),
        finding.severity.as_str(),
        finding.rule.code,
        finding.message
    ))
}
