//! Reuse of the tool forms of a spec file whose text did not change.
//!
//! The definition and the findings of a top-level form depend on its text alone if the form starts a line and has no
//! syntax error. Such a form is lowered and checked once, and moved to its place in later versions of the file.

use std::sync::Arc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::syntax::{NodeId, Tree};
use deftool_lang::text::{MoveSpans, Span};

use super::model::{KnownForm, SpecFile};
use crate::model::LoadedTool;

/// Returns the forms that depend on their text alone, in order.
pub(super) fn independent_forms(tree: &Tree, text: &str) -> Vec<NodeId> {
    let starts_line = |span: Span| {
        let before = text.get(..span.start as usize).unwrap_or_default();
        before.is_empty() || before.ends_with('\n')
    };
    let is_independent = |node: &NodeId| {
        starts_line(tree.span(*node)) && tree.syntax_error(*node).is_none() && !tree.is_overclosed(*node)
    };
    tree.roots().filter(is_independent).collect()
}

/// Returns the known forms of the version `before` of a file that are also in `text`, at their new places and in order.
/// `forms`: the independent forms of `text`.
pub(super) fn reuse_forms(before: &SpecFile, text: &str, tree: &Tree, forms: &[NodeId]) -> Vec<KnownForm> {
    let is_same = |known: Option<&KnownForm>, form: NodeId| {
        known.is_some_and(|known| known.span.of(&before.source.text) == tree.text(form, text))
    };
    let known = &before.known_forms;
    let (mut first, mut end) = (0, known.len());
    let mut found: Vec<Option<&KnownForm>> = vec![None; forms.len()];
    // Up to the edit, then from the end back to it.
    for (found, form) in found.iter_mut().zip(forms) {
        if is_same(known.get(first), *form) {
            *found = known.get(first);
            first += 1;
        }
    }
    for (found, form) in found.iter_mut().zip(forms).rev().filter(|(found, _)| found.is_none()) {
        if first < end && is_same(known.get(end - 1), *form) {
            *found = known.get(end - 1);
            end -= 1;
        }
    }
    let reused = found.into_iter().zip(forms);
    reused.filter_map(|(known, form)| Some(known?.at(tree.span(*form)))).collect()
}

impl KnownForm {
    /// Returns the form of `tool` if its findings refer to nothing outside of it.
    pub(super) fn of(tool: &Arc<LoadedTool>, findings: Vec<Diagnostic>) -> Option<Self> {
        let span = tool.tool.span;
        let is_inside = |finding: &Diagnostic| {
            let edits = finding.fix.iter().flat_map(|fix| &fix.edits).map(|edit| edit.span);
            let labels = finding.labels.iter().map(|label| label.location.span);
            let mut spans = std::iter::once(finding.primary.span).chain(labels).chain(edits);
            spans.all(|part| span.contains(part))
        };
        findings.iter().all(is_inside).then(|| Self { span, tool: Arc::clone(tool), findings })
    }

    /// Returns the form at another place.
    fn at(&self, span: Span) -> Self {
        let by = i64::from(span.start) - i64::from(self.span.start);
        let by = i32::try_from(by).unwrap_or_default();
        if by == 0 {
            return self.clone();
        }
        let mut findings = self.findings.clone();
        findings.move_spans(by);
        Self { span, tool: Arc::new(self.tool.moved(by)), findings }
    }
}
