//! Findings: problems in the user's source, with locations and fixes.
//!
//! Invalid source is data, not an error: every layer that reads it returns its best result and a list of
//! [`Diagnostic`]s. Each finding belongs to a [`Rule`] with a stable code. Every rule is in the layer that checks it.

mod fix;
pub mod render;
mod rule;

use serde::Serialize;

use crate::text::{Location, MoveSpans, Span, one_line};

pub use crate::{rule, rules};
pub use fix::{Fixed, apply_fixes, compatible_edits};
pub use rule::{Group, Rule};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information only.
    Note,
    /// Valid, but probably a mistake.
    Warning,
    /// Invalid, or rejected by an API.
    Error,
}

impl Severity {
    /// Returns the lowercase name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// The violated rule.
    pub rule: &'static Rule,
    /// The severity.
    pub severity: Severity,
    /// The primary location.
    pub primary: Location,
    /// One lowercase clause that describes the problem.
    pub message: String,
    /// The label of the primary location, shown under the marked source.
    pub label: Option<String>,
    /// Secondary locations.
    pub labels: Vec<Label>,
    /// Additional notes.
    pub notes: Vec<String>,
    /// The fix, if there is one.
    pub fix: Option<Fix>,
}

/// A secondary location of a finding.
#[derive(Debug, Clone)]
pub struct Label {
    /// The location.
    pub location: Location,
    /// The label text.
    pub message: String,
}

/// A fix: edits of the source that contains the primary location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// An imperative description.
    pub title: String,
    /// The edits, in source order, not overlapping.
    pub edits: Vec<Edit>,
    /// Whether the fix certainly keeps the intended meaning, so that it can be applied without review.
    pub is_safe: bool,
}

/// One edit of a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The replaced text.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

impl Diagnostic {
    /// Creates a finding of `rule`, with the rule's default severity.
    pub fn new(rule: &'static Rule, primary: Location, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            primary,
            // A message may quote arbitrary text.
            message: one_line(message.into()),
            label: None,
            labels: Vec::new(),
            notes: Vec::new(),
            fix: None,
        }
    }

    /// Sets the label of the primary location.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds a secondary location in the same source.
    #[must_use]
    pub fn with_label_at(mut self, span: Span, message: impl Into<String>) -> Self {
        let location = Location { source: self.primary.source, span };
        self.labels.push(Label { location, message: message.into() });
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets a safe fix that replaces `span`.
    #[must_use]
    pub fn fixed_by(self, title: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.with_fix(title.into(), span, replacement.into(), true)
    }

    /// Sets an unsafe fix that replaces `span`.
    #[must_use]
    pub fn maybe_fixed_by(
        self,
        title: impl Into<String>,
        span: Span,
        replacement: impl Into<String>,
    ) -> Self {
        self.with_fix(title.into(), span, replacement.into(), false)
    }

    /// Suggests a replacement of `span`: sets a label and an unsafe fix.
    #[must_use]
    pub fn did_you_mean(self, span: Span, written: impl Into<String>) -> Self {
        let written = written.into();
        // Strings already have quotation marks; everything else is shown in backticks.
        let shown = if written.starts_with('"') { written.clone() } else { format!("`{written}`") };
        self.labelled(format!("did you mean {shown}?")).maybe_fixed_by(
            format!("write {shown}"),
            span,
            written,
        )
    }

    /// Sets a safe fix with several edits, in source order.
    #[must_use]
    pub fn fixed_by_edits(mut self, title: impl Into<String>, edits: Vec<Edit>) -> Self {
        self.fix = Some(Fix { title: title.into(), edits, is_safe: true });
        self
    }

    fn with_fix(mut self, title: String, span: Span, replacement: String, is_safe: bool) -> Self {
        self.fix = Some(Fix { title, edits: vec![Edit { span, replacement }], is_safe });
        self
    }
}

impl MoveSpans for Diagnostic {
    fn move_spans(&mut self, by: i32) {
        let Self { rule: _, severity: _, primary, message: _, label: _, labels, notes: _, fix } = self;
        primary.span = primary.span.moved(by);
        for label in labels.iter_mut().filter(|label| label.location.source == primary.source) {
            label.location.span = label.location.span.moved(by);
        }
        for edit in fix.iter_mut().flat_map(|fix| &mut fix.edits) {
            edit.span = edit.span.moved(by);
        }
    }
}

/// The number of findings of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Summary {
    /// Number of errors.
    pub errors: usize,
    /// Number of warnings.
    pub warnings: usize,
    /// Number of notes.
    pub notes: usize,
}

impl Summary {
    /// Counts `findings`.
    pub fn of<'d>(findings: impl IntoIterator<Item = &'d Diagnostic>) -> Self {
        let mut summary = Self::default();
        for finding in findings {
            match finding.severity {
                Severity::Error => summary.errors += 1,
                Severity::Warning => summary.warnings += 1,
                Severity::Note => summary.notes += 1,
            }
        }
        summary
    }
}
