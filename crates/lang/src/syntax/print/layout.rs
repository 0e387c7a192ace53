//! Prints forms in canonical layout.

use super::super::NodeId;
use super::super::tree::Kind;
use super::block::moved;
use super::gap::{After, Lead};
use super::printer::{BESIDE, Printer, WIDTH};
use super::shape::{Class, Entry, Role, entries, heads, prefix};

impl Printer<'_> {
    pub(super) fn print_file(&mut self) {
        let start = if self.text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
        self.out.push_str(self.text.get(..start).unwrap_or_default());
        let mut at = start;
        let mut after = After::Start;
        for root in self.tree.roots() {
            let span = self.tree.span(root);
            let lead = self.top_level_gap(at, span.start as usize, after);
            if after == After::Item || lead.printed {
                self.start_line(lead.blank, 0);
            }
            self.node(root, 0);
            self.skip_comments(span.end as usize);
            at = span.end as usize;
            after = After::Item;
        }
        let lead = self.top_level_gap(at, self.text.len(), after);
        if after == After::Item || lead.printed {
            self.newline();
        }
    }

    fn top_level_gap(&mut self, from: usize, to: usize, after: After) -> Lead {
        self.is_top_level = true;
        let lead = self.gap(from, to, after, 0);
        self.is_top_level = false;
        lead
    }

    pub(super) fn print_forms(&mut self, forms: &[(NodeId, Role)]) {
        let mut at = 0;
        for (form, _) in forms {
            let span = self.tree.span(*form);
            self.push(self.text.get(at..span.start as usize).unwrap_or_default());
            self.skip_comments(span.start as usize);
            self.node(*form, 0);
            at = span.end as usize;
        }
        self.push(self.text.get(at..).unwrap_or_default());
    }

    /// Prints `id` at the current position; `closers` is the number of parentheses that follow on its line.
    fn node(&mut self, id: NodeId, closers: usize) {
        let class = self.shapes.class(id);
        if self.shapes.flat(id).is_some_and(|flat| self.fits(flat + closers)) {
            return self.flat(id);
        }
        match class {
            Class::Atom => self.push(self.tree.text(id, self.text)),
            Class::Code => self.block(id),
            // Lines this long are not readable, and each would need its full indentation.
            _ if self.column >= WIDTH => self.block(id),
            Class::Prefix => {
                self.push(prefix(self.tree.kind(id)));
                if let Some(inner) = self.tree.children(id).next() {
                    self.node(inner, closers);
                }
            }
            Class::Plist | Class::Data | Class::Call | Class::Entry | Class::Form | Class::Collection => {
                self.list(id, class, closers);
            }
        }
    }

    fn fits(&self, width: usize) -> bool {
        self.column.saturating_add(width) <= WIDTH
    }

    /// Prints a node on one line.
    fn flat(&mut self, id: NodeId) {
        let kind = self.tree.kind(id);
        match self.shapes.class(id) {
            Class::Atom | Class::Code => self.push(self.tree.text(id, self.text)),
            Class::Prefix => {
                self.push(prefix(kind));
                self.tree.children(id).for_each(|inner| self.flat(inner));
            }
            Class::Plist | Class::Data | Class::Call | Class::Entry | Class::Form | Class::Collection => {
                self.push(opener(kind));
                for (index, item) in self.tree.children(id).enumerate() {
                    self.blanks(index.min(1));
                    self.flat(item);
                }
                self.push(closer(kind));
            }
        }
    }

    fn block(&mut self, id: NodeId) {
        let block = moved(self.tree, self.text, id, self.column);
        self.push(&block);
        self.skip_comments(self.tree.span(id).end as usize);
    }

    /// Prints a list over several lines.
    fn list(&mut self, id: NodeId, class: Class, closers: usize) {
        let kind = self.tree.kind(id);
        let span = self.tree.span(id);
        let start = self.column;
        self.push(opener(kind));
        let mut at = span.start as usize + 1;
        let mut after = After::Opener;
        let inside = start + if class == Class::Collection { 2 } else { 1 };
        for head in self.tree.children(id).take(heads(self.tree, id, class)) {
            self.item(at, head, after, inside);
            at = self.tree.span(head).end as usize;
            after = After::Item;
        }
        let entries = entries(self.tree, self.text, id, class);
        let indent = match entries.first() {
            Some(first) if class == Class::Call => self.argument_column(at, first.first, inside),
            _ => inside,
        };
        let fills = class == Class::Data
            && entries.iter().all(|entry| self.is_word(entry.first) && entry.value.is_none());
        for (index, entry) in entries.iter().enumerate() {
            let lead = self.gap(at, self.tree.span(entry.first).start as usize, after, indent);
            let closers = if index + 1 == entries.len() { closers + 1 } else { 0 };
            let is_first = index == 0;
            let stays = match (is_first, class) {
                (true, Class::Call) => indent != inside,
                (true, Class::Form | Class::Entry | Class::Collection) => false,
                (true, _) => true,
                (false, _) => fills && !lead.blank && self.fits_next(entry.first, closers),
            };
            if lead.printed || !stays {
                let blank = lead.blank && (lead.printed || !is_first);
                self.start_line(blank, indent);
            } else if after == After::Item {
                self.blanks(1);
            }
            self.entry(*entry, closers, indent);
            at = self.tree.span(entry.last()).end as usize;
            after = After::Item;
        }
        let end = (span.end as usize).saturating_sub(1);
        if self.gap(at, end, after, indent).printed {
            self.start_line(false, indent);
        }
        self.push(closer(kind));
    }

    /// Prints an item directly after the text before it, unless there is a comment in between.
    fn item(&mut self, at: usize, item: NodeId, after: After, indent: usize) {
        let lead = self.gap(at, self.tree.span(item).start as usize, after, indent);
        if lead.printed {
            self.start_line(false, indent);
        } else if after == After::Item {
            self.blanks(1);
        }
        self.node(item, 0);
    }

    /// Returns the column for the arguments of a call: that of the first argument, which goes next to the head if
    /// possible.
    fn argument_column(&self, at: usize, first: NodeId, inside: usize) -> usize {
        let next = self.tree.comments().get(self.comments_done);
        let has_comment = next.is_some_and(|c| c.start >= at as u32 && c.start < self.tree.span(first).start);
        if has_comment || self.column + 1 > BESIDE.max(inside + 8) { inside } else { self.column + 1 }
    }

    fn entry(&mut self, entry: Entry, closers: usize, indent: usize) {
        let Some(value) = entry.value else { return self.node(entry.first, closers) };
        self.node(entry.first, 0);
        let (from, to) = (self.tree.span(entry.first).end, self.tree.span(value).start);
        let lead = self.gap(from as usize, to as usize, After::Item, indent);
        // After a multi-line key, the column does not reflect the nesting depth.
        let is_key_whole = self.shapes.flat(entry.first).is_some() || self.is_word(value);
        if lead.printed || !is_key_whole || !self.may_stand_beside(value, closers) {
            self.start_line(false, indent);
        } else {
            self.blanks(1);
        }
        self.node(value, closers);
    }

    fn may_stand_beside(&self, value: NodeId, closers: usize) -> bool {
        let is_left = || self.column < BESIDE && !self.is_table(value);
        self.is_word(value) || self.fits_next(value, closers) || is_left()
    }

    /// Whether the node is a plist of plists: `(:key (:type …) …)`.
    fn is_table(&self, id: NodeId) -> bool {
        let first = entries(self.tree, self.text, id, Class::Plist).first().and_then(|entry| entry.value);
        self.shapes.class(id) == Class::Plist
            && first.is_some_and(|value| self.shapes.class(value) == Class::Plist)
    }

    fn fits_next(&self, id: NodeId, closers: usize) -> bool {
        self.shapes.flat(id).is_some_and(|flat| self.fits(1 + flat + closers))
    }

    /// Whether the node is an atom, quoted or not.
    fn is_word(&self, id: NodeId) -> bool {
        match self.shapes.class(id) {
            Class::Atom => true,
            Class::Prefix => {
                self.tree.children(id).next().is_some_and(|inner| self.tree.kind(inner).is_token())
            }
            Class::Plist
            | Class::Data
            | Class::Call
            | Class::Entry
            | Class::Form
            | Class::Collection
            | Class::Code => false,
        }
    }
}

fn opener(kind: Kind) -> &'static str {
    if kind == Kind::Vector { "[" } else { "(" }
}

fn closer(kind: Kind) -> &'static str {
    if kind == Kind::Vector { "]" } else { ")" }
}
