//! Reading a text again in which something is never closed, so that one missing parenthesis or quote costs one form
//! and is told where it is missing.
//!
//! An opening parenthesis in the first column starts a new top-level form (the convention Emacs itself navigates
//! by). Inside the forms that are broken by this measure, indentation tells where a list was meant to end: nothing
//! that belongs to it starts a line at or before its own column. That guess is kept only where it makes no closer
//! stray that was not. Each reading is linear, and there are three at most, or twice as many where a bracket closes a
//! parenthesis.

use super::reader::Reader;
use super::tree::Kind;
use crate::diagnostic::Label;
use crate::syntax::rules;
use crate::text::{Location, SourceId, Span};

/// What a reading takes for the end of something unclosed.
#[derive(Default)]
pub(super) struct Recovery {
    /// A parenthesis in the first column ends all that is open.
    columns: bool,
    /// Such a parenthesis ends even a string.
    strings: bool,
    /// The end of a line, the next but for those that are passed, before one that starts with a parenthesis.
    next_form: usize,
    /// A closer closes what is open, of whatever sort it is.
    swaps: bool,
    /// Starts of the forms in which indentation counts, in order.
    forms: Vec<usize>,
}

impl Recovery {
    pub(super) fn is_active(&self) -> bool {
        self.columns
    }

    pub(super) fn swaps(&self) -> bool {
        self.swaps
    }
}

/// Reads `text`, once more where something is never closed.
pub(super) fn read_whole(source: SourceId, text: &str, swaps: bool) -> Reader<'_> {
    let reader = Reader::read(source, text, Recovery { swaps, ..Recovery::default() });
    if reader.unclosed.any() { read_again(reader) } else { reader }
}

/// The best of the readings that recover.
fn read_again(first: Reader<'_>) -> Reader<'_> {
    let strings = first.unclosed.string;
    let (source, text, swaps) = (first.source, first.text, first.recovery.swaps);
    drop(first);
    let by_columns =
        Reader::read(source, text, Recovery { columns: true, strings, swaps, ..Recovery::default() });
    if by_columns.unclosed.forms.is_empty() {
        return by_columns;
    }
    let forms = by_columns.unclosed.forms.clone();
    let by_lines =
        Reader::read(source, text, Recovery { columns: true, strings, swaps, forms, ..Recovery::default() });
    // Where lines are not indented as they nest, lists are closed too early and their own parentheses are stray.
    if count_others(&by_lines) <= count_others(&by_columns) { by_lines } else { by_columns }
}

fn count_others(reader: &Reader<'_>) -> usize {
    reader.findings.iter().filter(|finding| *finding.rule != rules::UNCLOSED).count()
}

impl Reader<'_> {
    /// Closes what the first character of a line says is over.
    pub(super) fn recover_before(&mut self, byte: u8) {
        let column = self.at - self.line_start;
        if byte == b'(' && column == 0 {
            if !self.open.is_empty() {
                self.close_all_unclosed(self.at, "the next form in the first column", false);
            }
            return;
        }
        // A closing parenthesis on its own line and a comment stand anywhere.
        if matches!(byte, b')' | b']' | b';') || !self.is_in_broken_form() {
            return;
        }
        // While nothing is over, columns grow from the outermost to the innermost. What is passed here is closed.
        let mut outermost = None;
        let mut next = self.innermost();
        while let Some(index) = next.filter(|index| *index > 0)
            && let Some(open) = self.open.get(index).filter(|open| open.column >= column)
        {
            outermost = Some(index);
            next = open.outer.map(|index| index as usize);
        }
        if let Some(outermost) = outermost {
            self.close_by_indentation(outermost);
        }
    }

    fn is_in_broken_form(&self) -> bool {
        let start = self.open.first().and_then(|open| self.tree.nodes.get(open.id as usize));
        start.is_some_and(|node| self.recovery.forms.binary_search(&(node.span.start as usize)).is_ok())
    }

    /// Closes what is open from `index` on, and the prefixes that wait for it.
    fn close_by_indentation(&mut self, index: usize) {
        let opener = self.open.get(index).and_then(|open| self.tree.nodes.get(open.id as usize));
        let Some(opener) = opener.map(|node| node.span) else { return };
        let outsider = Span::new(self.at, self.at + self.char_len(self.at));
        self.tell_unclosed(opener, String::from("opened here"));
        if let Some(finding) = self.findings.last_mut().filter(|finding| finding.primary.span == opener) {
            let location = Location { source: self.source, span: outsider };
            let message = String::from("by its indentation, this stands outside of it");
            finding.labels.push(Label { location, message });
        }
        let end = self.end_of_last_form(self.at);
        while self.open.len() > index {
            let Some(open) = self.open.pop() else { break };
            self.end_unclosed(open, end);
        }
        while let Some(open) = self.open.last().copied().filter(|&open| self.is_open_prefix(open)) {
            self.end_unclosed(open, end);
            self.open.pop();
        }
    }

    /// Whether the string `start..end` seems to hold the start of the next form: an even number of quotes is missing.
    pub(super) fn runs_into_form(&self, start: usize, end: usize) -> bool {
        self.has_no_gap_at(end + 1) && self.first_form_in(start, end).is_some()
    }

    fn has_no_gap_at(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
    }

    /// The end of the line before one that starts with a parenthesis.
    fn first_form_in(&self, start: usize, end: usize) -> Option<usize> {
        let inside = self.bytes.get(start..end)?;
        memchr::memchr_iter(b'\n', inside).find(|at| inside.get(at + 1) == Some(&b'(')).map(|at| start + at)
    }

    /// Where the string that starts at `start` was meant to end at the latest: at a line that starts with a
    /// parenthesis. Looked for once, however many strings ask.
    pub(super) fn cut_of_string(&mut self, start: usize) -> Option<usize> {
        if !self.recovery.strings {
            return None;
        }
        if self.recovery.next_form <= start {
            self.recovery.next_form = self.first_form_in(start, self.bytes.len()).unwrap_or(usize::MAX);
        }
        Some(self.recovery.next_form).filter(|cut| *cut < self.bytes.len())
    }

    /// Ends the string that starts at `start` at byte `end`, without its quote, and all that is open around it.
    ///
    /// Where a quote is missing, every quote after it means the opposite, and the string that runs on is not the one
    /// that was left open. That one is the first since the start of the form whose closing quote has no gap after
    /// it: it is the opening quote of the next string.
    pub(super) fn end_unclosed_string(&mut self, start: usize, end: usize) {
        let first = self
            .tree
            .nodes
            .iter()
            .rposition(|node| node.kind == Kind::List && self.is_first_column(node.span));
        let since = self.tree.nodes.get(first.unwrap_or(0)..).unwrap_or_default();
        // Between typographic marks there is no quote that could mean the opposite.
        let is_quoted = |span: Span| span.of(self.text).starts_with('"') && span.of(self.text).ends_with('"');
        let culprit = since.iter().find(|node| {
            node.kind == Kind::String && is_quoted(node.span) && self.has_no_gap_at(node.span.end as usize)
        });
        let start_of_doubt = culprit.map_or(start, |node| node.span.start as usize);
        let turned = culprit.map(|node| node.span.end as usize - 1);
        self.findings.retain(|finding| (finding.primary.span.start as usize) < start_of_doubt);
        let opener = Span::new(start_of_doubt, start_of_doubt + 1);
        self.tell_unclosed(opener, String::from("opened here"));
        if let (Some(turned), Some(finding)) = (turned, self.findings.last_mut()) {
            let location = Location { source: self.source, span: Span::new(turned, turned + 1) };
            let message = String::from("closed only by this quote, which seems to open another string");
            finding.labels.push(Label { location, message });
        }
        // Whatever was read since then is a guess.
        self.doubt(start_of_doubt, end);
        self.push_string(start, end);
        self.close_all_unclosed(end, "", true);
    }

    pub(super) fn is_first_column(&self, span: Span) -> bool {
        let before = (span.start as usize).checked_sub(1).and_then(|at| self.bytes.get(at));
        before.is_none_or(|byte| *byte == b'\n')
    }
}
