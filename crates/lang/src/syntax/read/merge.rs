//! Merge conflict markers: reported once; the first side of the conflict is read.

use super::reader::Reader;
use crate::syntax::rules;
use crate::text::Span;

impl Reader<'_> {
    /// Reports a `<<<<<<< HEAD` marker and skips everything but the first side. Returns whether there was a marker.
    pub(super) fn skip_marker(&mut self, byte: u8) -> bool {
        let start = self.at;
        if let Some((_, end)) = self.second_side.filter(|(from, _)| *from == start) {
            self.at = end;
            return true;
        }
        let rest = self.text.get(start..).unwrap_or("");
        let is_inside = self.second_side.is_some_and(|(from, _)| from > start);
        if byte != b'<' || is_inside || start != self.line_start || !rest.starts_with("<<<<<<< ") {
            return false;
        }
        let Some((middle, last)) = self.sides_after(start) else {
            // Do not search again.
            self.second_side = Some((usize::MAX, usize::MAX));
            return false;
        };
        let first_side = Span::new(start, middle).of(self.text);
        let base = first_side.find("\n||||||| ").map(|at| start + at + 1);
        self.second_side = Some((base.unwrap_or(middle), last.end as usize));
        let span = Span::new(start, start + 7);
        let last_mark = Span::new(last.start as usize, last.start as usize + 7);
        self.report(rules::merge_conflict::finding(self.at(span), last_mark));
        self.at = self.line_end(start);
        true
    }

    /// Returns the start of the second side of the merge conflict that starts at `start`, and the line of its last
    /// marker. Results are cached, so that many markers cost one search.
    fn sides_after(&mut self, start: usize) -> Option<(usize, Span)> {
        let next_line = |mark: &str| self.text.get(start..)?.find(mark).map(|at| start + at + 1);
        if self.merge_middle <= start {
            self.merge_middle = next_line("\n=======")?;
        }
        if (self.merge_last.start as usize) <= start {
            let last = next_line("\n>>>>>>> ")?;
            self.merge_last = Span::new(last, self.line_end(last));
        }
        let (middle, last) = (self.merge_middle, self.merge_last);
        (middle < last.start as usize).then_some((middle, last))
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + memchr::memchr(b'\n', rest).unwrap_or(rest.len())
    }
}
