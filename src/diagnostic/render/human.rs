//! Findings with their source lines, as rustc shows them.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::text::{SourceFile, Sources, Span};

/// One finding, several lines, without a line end. `styled`: with terminal colours.
pub fn render_human(finding: &Diagnostic, sources: &Sources, styled: bool) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = level
        .primary_title(finding.message.as_str())
        .id(finding.rule.code)
        .elements(std::iter::empty::<Snippet<'_, annotate_snippets::Annotation<'_>>>());
    let mut groups = Vec::new();
    if let Some(file) = sources.get(finding.primary.source) {
        let mut spans = vec![finding.primary.span];
        let same = |location: &crate::text::Location| location.source == finding.primary.source;
        spans.extend(
            finding.labels.iter().filter(|label| same(&label.location)).map(|label| label.location.span),
        );
        let window = Window::around(file, &spans);
        let mut primary = AnnotationKind::Primary.span(window.range(finding.primary.span));
        if let Some(label) = &finding.label {
            primary = primary.label(label.as_str());
        }
        let mut snippet =
            Snippet::source(window.text).line_start(window.line).path(file.name.as_str()).annotation(primary);
        for label in finding.labels.iter().filter(|label| same(&label.location)) {
            snippet = snippet.annotation(
                AnnotationKind::Context.span(window.range(label.location.span)).label(label.message.as_str()),
            );
        }
        group = group.element(snippet);
        for label in finding.labels.iter().filter(|label| !same(&label.location)) {
            if let Some(file) = sources.get(label.location.source) {
                let window = Window::around(file, &[label.location.span]);
                group = group.element(
                    Snippet::source(window.text).line_start(window.line).path(file.name.as_str()).annotation(
                        AnnotationKind::Context
                            .span(window.range(label.location.span))
                            .label(label.message.as_str()),
                    ),
                );
            }
        }
    }
    for note in &finding.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    groups.push(group);
    if let (Some(fix), Some(file)) = (&finding.fix, sources.get(finding.primary.source)) {
        let spans: Vec<Span> = fix.edits.iter().map(|edit| edit.span).collect();
        let window = Window::around(file, &spans);
        let mut snippet = Snippet::source(window.text).line_start(window.line).path(file.name.as_str());
        for edit in &fix.edits {
            snippet = snippet.patch(Patch::new(window.range(edit.span), edit.replacement.as_str()));
        }
        groups.push(Group::with_title(Level::HELP.secondary_title(fix.title.as_str())).element(snippet));
    }
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&groups)
}

/// The lines of a file that some spans touch; the renderer scans all it is given.
struct Window<'f> {
    text: &'f str,
    line: usize,
    start: usize,
}

impl<'f> Window<'f> {
    fn around(file: &'f SourceFile, spans: &[Span]) -> Self {
        let text: &str = &file.text;
        let first = spans.iter().map(|span| span.start as usize).min().unwrap_or(0).min(text.len());
        let last = spans.iter().map(|span| span.end as usize).max().unwrap_or(0).clamp(first, text.len());
        let bytes = text.as_bytes();
        let start = memchr::memrchr(b'\n', bytes.get(..first).unwrap_or_default()).map_or(0, |at| at + 1);
        let end =
            memchr::memchr(b'\n', bytes.get(last..).unwrap_or_default()).map_or(text.len(), |at| last + at);
        Self { text: text.get(start..end).unwrap_or(""), line: file.line_column(start as u32).line, start }
    }

    /// A span inside the window, on character boundaries whatever the span is.
    fn range(&self, span: Span) -> Range<usize> {
        let floor = |at: usize| {
            let mut at = at.saturating_sub(self.start).min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = floor(span.start as usize);
        start..floor(span.end as usize).max(start)
    }
}
