//! Closing parentheses and brackets without an opener or of the wrong kind.

use super::reader::Reader;
use super::rules;
use super::tree::{Kind, SyntaxError};
use crate::text::Span;

impl Reader<'_> {
    /// Accepts a closer of the wrong kind for `opener`.
    pub(super) fn close_mismatched(&mut self, closer: u8, opener: Span) {
        let at = self.at(Span::new(self.at, self.at + 1));
        if self.is_reporting() {
            let finding = rules::stray_closer::wrong(at, closer as char, opener, self.text);
            self.report(finding);
        } else {
            self.mark_misnested_from(self.at);
        }
        while let Some(open) = self.open.pop() {
            let is_prefix = self.is_open_prefix(open);
            let end = if is_prefix { self.at } else { self.at + 1 };
            self.end_unclosed(open, end);
            if !is_prefix {
                break;
            }
        }
        self.at += 1;
        self.complete_prefixes();
    }

    /// Reports a closer without an opener, and marks the forms it makes unreliable.
    pub(super) fn report_stray_closer(&mut self, closer: u8) {
        let span = Span::new(self.at, self.at + 1);
        let node = |id: u32| self.tree.nodes.get(id as usize).map(|node| node.span);
        let last = self.last_form.and_then(|(first, after)| Some((node(first)?, after)));
        let before = last.map(|(form, _)| Span { start: form.end - 1, end: form.end });
        let is_reported = self.is_reporting();
        if let Some(word) = self.missing_opener(last.map_or(0, |(_, after)| after)) {
            self.report(rules::stray_closer::missing_opener(self.at(span), closer as char, word));
            if is_reported {
                self.mark_misnested(word.start as usize, span.end as usize);
            }
            return;
        }
        self.report(rules::stray_closer::finding(self.at(span), closer as char, before));
        // Loose forms before the closer: the form in front of them was closed too early.
        if let Some((form, after)) = last
            && (after as usize) < self.tree.nodes.len()
        {
            if is_reported {
                self.tree.errors.push(form.to(span), SyntaxError::Misnested);
            } else {
                self.mark_misnested_from(form.start as usize);
            }
        } else if let Some((form, _)) = last {
            self.tree.errors.overclosed.push(form);
        }
    }

    /// Returns the word in the first column after the last form, if the parenthesis before it is missing.
    fn missing_opener(&self, after: u32) -> Option<Span> {
        let node = self.tree.nodes.get(after as usize)?;
        (node.kind == Kind::Symbol && self.is_first_column(node.span)).then_some(node.span)
    }
}
