//! The state that all parts of the lowering share.

use crate::diagnostic::{Diagnostic, Severity};
use crate::spec::Origin;
use crate::spec::rules::invalid_name::{EVERY_API, NameGrammar};
use crate::text::{Location, SourceId, Span};

/// State and findings while one file is lowered.
#[allow(clippy::struct_excessive_bools)] // each describes the file or the current form
pub(super) struct Lowerer {
    pub(super) source: SourceId,
    pub(super) findings: Vec<Diagnostic>,
    /// Index of the first finding of the current form.
    pub(super) form_start: usize,
    /// Whether the current form has syntax errors.
    pub(super) is_misread: bool,
    /// Whether the current form has values that are only available in a running Emacs.
    pub(super) is_partial: bool,
    /// The kind of the current form.
    pub(super) origin: Origin,
    /// Whether a project declares the head of the current form, whose function may take keys of its own.
    pub(super) is_declared: bool,
    /// Whether the file is Emacs Lisp or Org.
    pub(super) is_code: bool,
    /// The names that are accepted.
    pub(super) names: &'static NameGrammar,
}

impl Lowerer {
    pub(super) fn new(source: SourceId) -> Self {
        Self {
            source,
            findings: Vec::new(),
            form_start: 0,
            is_misread: false,
            is_partial: false,
            origin: Origin::Spec,
            is_declared: false,
            is_code: false,
            names: &EVERY_API,
        }
    }

    /// Whether the form is a call to an Emacs function that makes tools.
    pub(super) fn is_called(&self) -> bool {
        self.origin != Origin::Spec
    }

    pub(super) fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    /// Whether the current form has an error or unknown values.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_partial || self.has_error()
    }

    /// Whether the current form has an error.
    pub(super) fn has_error(&self) -> bool {
        let of_form = self.findings.get(self.form_start..).unwrap_or_default();
        of_form.iter().any(|finding| finding.severity == Severity::Error)
    }
}
