//! Emacs Lisp text to tree.
//!
//! The reader never fails: every text has a tree, and findings for the parts that could not be read. It is iterative
//! and linear: a million open parentheses cost a million stack entries on the heap. It decodes only what it needs to
//! find the ends of tokens; atoms keep their text.
//!
//! A text with unclosed forms is read again with the heuristics of [`super::recover`].
//!
//! Source: chapter "Printed Representation and Read Syntax" of the Emacs Lisp reference manual (Emacs 30).

use std::collections::HashSet;

use super::atom::{CLASS, Class};
use super::recover::Recovery;
use super::tree::{Kind, Node, NodeId, SyntaxError, Tree};
use crate::diagnostic::{Diagnostic, Edit};
use crate::syntax::rules;
use crate::text::{Location, SourceId, Span};

/// Maximum number of reader findings for one file. A file with more is probably not Emacs Lisp.
const MAX_FINDINGS: usize = 1_000;

/// Parses `text`, the complete text of `source`.
pub fn parse(source: SourceId, text: &str) -> (Tree, Vec<Diagnostic>) {
    let mut reader = super::recover::read_whole(source, text, false);
    if reader.has_wrong_closer {
        // `]` instead of `)`, or one of them missing: use the reading with fewer findings.
        let swapped = super::recover::read_whole(source, text, true);
        if swapped.findings.len() < reader.findings.len() {
            reader = swapped;
        }
    }
    (reader.tree, reader.findings)
}

pub(super) struct Reader<'t> {
    pub(super) source: SourceId,
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    pub(super) at: usize,
    pub(super) tree: Tree,
    /// Open lists, vectors, opaque forms and prefixes that wait for their form.
    pub(super) open: Vec<Open>,
    pub(super) open_lists: usize,
    pub(super) open_vectors: usize,
    /// The labels defined by `#1=`.
    pub(super) labels: HashSet<&'t str>,
    /// Dots with their parent list.
    pub(super) dots: Vec<(u32, Option<u32>)>,
    pub(super) findings: Vec<Diagnostic>,
    /// Everything from this byte on is unreliable: findings beyond the limit were dropped.
    unreliable_from: usize,
    /// First byte of the current line.
    pub(super) line_start: usize,
    /// Whether the current line has only whitespace so far.
    pub(super) first_on_line: bool,
    /// The last complete list that starts in the first column: its first node and the first node after it.
    pub(super) last_form: Option<(u32, u32)>,
    /// Whether there was a closer of the wrong kind.
    has_wrong_closer: bool,
    /// Whether an Org mode line opened a block.
    pub(super) in_block: bool,
    /// Start and end of the second side of a merge conflict.
    pub(super) second_side: Option<(usize, usize)>,
    /// The next middle marker and the next end marker of a merge conflict, as far as searched.
    pub(super) merge_middle: usize,
    pub(super) merge_last: Span,
    pub(super) recovery: Recovery,
    pub(super) unclosed: Unclosed,
}

/// An open form.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) id: u32,
    /// Bytes before the form on its line.
    pub(super) column: usize,
    /// Index in the open forms of the innermost enclosing form that is not a prefix.
    pub(super) outer: Option<u32>,
}

/// The forms left unclosed by one reading.
#[derive(Default)]
pub(super) struct Unclosed {
    /// Whether a string runs to the end of the file.
    pub(super) string: bool,
    /// Start of the outermost open form, for each unclosed form.
    pub(super) forms: Vec<usize>,
}

impl Unclosed {
    pub(super) fn any(&self) -> bool {
        self.string || !self.forms.is_empty()
    }
}

impl<'t> Reader<'t> {
    pub(super) fn read(source: SourceId, text: &'t str, recovery: Recovery) -> Self {
        let mut tree = Tree::default();
        tree.nodes.reserve(text.len() / 12);
        let mut reader = Self {
            source,
            text,
            bytes: text.as_bytes(),
            at: 0,
            tree,
            open: Vec::new(),
            open_lists: 0,
            open_vectors: 0,
            labels: HashSet::new(),
            dots: Vec::new(),
            findings: Vec::new(),
            unreliable_from: usize::MAX,
            line_start: 0,
            first_on_line: true,
            last_form: None,
            has_wrong_closer: false,
            in_block: false,
            second_side: None,
            merge_middle: 0,
            merge_last: Span::default(),
            recovery,
            unclosed: Unclosed::default(),
        };
        reader.read_all();
        reader
    }

    fn read_all(&mut self) {
        if self.text.starts_with('\u{FEFF}') {
            self.at = 3;
            self.line_start = 3;
        }
        while let Some(&byte) = self.bytes.get(self.at) {
            if CLASS[byte as usize] == Class::Space {
                self.at += 1;
                if byte == b'\n' {
                    self.line_start = self.at;
                    self.first_on_line = true;
                }
                continue;
            }
            if self.skip_no_break_space() {
                continue;
            }
            if self.first_on_line && matches!(byte, b'<' | b'=' | b'|' | b'>') && self.skip_marker(byte) {
                continue;
            }
            if self.recovery.is_active() && self.first_on_line {
                self.recover_before(byte);
            }
            self.first_on_line = false;
            if byte >= 0x80 && self.skip_pasted() {
                continue;
            }
            match CLASS[byte as usize] {
                Class::Space | Class::Special => self.read_special(byte),
                Class::Atom => self.read_atom(),
            }
        }
        self.close_at_end();
        self.check_dots();
        self.tree.errors.sort();
    }

    /// Skips a no-break space (C2 A0), a separator. Other characters that start with C2 belong to an atom.
    fn skip_no_break_space(&mut self) -> bool {
        let is_there = self.bytes.get(self.at..self.at + 2) == Some(b"\xC2\xA0");
        self.at += if is_there { 2 } else { 0 };
        is_there
    }

    fn read_special(&mut self, byte: u8) {
        match byte {
            b'(' => {
                self.open_lists += 1;
                self.open(Kind::List, 1);
            }
            b'[' => {
                self.open_vectors += 1;
                self.open(Kind::Vector, 1);
            }
            b')' => self.close(b')'),
            b']' => self.close(b']'),
            b'"' => self.read_string(),
            b'\'' if self.skip_single_quoted() => {}
            b'\'' => self.open(Kind::Quote, 1),
            b'`' => self.open(Kind::Backquote, 1),
            b',' if self.bytes.get(self.at + 1) == Some(&b'@') => self.open(Kind::Splice, 2),
            b',' => self.open(Kind::Unquote, 1),
            b';' => self.skip_comment(),
            b'?' => self.read_character(),
            b'#' => self.read_hash(),
            _ => self.read_atom(),
        }
    }

    pub(super) fn skip_comment(&mut self) {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let end = start + len - usize::from(len > 0 && rest.get(len - 1) == Some(&b'\r'));
        self.tree.comments.push(Span::new(start, end));
        self.at = start + len;
    }

    // --- nodes -----------------------------------------------------------------------------------------------

    fn push(&mut self, kind: Kind, start: usize, end: usize) -> u32 {
        let id = self.tree.nodes.len() as u32;
        self.tree.nodes.push(Node { kind, span: Span::new(start, end), end: id + 1 });
        id
    }

    pub(super) fn open(&mut self, kind: Kind, len: usize) {
        let outer = self.innermost().map(|index| index as u32);
        let id = self.push(kind, self.at, self.at + len);
        self.open.push(Open { id, column: self.at - self.line_start, outer });
        self.at += len;
    }

    /// Returns the index of the innermost open form that is not a prefix.
    pub(super) fn innermost(&self) -> Option<usize> {
        let top = self.open.last()?;
        if self.is_open_prefix(*top) {
            top.outer.map(|index| index as usize)
        } else {
            Some(self.open.len() - 1)
        }
    }

    pub(super) fn leaf(&mut self, kind: Kind, start: usize, end: usize) {
        self.push(kind, start, end);
        self.at = end;
        self.complete_prefixes();
    }

    pub(super) fn push_string(&mut self, start: usize, end: usize) {
        self.leaf(Kind::String, start, end);
    }

    /// Completes the prefixes that waited for the form that just ended.
    pub(super) fn complete_prefixes(&mut self) {
        while let Some(top) = self.open.last().copied() {
            if !self.is_open_prefix(top) {
                return;
            }
            self.end_node(top.id, self.at);
            self.open.pop();
        }
    }

    pub(super) fn is_open_prefix(&self, open: Open) -> bool {
        self.tree.nodes.get(open.id as usize).is_some_and(|node| node.kind.is_prefix())
    }

    pub(super) fn end_node(&mut self, id: u32, end_byte: usize) {
        let end = self.tree.nodes.len() as u32;
        if let Some(node) = self.tree.nodes.get_mut(id as usize) {
            node.span.end = end_byte as u32;
            node.end = end;
        }
    }

    fn close(&mut self, closer: u8) {
        let opener_is_open = if closer == b')' { self.open_lists > 0 } else { self.open_vectors > 0 };
        let innermost = self.innermost().and_then(|index| self.open.get(index)).map(|open| open.id);
        let opener = innermost.and_then(|id| self.tree.nodes.get(id as usize)).map(|node| node.span);
        let is_other = |opener: &Span| opener.of(self.text).ends_with('(') != (closer == b')');
        if let Some(opener) = opener.filter(is_other) {
            self.has_wrong_closer = true;
            if self.recovery.closes_any() {
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

    fn close_at_end(&mut self) {
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

    /// Returns the end of the last form before `end`. Trailing whitespace belongs to no form, except inside an unclosed
    /// string.
    pub(super) fn end_of_last_form(&self, end: usize) -> usize {
        let trimmed = self.text.get(..end).map_or(end, |before| before.trim_end().len());
        trimmed.max(self.tree.nodes.last().map_or(0, |last| last.span.end as usize)).min(end)
    }

    /// Checks that each dot is before the last element of its list. Runs after all lists are complete.
    fn check_dots(&mut self) {
        for (dot, parent) in std::mem::take(&mut self.dots) {
            let node = |id: u32| self.tree.nodes.get(id as usize).copied();
            let (Some(Node { span, .. }), parent) = (node(dot), parent.and_then(|id| Some((id, node(id)?))))
            else {
                continue;
            };
            let is_placed = parent.is_some_and(|(id, parent)| {
                let last = node(dot + 1).filter(|last| last.end == parent.end && last.kind != Kind::Dot);
                matches!(parent.kind, Kind::List | Kind::Opaque)
                    && dot > id + 1
                    && dot + 1 < parent.end
                    && last.is_some()
            });
            // Unclosed forms have been reported.
            let is_closed = parent.is_none_or(|(_, parent)| {
                let last = (parent.span.end as usize).checked_sub(1).and_then(|at| self.bytes.get(at));
                parent.kind.is_prefix() || matches!(last, Some(b')' | b']'))
            });
            if !is_placed && is_closed {
                self.report(rules::bad_dot::finding(self.at(span)));
            }
        }
    }

    // --- findings ----------------------------------------------------------------------------------------------

    pub(super) fn report_unclosed(&mut self, opener: Span, label: String) {
        self.report(rules::unclosed::finding(self.at(opener), opener.of(self.text), label));
    }

    fn report_prefix_without_form(&mut self, node: Node) {
        // A trailing comma, as in other languages; below a backquote a form is missing.
        let is_template = |open: &Open| {
            self.tree.nodes.get(open.id as usize).is_some_and(|node| node.kind == Kind::Backquote)
        };
        if node.kind == Kind::Unquote && self.open.len() < 1_000 && !self.open.iter().any(is_template) {
            let edit = Edit { span: node.span, replacement: String::new() };
            self.report(rules::comma_between::finding(self.at(node.span), vec![edit]));
            return;
        }
        self.report(rules::prefix_without_form::finding(self.at(node.span), node.span.of(self.text)));
    }

    pub(super) fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    pub(super) fn report(&mut self, finding: Diagnostic) {
        let span = finding.primary.span;
        let is_misnested = *finding.rule == rules::UNCLOSED || *finding.rule == rules::STRAY_CLOSER;
        let error = if is_misnested { SyntaxError::Misnested } else { SyntaxError::InvalidAtom };
        if self.findings.len() < MAX_FINDINGS {
            self.tree.errors.push(span, error);
            self.findings.push(finding);
        } else {
            self.mark_misnested_from(span.start as usize);
        }
    }

    /// Whether findings are still below the limit.
    pub(super) fn is_reporting(&self) -> bool {
        self.findings.len() < MAX_FINDINGS
    }

    /// Marks `start..end` as unreliable, for cases that may have no finding.
    pub(super) fn mark_misnested(&mut self, start: usize, end: usize) {
        if self.findings.len() < MAX_FINDINGS {
            self.tree.errors.push(Span::new(start, end), SyntaxError::Misnested);
        } else {
            self.mark_misnested_from(start);
        }
    }

    pub(super) fn mark_misnested_from(&mut self, start: usize) {
        if start < self.unreliable_from {
            self.unreliable_from = start;
            self.tree.errors.push(Span::new(start, self.bytes.len()), SyntaxError::Misnested);
        }
    }
}

impl Tree {
    /// Returns the source text of a node.
    pub fn text<'t>(&self, id: NodeId, source: &'t str) -> &'t str {
        self.span(id).of(source)
    }
}
