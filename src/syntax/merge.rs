//! The markers of an unsettled merge: told once, and the side that comes first is read.

use super::reader::Reader;
use super::rules;
use crate::text::Span;

impl Reader<'_> {
    /// `<<<<<<< HEAD`: told, and the side that comes first is read. Whether a marker was there.
    pub(super) fn skip_marker(&mut self, byte: u8) -> bool {
        let start = self.at;
        if let Some((_, end)) = self.other_side.filter(|(from, _)| *from == start) {
            self.at = end;
            return true;
        }
        let rest = self.text.get(start..).unwrap_or("");
        let is_inside = self.other_side.is_some_and(|(from, _)| from > start);
        if byte != b'<' || is_inside || start != self.line_start || !rest.starts_with("<<<<<<< ") {
            return false;
        }
        let line_of = |mark: &str| rest.find(mark).map(|at| start + at + 1);
        let sides = line_of("\n=======").zip(line_of("\n>>>>>>> "));
        let Some((middle, last)) = sides.filter(|(middle, last)| middle < last) else {
            // It is not looked for again.
            self.other_side = Some((usize::MAX, usize::MAX));
            return false;
        };
        let line_end = |from: usize| {
            let rest = self.bytes.get(from..).unwrap_or_default();
            from + memchr::memchr(b'\n', rest).unwrap_or(rest.len())
        };
        let (first_end, end) = (line_end(start), line_end(last));
        let first_side = Span::new(start, middle).of(self.text);
        let base = first_side.find("\n||||||| ").map(|at| start + at + 1);
        self.other_side = Some((base.unwrap_or(middle), end));
        let span = Span::new(start, start + 7);
        self.find(rules::merge_conflict::finding(self.at(span), Span::new(last, last + 7)));
        self.at = first_end;
        true
    }
}
