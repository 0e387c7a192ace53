//! The ends of forms: closing parentheses and brackets, those without an opener or of the wrong kind, and forms that
//! are never closed.

use super::reader::{Open, Reader};
use crate::syntax::rules;
use crate::syntax::tree::{Kind, SyntaxError};
use crate::text::Span;

impl Reader<'_> {
    pub(super) fn close(&mut self, closer: u8) {
        let opener_is_open = if closer == b')' { self.open_lists > 0 } else { self.open_vectors > 0 };
        let innermost = self.innermost().and_then(|index| self.open.get(index)).map(|open| open.id);
        let opener = innermost.and_then(|id| self.tree.nodes.get(id as usize)).map(|node| node.span);
        let is_other = |opener: &Span| opener.of(self.text).ends_with('(') != (closer == b')');
        if let Some(opener) = opener.filter(is_other) {
            self.has_wrong_closer = true;
            if self.recovery.closes_any {
                self.close_mismatched(closer, opener);
                return;
            }
        }
        if !opener_is_open {
            self.report_stray_closer(closer);
            self.at += 1;
            return;
        }
        let mut reported = false;
        while let Some(Open { id, .. }) = self.open.pop() {
            let Some(node) = self.tree.nodes.get(id as usize).copied() else { continue };
            if node.kind.is_prefix() {
                if !reported {
                    self.report_prefix_without_form(node);
                    reported = true;
                }
                self.end_node(id, self.at);
                continue;
            }
            let bracket = self.bytes.get(node.span.end as usize - 1).copied();
            let is_list = bracket == Some(b'(');
            if is_list {
                self.open_lists -= 1;
            } else {
                self.open_vectors -= 1;
            }
            if is_list == (closer == b')') {
                self.at += 1;
                self.end_node(id, self.at);
                if self.open.is_empty() && self.is_first_column(node.span) {
                    self.last_form = Some((id, self.tree.nodes.len() as u32));
                }
                self.complete_prefixes();
                return;
            }
            // One wrong closer is one mistake, however many forms it closes.
            if !reported {
                let label = format!("opened here and still open at `{}`", closer as char);
                self.report_unclosed(node.span, label);
                reported = true;
            }
            self.end_node(id, self.at);
        }
    }

    /// Ends the node of an unclosed form.
    pub(super) fn end_unclosed(&mut self, open: Open, end_byte: usize) {
        match self.tree.nodes.get(open.id as usize).map(|node| (node.kind, node.span)) {
            Some((Kind::List, _)) => self.open_lists -= 1,
            Some((Kind::Vector, _)) => self.open_vectors -= 1,
            Some((Kind::Opaque, opener)) if opener.of(self.text).ends_with('(') => self.open_lists -= 1,
            Some((Kind::Opaque, _)) => self.open_vectors -= 1,
            Some(_) | None => {}
        }
        self.end_node(open.id, end_byte);
    }

    pub(super) fn close_at_end(&mut self) {
        let end = self.bytes.len();
        self.close_all_unclosed(end, "the end of the file", false);
    }

    /// Ends all open forms at byte `end`. Only the outermost opener is reported.
    pub(super) fn close_all_unclosed(&mut self, end: usize, until: &str, quiet: bool) {
        let open = std::mem::take(&mut self.open);
        let outermost = open.iter().copied().find(|&open| !self.is_open_prefix(open));
        let node_of = |open: Open| self.tree.nodes.get(open.id as usize).copied();
        let first = open.first().copied().and_then(node_of);
        if let Some(node) = outermost.and_then(node_of) {
            self.unclosed.forms.extend(first.map(|node| node.span.start as usize));
            if !quiet {
                self.report_unclosed(node.span, format!("opened here and still open at {until}"));
            }
        } else if let Some(node) = open.last().copied().and_then(node_of) {
            self.report_prefix_without_form(node);
        }
        let trimmed = self.end_of_last_form(end);
        for open in open.into_iter().rev() {
            self.end_unclosed(open, trimmed);
        }
    }

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
