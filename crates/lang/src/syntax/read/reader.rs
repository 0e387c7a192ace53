//! The state of one reading: open forms, nodes and findings.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Edit};
use crate::syntax::rules::{self, odd_blank};
use crate::syntax::tree::{Kind, Node, SyntaxError, Tree};
use crate::text::{Location, SourceId, Span};

/// Maximum number of reader findings for one file. A file with more is probably not Emacs Lisp.
const MAX_FINDINGS: usize = 1_000;

/// Reads one text.
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
    pub(super) has_wrong_closer: bool,
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

/// Heuristics for the end of unclosed forms.
#[derive(Default)]
pub(super) struct Recovery {
    /// A parenthesis in the first column ends all open forms.
    pub(super) columns: bool,
    /// Such a parenthesis also ends a string.
    pub(super) strings: bool,
    /// The next line end that is followed by a parenthesis in the first column.
    pub(super) next_form: usize,
    /// A closer closes the innermost open form, whatever its kind.
    pub(super) closes_any: bool,
    /// Sorted start offsets of the forms in which indentation counts.
    pub(super) forms: Vec<usize>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(source: SourceId, text: &'t str, recovery: Recovery) -> Self {
        let mut tree = Tree::default();
        tree.nodes.reserve(text.len() / 12);
        Self {
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

    /// Returns the length of the character at `at` in bytes; 0 at the end.
    pub(super) fn char_len(&self, at: usize) -> usize {
        self.text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
    }

    /// Whether the character at `at` looks like a space but is a letter to Emacs.
    pub(super) fn is_odd_blank(&self, at: usize) -> bool {
        self.char_at(at).is_some_and(odd_blank::is_odd)
    }

    pub(super) fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..).and_then(|rest| rest.chars().next())
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

    /// Returns the end of the last form before `end`. Trailing whitespace belongs to no form, except inside an unclosed
    /// string.
    pub(super) fn end_of_last_form(&self, end: usize) -> usize {
        let trimmed = self.text.get(..end).map_or(end, |before| before.trim_end().len());
        trimmed.max(self.tree.nodes.last().map_or(0, |last| last.span.end as usize)).min(end)
    }

    // --- findings ----------------------------------------------------------------------------------------------

    pub(super) fn report_unclosed(&mut self, opener: Span, label: String) {
        self.report(rules::unclosed::finding(self.at(opener), opener.of(self.text), label));
    }

    pub(super) fn report_prefix_without_form(&mut self, node: Node) {
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
        let is_misnested =
            *finding.rule == rules::unclosed::UNCLOSED || *finding.rule == rules::stray_closer::STRAY_CLOSER;
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
