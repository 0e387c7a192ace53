//! Formatting.

use std::path::Path;

use deftool_lang::diagnostic::Edit;
use deftool_lang::spec::{self, FileKind};
use deftool_lang::text::{Sources, Span};
use similar::{Algorithm, DiffOp, TextDiff};

use crate::project::{Language, Project};

/// Returns the edits that format a spec file, one for each run of changed lines that overlaps `range`. A file with
/// syntax errors is not formatted.
pub fn format(project: &Project, path: &Path, range: Option<Span>) -> Vec<Edit> {
    let Some(text) = project.text(path).filter(|_| Language::of(path) == Some(Language::Spec)) else {
        return Vec::new();
    };
    let kind = FileKind::of_name(&path.to_string_lossy());
    let forms = &project.load().tool_forms;
    let formatted = spec::format(Sources::new().id_ahead(0), &text, kind, forms);
    let Ok(formatted) = formatted else { return Vec::new() };
    let diff = TextDiff::configure().algorithm(Algorithm::Histogram).diff_lines(&*text, &formatted);
    let starts = |text: &str| -> Vec<usize> {
        let mut at = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            at += line.len();
            at
        });
        std::iter::once(0).chain(lines).collect()
    };
    let (old, new) = (starts(&text), starts(&formatted));
    let at = |starts: &[usize], line: usize| starts.get(line).or(starts.last()).copied().unwrap_or_default();
    let edit = |op: &DiffOp| {
        let (before, after) = (op.old_range(), op.new_range());
        let span = Span::new(at(&old, before.start), at(&old, before.end));
        let replacement = formatted.get(at(&new, after.start)..at(&new, after.end)).unwrap_or_default();
        Edit { span, replacement: replacement.to_owned() }
    };
    let is_change = |op: &&DiffOp| !matches!(op, DiffOp::Equal { .. });
    let edits = diff.ops().iter().filter(is_change).map(edit);
    edits
        .filter(|edit| range.is_none_or(|range| edit.span.start <= range.end && range.start <= edit.span.end))
        .collect()
}
