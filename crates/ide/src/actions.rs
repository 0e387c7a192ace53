//! Quick fixes.

use std::collections::HashSet;
use std::path::Path;

use deftool_lang::diagnostic::{Diagnostic, Edit, Fix, Severity, apply_fixes, compatible_edits};
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

/// The safe fixes of all findings of one rule in a file.
#[derive(Debug, Clone)]
pub struct RuleFixes<'p> {
    /// The first finding of the rule.
    pub finding: &'p Diagnostic,
    /// The number of fixes.
    pub count: usize,
    /// The edits, in source order.
    pub edits: Vec<Edit>,
}

/// Returns the safe fixes for all findings of a rule in a file, for each rule whose first finding overlaps `range` and that
/// has several.
pub fn fixes_of_rules<'p>(project: &'p Project, path: &Path, range: Span) -> Vec<RuleFixes<'p>> {
    let Some(file) = project.source_at(path) else { return Vec::new() };
    let findings = project.findings_of(path);
    let mut seen = HashSet::new();
    let first = findings.iter().filter(|finding| seen.insert(finding.rule.code));
    let here = first
        .filter(|finding| finding.primary.span.start <= range.end && range.start <= finding.primary.span.end);
    let of_rule = |finding: &'p Diagnostic| {
        let of_rule = findings.iter().filter(|other| other.rule == finding.rule);
        let (edits, count) = compatible_edits(&file.text, safe_fixes(of_rule));
        (count > 1).then_some(RuleFixes { finding, count, edits })
    };
    here.filter_map(of_rule).collect()
}

/// Returns the text of a file with all safe fixes, if there are any.
pub fn fix_all(project: &Project, path: &Path) -> Option<String> {
    let text = project.text(path)?;
    let fixed = apply_fixes(&text, safe_fixes(project.findings_of(path)));
    (fixed.applied > 0).then_some(fixed.text)
}

/// Returns the fixes that may be applied together, without a look at each: those of `check --fix`.
fn safe_fixes<'d>(findings: impl IntoIterator<Item = &'d Diagnostic>) -> impl Iterator<Item = &'d Fix> {
    findings.into_iter().filter_map(|finding| finding.fix.as_ref().filter(|fix| fix.is_safe))
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
