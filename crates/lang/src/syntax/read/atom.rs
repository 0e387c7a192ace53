//! Reading atoms: symbols, numbers, dots, strings and characters.
//!
//! Source: chapter "Printed Representation and Read Syntax" of the Emacs Lisp reference manual (Emacs 30).

use super::reader::Reader;
use crate::syntax::tree::Kind;
use crate::syntax::{escape, number, rules};
use crate::text::Span;

impl Reader<'_> {
    pub(super) fn read_atom(&mut self) {
        let start = self.at;
        let is_dot = self.bytes.get(start) == Some(&b'.') && self.is_dot_before(start + 1);
        let end = if is_dot { start + 1 } else { self.atom_end(start) };
        let token = self.bytes.get(start..end).unwrap_or_default();
        let kind = match token.first() {
            Some(b':') => Kind::Keyword,
            Some(b'.') if is_dot => {
                self.dots.push((self.tree.nodes.len() as u32, self.open.last().map(|open| open.id)));
                Kind::Dot
            }
            Some(b'0'..=b'9' | b'+' | b'-' | b'.') => number::classify(token).unwrap_or(Kind::Symbol),
            _ => Kind::Symbol,
        };
        self.check_last_backslash(start, end);
        self.leaf(kind, start, end);
    }

    /// Reports a backslash at the end of the file, which escapes nothing.
    pub(super) fn check_last_backslash(&mut self, start: usize, end: usize) {
        let token = self.bytes.get(start..end).unwrap_or_default();
        let backslashes = token.iter().rev().take_while(|byte| **byte == b'\\').count();
        if end == self.bytes.len() && backslashes % 2 == 1 {
            let problem = String::from("missing character after the backslash");
            self.report(rules::bad_escape::finding(self.at(Span::new(end - 1, end)), problem));
        }
    }

    /// Whether the byte at `at` separates the dot before it from the next token.
    fn is_dot_before(&self, at: usize) -> bool {
        self.bytes.get(at).is_none_or(|byte| *byte <= b' ' || b"\"';([#?`,".contains(byte))
    }

    /// Returns the end of the atom that starts at `start`; the atom has at least one character.
    pub(super) fn atom_end(&self, start: usize) -> usize {
        let mut end = start;
        while let Some(&byte) = self.bytes.get(end) {
            match byte {
                b'\\' => end += 1 + self.char_len(end + 1),
                0xC2 if self.bytes.get(end + 1) == Some(&0xA0) => break,
                0xC2.. if self.is_odd_blank(end) => break,
                b'?' | 0xC2 => end += 1,
                _ if CLASS[byte as usize] == Class::Atom => end += 1,
                _ => break,
            }
        }
        end.max(start + self.char_len(start)).min(self.bytes.len())
    }

    pub(super) fn read_string(&mut self) {
        let start = self.at;
        let mut at = start + 1;
        let mut escaped = false;
        let cut = self.string_limit(start);
        let limit = cut.unwrap_or(self.bytes.len());
        let end = loop {
            let rest = self.bytes.get(at..limit).unwrap_or_default();
            match memchr::memchr2(b'"', b'\\', rest).map(|found| (at + found, rest.get(found))) {
                Some((quote, Some(b'"'))) => break quote,
                Some((backslash, _)) => {
                    escaped = true;
                    at = self.escape_end(backslash + 1);
                }
                None => {
                    self.unclosed.string = true;
                    self.end_unclosed_string(start, limit);
                    return;
                }
            }
        };
        self.unclosed.string |= self.runs_into_form(start, end);
        if escaped {
            self.check_escapes(start + 1, end);
        }
        let inside = self.bytes.get(start..end).unwrap_or_default();
        if let Some(newline) = memchr::memrchr(b'\n', inside) {
            self.line_start = start + newline + 1;
        }
        self.leaf(Kind::String, start, end + 1);
    }

    /// Returns the end of the escape that follows the backslash before `at`. Escapes such as `\C-"` may contain a
    /// quote.
    fn escape_end(&self, mut at: usize) -> usize {
        loop {
            at += match self.bytes.get(at..).unwrap_or_default() {
                [b'^', ..] => 1,
                [b'C' | b'M' | b'S' | b'H' | b'A', b'-', ..] => 2,
                _ => return at + self.char_len(at),
            };
            if self.bytes.get(at) != Some(&b'\\') {
                return at + self.char_len(at);
            }
            at += 1;
        }
    }

    /// Reports escapes that Emacs cannot read. Escapes without a JSON form are reported when the string is folded.
    fn check_escapes(&mut self, start: usize, end: usize) {
        let mut problems = Vec::new();
        escape::decode_string(self.text.get(start..end).unwrap_or(""), &mut problems);
        for problem in problems.into_iter().filter(|problem| problem.rule == &rules::bad_escape::BAD_ESCAPE) {
            let at = start + problem.at;
            let at = self.at(Span::new(at, at + problem.len));
            self.report(rules::bad_escape::finding(at, problem.message));
        }
    }

    pub(super) fn read_character(&mut self) {
        let start = self.at;
        let (code, len) = escape::decode_character(self.text.get(start + 1..).unwrap_or(""));
        let mut end = start + 1 + len;
        match code {
            Err(problem) => {
                self.report(rules::bad_character::finding(self.at(Span::new(start, end)), problem));
            }
            // `? ` is a space, whatever follows it.
            Ok(0x20 | 0x09) if len == 1 => {}
            Ok(_) if self.ends_character(end) => {}
            Ok(_) => {
                end = self.atom_end(end);
                let problem = String::from("`?` must be followed by a single character");
                self.report(rules::bad_character::finding(self.at(Span::new(start, end)), problem));
            }
        }
        self.leaf(Kind::Character, start, end.max(start + 1));
    }

    /// Whether a character literal can end at `at`.
    fn ends_character(&self, at: usize) -> bool {
        self.bytes.get(at).is_none_or(|byte| *byte <= b' ' || b"\"';()[]#?`,.".contains(byte))
    }

    pub(super) fn delimiter_at(&self, at: usize) -> bool {
        match self.bytes.get(at) {
            None => true,
            Some(0xC2) => self.bytes.get(at + 1) == Some(&0xA0),
            Some(&byte) => CLASS[byte as usize] != Class::Atom,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Separates tokens.
    Space,
    /// Starts or continues a symbol or number.
    Atom,
    /// Handled by the reader itself. Ends an atom, except for `?` and the first byte of a no-break space.
    Special,
}

pub(super) static CLASS: [Class; 256] = {
    let mut table = [Class::Atom; 256];
    let mut byte = 0;
    while byte <= 0x20 {
        table[byte] = Class::Space;
        byte += 1;
    }
    let specials = b"()[]\"'`,;?#\xC2";
    let mut at = 0;
    while at < specials.len() {
        table[specials[at] as usize] = Class::Special;
        at += 1;
    }
    table
};
