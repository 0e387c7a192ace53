//! Reader syntax that starts with `#`.
//!
//! Source: "Special Read Syntax" of the Emacs Lisp reference manual (Emacs 30), verified against the reader itself.

use super::reader::Reader;
use crate::syntax::tree::Kind;
use crate::syntax::{number, rules};
use crate::text::Span;

impl Reader<'_> {
    pub(super) fn read_hash(&mut self) {
        let start = self.at;
        let rest = self.bytes.get(start + 1..).unwrap_or_default();
        match rest {
            [b'\'', ..] => self.open(Kind::Function, 2),
            [b'(', ..] => self.open_opaque(1),
            [b's', b'(', ..] => self.open_opaque(2),
            [b'[', ..] => self.open_opaque(1),
            [b'^', b'[', ..] => self.open_opaque(2),
            [b'^', b'^', b'[', ..] => self.open_opaque(3),
            [b'!', ..] => self.skip_comment(),
            [b'@', ..] => self.skip_counted(),
            [b'#' | b'$', ..] => self.leaf(Kind::Opaque, start, start + 2),
            [b':' | b'_', ..] => {
                let end = if self.delimiter_at(start + 2) { start + 2 } else { self.atom_end(start + 2) };
                self.check_last_backslash(start, end);
                self.leaf(Kind::Opaque, start, end);
            }
            [b'&', ..] => {
                let digits = rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
                self.at = start + 2 + digits;
                if self.bytes.get(self.at) == Some(&b'"') {
                    self.read_string();
                    if let Some(node) = self.tree.nodes.last_mut() {
                        node.kind = Kind::Opaque;
                    }
                } else {
                    self.report_unknown_hash(start, self.at);
                }
            }
            [b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..] => self.read_radix(start),
            [b'0'..=b'9', ..] => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                match rest.get(digits) {
                    Some(b'r' | b'R') => self.read_radix(start),
                    Some(b'=') => {
                        // `#1=x` defines a label for x and evaluates to x.
                        self.at = start + 2 + digits;
                        self.labels.insert(self.text.get(start + 1..=start + digits).unwrap_or(""));
                    }
                    Some(b'#')
                        if !self.labels.contains(self.text.get(start + 1..=start + digits).unwrap_or("")) =>
                    {
                        self.report_unknown_hash(start, start + 2 + digits);
                    }
                    Some(b'#') => self.leaf(Kind::Opaque, start, start + 2 + digits),
                    _ => self.report_unknown_hash(start, start + 1 + digits),
                }
            }
            [b'|', ..] => self.skip_foreign(start, "#|"),
            [b' ' | b'\t' | b'+', ..] if self.starts_line(start) => self.skip_foreign(start, "#"),
            _ => self.report_unknown_hash(start, start + 1 + self.char_len(start + 1)),
        }
    }

    /// Reports and skips a comment of another language or a line of an Org file.
    fn skip_foreign(&mut self, start: usize, opener: &str) {
        let rest = self.text.get(start..).unwrap_or("");
        let end_of_line = start + rest.find('\n').unwrap_or(rest.len());
        // Search only while findings are reported, to bound the number of searches.
        let is_looked_for = opener == "#|" && self.is_reporting();
        let end = match is_looked_for.then(|| rest.find("|#")).flatten() {
            Some(end) => start + end + 2,
            None => end_of_line,
        };
        let is_end = rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("#+end"));
        // The start of the block has been reported.
        if !is_end || !self.in_block {
            let at = self.at(Span::new(start, start + opener.len()));
            self.report(rules::unknown_hash::foreign(at, Span::new(start, end).of(self.text)));
        }
        self.in_block = rest.starts_with("#+") && !is_end;
        self.at = end;
    }

    fn starts_line(&self, start: usize) -> bool {
        let before = self.text.get(self.line_start..start).unwrap_or("");
        before.bytes().all(|byte| byte.is_ascii_whitespace())
    }

    fn open_opaque(&mut self, before_bracket: usize) {
        if self.bytes.get(self.at + before_bracket) == Some(&b'(') {
            self.open_lists += 1;
        } else {
            self.open_vectors += 1;
        }
        self.open(Kind::Opaque, before_bracket + 1);
    }

    /// Skips `#@N` with N bytes, and `#@00` with the rest of the file.
    fn skip_counted(&mut self) {
        let start = self.at;
        let digits: &str = self.text.get(start + 2..).unwrap_or("");
        let digits = digits.get(..digits.bytes().take_while(u8::is_ascii_digit).count()).unwrap_or("");
        let after = start + 2 + digits.len();
        let mut end = match digits {
            "00" => self.bytes.len(),
            _ => after.saturating_add(digits.parse().unwrap_or(0)).min(self.bytes.len()),
        };
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        self.tree.comments.push(Span::new(start, end));
        self.at = end;
    }

    /// Reads a number in another base up to the last letter or digit. Digits outside the base are an error.
    fn read_radix(&mut self, start: usize) {
        // The index of the letter: the `r` of `#24r`, or the `x` of `#x`.
        let radix = start + 1 + self.count_while(start + 1, u8::is_ascii_digit);
        let sign = radix + 1;
        let digits = sign + usize::from(matches!(self.bytes.get(sign), Some(b'+' | b'-')));
        let end = digits + self.count_while(digits, u8::is_ascii_alphanumeric);
        if number::is_radix(Span::new(start, end).of(self.text)) {
            self.leaf(Kind::Integer, start, end);
        } else {
            self.report_unknown_hash(start, end);
        }
    }

    fn count_while(&self, from: usize, is_wanted: impl Fn(&u8) -> bool) -> usize {
        self.bytes.get(from..).unwrap_or_default().iter().take_while(|byte| is_wanted(byte)).count()
    }

    fn report_unknown_hash(&mut self, start: usize, end: usize) {
        let end = end.min(self.bytes.len());
        let span = Span::new(start, end);
        self.report(rules::unknown_hash::finding(self.at(span), span.of(self.text)));
        self.leaf(Kind::Opaque, start, end);
    }
}
