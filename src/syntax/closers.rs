//! Closing parentheses and brackets that are one too many or of the wrong sort.

use super::reader::Reader;
use super::rules;
use super::tree::{Fault, Kind};
use crate::text::Span;

impl Reader<'_> {
    /// Takes a closer for the one that was meant: `opener` is what it closes.
    pub(super) fn close_with_other(&mut self, closer: u8, opener: Span) {
        let at = self.at(Span::new(self.at, self.at + 1));
        if self.tells_more() {
            let finding = rules::stray_closer::wrong(at, closer as char, opener, self.text);
            self.find(finding);
        } else {
            self.doubt_from(self.at);
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

    /// Tells of a closer that closes nothing, and of what it casts doubt on.
    pub(super) fn tell_stray_closer(&mut self, closer: u8) {
        let span = Span::new(self.at, self.at + 1);
        let node = |id: u32| self.tree.nodes.get(id as usize).map(|node| node.span);
        let last = self.last_form.and_then(|(first, after)| Some((node(first)?, after)));
        let before = last.map(|(form, _)| Span { start: form.end - 1, end: form.end });
        let is_told = self.tells_more();
        if let Some(word) = self.headless(last.map_or(0, |(_, after)| after)) {
            self.find(rules::stray_closer::headless(self.at(span), closer as char, word));
            if is_told {
                self.doubt(word.start as usize, span.end as usize);
            }
            return;
        }
        self.find(rules::stray_closer::finding(self.at(span), closer as char, before));
        // Loose forms between the two: the form before them was closed too early.
        if let Some((form, after)) = last
            && (after as usize) < self.tree.nodes.len()
        {
            if is_told {
                self.tree.faults.push(form.to(span), Fault::Misnested);
            } else {
                self.doubt_from(form.start as usize);
            }
        } else if let Some((form, _)) = last {
            self.tree.faults.overclosed.push(form);
        }
    }

    /// A word of the first column after the last form, which lacks its parenthesis.
    fn headless(&self, after: u32) -> Option<Span> {
        let node = self.tree.nodes.get(after as usize)?;
        (node.kind == Kind::Symbol && self.is_first_column(node.span)).then_some(node.span)
    }
}
