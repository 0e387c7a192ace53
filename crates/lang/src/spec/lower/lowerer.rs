//! The state that all parts of the lowering share.

use crate::diagnostic::{Diagnostic, Severity};
use crate::text::{Location, SourceId, Span};

/// State and findings while one file is lowered.
pub(super) struct Lowerer {
    pub(super) source: SourceId,
    pub(super) findings: Vec<Diagnostic>,
    /// Index of the first finding of the current form.
    pub(super) form_start: usize,
    /// Whether the current form has syntax errors.
    pub(super) is_misread: bool,
    /// Whether the form is a call to an Emacs function that makes tools.
    pub(super) is_called: bool,
}

impl Lowerer {
    pub(super) fn new(source: SourceId) -> Self {
        Self { source, findings: Vec::new(), form_start: 0, is_misread: false, is_called: false }
    }

    pub(super) fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    /// Whether the current form has an error.
    pub(super) fn has_error(&self) -> bool {
        let of_form = self.findings.get(self.form_start..).unwrap_or_default();
        of_form.iter().any(|finding| finding.severity == Severity::Error)
    }
}
