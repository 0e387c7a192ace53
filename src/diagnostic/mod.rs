//! Findings: what is wrong in a user's source, where, and how to mend it.
//!
//! Broken source is data, not an error: every layer that reads it returns its best result and a list of
//! [`Diagnostic`]s. Each belongs to a [`Rule`], whose code is stable; the rules stand in the rooms that check them.

mod fix;
pub mod render;
mod rule;

use serde::Serialize;

use crate::text::{Location, Span, one_line};

pub use fix::{Fixed, apply_fixes};
pub use rule::{Group, Rule};
pub(crate) use rule::{rule, rules};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Legal, but likely not what was meant.
    Warning,
    /// Some API refuses it, or it cannot mean what was written.
    Error,
}

impl Severity {
    /// The lowercase word.
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
    /// Which rule.
    pub rule: &'static Rule,
    /// How bad.
    pub severity: Severity,
    /// Where.
    pub primary: Location,
    /// One lowercase clause: what was found and what was expected.
    pub message: String,
    /// A word at the primary place, shown under the marked source.
    pub label: Option<String>,
    /// Further places, each with a word.
    pub labels: Vec<Label>,
    /// Further sentences.
    pub notes: Vec<String>,
    /// The repair, where there is one.
    pub fix: Option<Fix>,
}

/// A further place of a finding.
#[derive(Debug, Clone)]
pub struct Label {
    /// Where.
    pub location: Location,
    /// What is there.
    pub message: String,
}

/// A repair: edits of the primary place's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What it does, in the imperative.
    pub title: String,
    /// The edits, in source order, not overlapping.
    pub edits: Vec<Edit>,
    /// Whether it does what was meant beyond doubt, so that it may be applied unseen.
    pub is_safe: bool,
}

/// One edit of a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub span: Span,
    /// By what.
    pub replacement: String,
}

impl Diagnostic {
    /// A finding of `rule`, with the rule's own severity.
    pub fn new(rule: &'static Rule, primary: Location, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            primary,
            // What a message quotes may hold anything.
            message: one_line(message.into()),
            label: None,
            labels: Vec::new(),
            notes: Vec::new(),
            fix: None,
        }
    }

    /// With a word at the primary place.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// With a further place of the same source.
    #[must_use]
    pub fn and_at(mut self, span: Span, message: impl Into<String>) -> Self {
        let location = Location { source: self.primary.source, span };
        self.labels.push(Label { location, message: message.into() });
        self
    }

    /// With a further sentence.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// With a repair that replaces `span` and is meant beyond doubt.
    #[must_use]
    pub fn fixed_by(self, title: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.with_fix(title.into(), span, replacement.into(), true)
    }

    /// With a repair that replaces `span` and is only likely.
    #[must_use]
    pub fn maybe_fixed_by(
        self,
        title: impl Into<String>,
        span: Span,
        replacement: impl Into<String>,
    ) -> Self {
        self.with_fix(title.into(), span, replacement.into(), false)
    }

    /// With what was likely meant at `span`, as it would be written there.
    #[must_use]
    pub fn meant(self, span: Span, written: impl Into<String>) -> Self {
        let written = written.into();
        // Words of the language stand between backticks, strings have quotation marks.
        let shown = if written.starts_with('"') { written.clone() } else { format!("`{written}`") };
        self.labelled(format!("did you mean {shown}?")).maybe_fixed_by(
            format!("write {shown}"),
            span,
            written,
        )
    }

    /// With a repair of several edits, in source order, that is meant beyond doubt.
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

/// How many findings of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Notes.
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
