//! Emacs Lisp text to tree.
//!
//! The reader never fails: every text has a tree, and findings for the parts that could not be read. It is iterative
//! and linear: a million open parentheses cost a million stack entries on the heap. It decodes only what it needs to
//! find the ends of tokens; atoms keep their text.
//!
//! A text with unclosed forms is read again with heuristics for their ends. Each reading is linear. There are at most
//! three readings, or six if a bracket closes a parenthesis.
//!
//! Source: chapter "Printed Representation and Read Syntax" of the Emacs Lisp reference manual (Emacs 30).

mod atom;
mod closers;
mod hash;
mod merge;
mod paste;
mod reader;
mod recover;

use self::atom::{CLASS, Class};
use self::reader::{Reader, Recovery};
use super::rules;
use super::tree::{Kind, Node, Tree};
use crate::diagnostic::Diagnostic;
use crate::text::SourceId;

/// Parses `text`, the complete text of `source`.
pub fn parse(source: SourceId, text: &str) -> (Tree, Vec<Diagnostic>) {
    let mut reader = read_whole(source, text, false);
    if reader.has_wrong_closer {
        // `]` instead of `)`, or one of them missing: use the reading with fewer findings.
        let swapped = read_whole(source, text, true);
        if swapped.findings.len() < reader.findings.len() {
            reader = swapped;
        }
    }
    (reader.tree, reader.findings)
}

/// Reads `text`, with recovery if there are unclosed forms.
fn read_whole(source: SourceId, text: &str, closes_any: bool) -> Reader<'_> {
    let reader = read(source, text, Recovery { closes_any, ..Recovery::default() });
    if reader.unclosed.any() { read_again(reader) } else { reader }
}

/// Returns the best reading with recovery.
fn read_again(first: Reader<'_>) -> Reader<'_> {
    let strings = first.unclosed.string;
    let (source, text, closes_any) = (first.source, first.text, first.recovery.closes_any);
    drop(first);
    let by_columns =
        read(source, text, Recovery { columns: true, strings, closes_any, ..Recovery::default() });
    if by_columns.unclosed.forms.is_empty() {
        return by_columns;
    }
    let forms = by_columns.unclosed.forms.clone();
    let by_lines =
        read(source, text, Recovery { columns: true, strings, closes_any, forms, ..Recovery::default() });
    // If the indentation does not match the nesting, lists are closed too early and their own parentheses become stray.
    if count_other_findings(&by_lines) <= count_other_findings(&by_columns) { by_lines } else { by_columns }
}

fn count_other_findings(reader: &Reader<'_>) -> usize {
    reader.findings.iter().filter(|finding| *finding.rule != rules::unclosed::UNCLOSED).count()
}

/// Reads `text` once.
fn read(source: SourceId, text: &str, recovery: Recovery) -> Reader<'_> {
    let mut reader = Reader::new(source, text, recovery);
    reader.read_all();
    reader
}

impl Reader<'_> {
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
                } else if byte == b'\x0c' && self.first_on_line {
                    // The first column is after a page break, and after the indentation of a block in an Org file.
                    self.line_start = self.at;
                }
                continue;
            }
            if self.skip_no_break_space() {
                continue;
            }
            if self.first_on_line && matches!(byte, b'<' | b'=' | b'|' | b'>') && self.skip_marker(byte) {
                continue;
            }
            if self.recovery.columns && self.first_on_line {
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
}
