//! Quick fixes.

use std::path::Path;

use deftool_lang::diagnostic::{Diagnostic, Edit, Fix, Severity, apply_fixes};
use deftool_lang::text::{SourceFile, Span};

use crate::project::{Language, Project};

/// A change that the user can choose.
#[derive(Debug, Clone)]
pub struct Action<'p> {
    /// The finding that it removes.
    pub finding: &'p Diagnostic,
    /// The change of the file.
    pub fix: Fix,
    /// Whether it silences the finding instead of repairing its cause.
    pub silences: bool,
}

/// Returns the actions for the findings of a file that overlap `range`: fixes first, then comments that silence
/// findings.
pub fn actions<'p>(project: &'p Project, path: &Path, range: Span) -> Vec<Action<'p>> {
    let Some(file) = project.source_at(path) else { return Vec::new() };
    let overlaps = |finding: &&Diagnostic| {
        finding.primary.span.start <= range.end && range.start <= finding.primary.span.end
    };
    let here: Vec<_> = project.findings_of(path).iter().filter(overlaps).collect();
    let fixes = here.iter().filter_map(|finding| {
        let fix = finding.fix.clone()?;
        Some(Action { finding, fix, silences: false })
    });
    let silences = here.iter().filter(|finding| finding.severity != Severity::Error);
    let silences =
        silences.map(|finding| Action { finding, fix: silence(path, file, finding), silences: true });
    fixes.chain(silences).collect()
}

/// Returns the text of a file with all safe fixes, if there are any.
pub fn fix_all(project: &Project, path: &Path) -> Option<String> {
    let text = project.text(path)?;
    let fixes = project.findings_of(path).iter().filter_map(|finding| finding.fix.as_ref());
    let fixed = apply_fixes(&text, fixes.filter(|fix| fix.is_safe));
    (fixed.applied > 0).then_some(fixed.text)
}

/// Returns the insertion of an `allow` comment above the line of a finding.
fn silence(path: &Path, file: &SourceFile, finding: &Diagnostic) -> Fix {
    let start = file.line_start(finding.primary.span.start);
    let line = file.text.get(start..).unwrap_or_default();
    let indent = line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or_default();
    let mark = if Language::of(path) == Some(Language::Script) { "--" } else { ";;" };
    let replacement = format!("{indent}{mark} deftool: allow({})\n", finding.rule.name);
    let edits = vec![Edit { span: Span::at(start), replacement }];
    Fix { title: format!("silence `{}` here", finding.rule.name), edits, is_safe: true }
}
