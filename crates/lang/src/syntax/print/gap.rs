//! Text between two tokens: comments, blank lines and pages.

use super::block::{column_after, column_of};
use super::printer::{Printer, WIDTH};
use crate::text::Span;

/// The token before a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The start of the file.
    Start,
    /// An opening parenthesis or bracket.
    Opener,
    /// A token.
    Item,
}

/// The state after printing a gap, for the token that follows.
pub(super) struct Lead {
    /// Whether something was printed: the token then starts a line.
    pub(super) printed: bool,
    /// Whether there is a blank line before the token.
    pub(super) blank: bool,
}

impl Printer<'_> {
    /// Prints the comments in `from..to`. Comments on lines of their own are indented to `indent`.
    pub(super) fn gap(&mut self, from: usize, to: usize, after: After, indent: usize) -> Lead {
        let mut at = from;
        let mut place = after;
        // Old and new column of a trailing comment; a comment on the next line may continue it.
        let mut trailing: Option<(usize, usize)> = None;
        while let Some(comment) = self.next_comment(to) {
            let start = comment.start as usize;
            let (newlines, _) = self.pages(at, start, &mut place);
            let words = without_blanks_after(comment.of(self.text));
            if newlines == 0 && place != After::Start {
                self.pad_comment(at, start, usize::from(place == After::Item));
            } else if place != After::Start {
                let column = column_of(self.text, start);
                let goes_on = trailing.filter(|(old, _)| newlines == 1 && *old == column);
                let level = words.bytes().take_while(|byte| *byte == b';').count();
                let indent = match goes_on {
                    Some((_, new)) if level == 1 => new,
                    _ if level >= 3 && !self.is_top_level && column <= WIDTH => column,
                    _ => indent,
                };
                self.start_line(newlines > 1 && place == After::Item, indent);
            }
            if newlines == 0 {
                trailing = Some((column_of(self.text, start), self.column));
            } else if trailing.is_some_and(|(_, new)| new != self.column) {
                trailing = None;
            }
            self.push(words);
            at = comment.end as usize;
            place = After::Item;
        }
        let printed = at > from;
        let is_edge = place != After::Item;
        let (newlines, paged) = self.pages(at, to, &mut place);
        Lead { printed: printed || paged, blank: newlines > 1 && (!is_edge || paged) }
    }

    fn next_comment(&mut self, before: usize) -> Option<Span> {
        let comment = *self.tree.comments().get(self.comments_done)?;
        let is_next = (comment.start as usize) < before;
        self.comments_done += usize::from(is_next);
        is_next.then_some(comment)
    }

    /// Skips the comments before byte `at`, which are already printed or stay unchanged.
    pub(super) fn skip_comments(&mut self, at: usize) {
        while self.next_comment(at).is_some() {}
    }

    /// Keeps a short gap before a comment, and the column of a comment aligned by hand.
    fn pad_comment(&mut self, from: usize, start: usize, least: usize) {
        let gap = self.text.get(from..start).unwrap_or_default();
        let blanks = if gap.len() <= 2 && !gap.contains('\t') {
            gap.len()
        } else {
            let column = column_after(gap, column_of(self.text, from));
            if column <= WIDTH { column.saturating_sub(self.column) } else { 1 }
        };
        self.blanks(blanks.max(least));
    }

    /// Returns the number of line ends in `from..to`. Between top-level forms, prints each page break (form feed) on a
    /// line of its own and returns the number of line ends after the last one.
    fn pages(&mut self, from: usize, to: usize, place: &mut After) -> (usize, bool) {
        let gap = self.text.get(from..to).unwrap_or_default();
        let newlines = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.is_unsupported |= gap.contains(|c: char| !matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{C}'));
        if !self.is_top_level || !gap.contains('\u{C}') {
            return (newlines(gap), false);
        }
        let mut rest = gap;
        while let Some((before, after)) = rest.split_once('\u{C}') {
            if *place != After::Start {
                self.start_line(newlines(before) > 1, 0);
            }
            self.push("\u{C}");
            *place = After::Item;
            rest = after;
        }
        (newlines(rest).max(1), true)
    }
}

/// Returns a comment without its trailing whitespace.
pub(super) fn without_blanks_after(comment: &str) -> &str {
    comment.trim_end_matches([' ', '\t', '\r'])
}
