//! The state of folding, shared by all its parts.

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Edit, Severity};
use crate::syntax::datum::{Datum, DatumKind};
use crate::syntax::tree::{NodeId, Tree};
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

/// The value of a variable.
pub(super) enum Value {
    /// Not evaluated yet.
    Form(NodeId),
    /// Being evaluated; a use is a cycle.
    Pending,
    Known(Datum),
    Unknown,
}

/// The variables that a file assigns once.
pub(super) struct Constants<'t> {
    pub(super) values: HashMap<&'t str, Value>,
}

/// Minimum of the limit on bytes that folding may produce in addition to the text of the file. Calls can be nested and
/// variables can be used repeatedly: without a limit, 30 short lines could produce a billion bytes.
const MIN_GROWTH_LIMIT: usize = 1 << 20;

/// Bytes that folding may produce for each byte of the file.
const GROWTH_PER_BYTE: usize = 16;

/// Folds forms of one tree and collects findings.
#[allow(clippy::struct_excessive_bools)] // each is a flag
pub struct Folder<'t> {
    pub(super) tree: &'t Tree,
    pub(super) text: &'t str,
    pub(super) source: SourceId,
    /// Bytes that folding may still produce in addition to the source text.
    pub(super) budget: usize,
    /// Whether the file is Emacs Lisp: forms that only Emacs can evaluate are reported as warnings.
    pub is_emacs: bool,
    /// Whether the text is the code of an Org file, with a form feed for each byte that Org removes.
    pub is_org: bool,
    /// Variables of the enclosing `let` forms and lambdas, innermost last.
    pub(super) locals: Vec<(&'t str, Datum)>,
    /// Variables of the file with a constant value, collected on first use.
    pub(super) constants: Option<Constants<'t>>,
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
            budget: MIN_GROWTH_LIMIT.max(text.len().saturating_mul(GROWTH_PER_BYTE)),
            is_emacs: false,
            is_org: false,
            locals: Vec::new(),
            constants: None,
            source,
            in_code: false,
            is_macro_data: false,
            commas: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Whether forms have used variables of the file.
    pub fn has_used_constants(&self) -> bool {
        self.constants.is_some()
    }

    pub(super) fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    /// Reports a form whose value is only known in a running Emacs.
    pub(super) fn unknown(&mut self, span: Span, mut finding: Diagnostic) -> Datum {
        if self.is_emacs {
            finding.severity = Severity::Warning;
        }
        self.invalid(span, finding)
    }

    /// Subtracts `bytes` from the budget. A failed call uses up the budget, so that later calls fail at once.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let is_enough = bytes <= self.budget;
        self.budget = self.budget.saturating_sub(bytes);
        is_enough
    }

    pub(super) fn invalid(&mut self, span: Span, finding: Diagnostic) -> Datum {
        self.findings.push(finding);
        Datum { span, kind: DatumKind::Invalid }
    }
}
