//! The state of folding, shared by all its parts.

use super::format::MAX_GROWTH;
use crate::diagnostic::{Diagnostic, Edit};
use crate::syntax::datum::{Datum, DatumKind};
use crate::syntax::rules::not_a_constant;
use crate::syntax::tree::{Kind, NodeId, Tree};
use crate::text::{Location, SourceId, Span};

/// The interpretation of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Code or unquoted data: calls of known functions are folded, keyword lists are data.
    Evaluated,
    /// Data: nothing is folded.
    Quoted,
    /// Data, except for forms after a comma.
    Backquoted,
}

/// Folds forms of one tree and collects findings.
pub struct Folder<'t> {
    pub(super) tree: &'t Tree,
    pub(super) text: &'t str,
    pub(super) source: SourceId,
    /// Bytes that `format` may still produce in addition to the source text.
    pub(super) room: usize,
    /// Whether the folded form is Emacs Lisp, where a symbol among the arguments of `list` is a variable.
    pub in_code: bool,
    /// Whether a macro interprets the data: a list in it may start with any name.
    pub(super) is_macro_data: bool,
    /// Commas that separate items, with their replacements.
    pub(super) commas: Vec<Edit>,
    /// Findings so far.
    pub findings: Vec<Diagnostic>,
}

impl<'t> Folder<'t> {
    /// Creates a folder over `tree`, parsed from `text`, the complete text of `source`.
    pub fn new(source: SourceId, text: &'t str, tree: &'t Tree) -> Self {
        Self {
            tree,
            text,
            room: MAX_GROWTH,
            source,
            in_code: false,
            is_macro_data: false,
            commas: Vec::new(),
            findings: Vec::new(),
        }
    }

    pub(super) fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    pub(super) fn not_a_constant(&mut self, id: NodeId) -> Datum {
        let span = self.tree.span(id);
        let head = self.tree.children(id).next().filter(|&head| self.tree.kind(head) == Kind::Symbol);
        let head = head.map(|head| self.tree.text(head, self.text));
        let finding = not_a_constant::call(self.at(span), self.tree.text(id, self.text), head);
        self.invalid(span, finding)
    }

    pub(super) fn invalid(&mut self, span: Span, finding: Diagnostic) -> Datum {
        self.findings.push(finding);
        Datum { span, kind: DatumKind::Invalid }
    }
}
