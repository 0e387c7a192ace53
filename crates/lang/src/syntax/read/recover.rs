//! Error recovery for unclosed forms: a missing parenthesis or quote affects one form and is reported where it is
//! missing.
//!
//! An opening parenthesis in the first column starts a new top-level form; Emacs navigates by the same convention. If a
//! quote is missing, it may also be text of a string: then only a parenthesis before a word that begins definitions
//! counts.
//! Inside the forms that are broken by this rule, indentation shows where a list should end: its elements do not start
//! a line at or before the column of the list. This guess is discarded if it makes a valid closer stray.

use super::reader::Reader;
use crate::diagnostic::Label;
use crate::syntax::tree::Kind;
use crate::text::{Location, Span};

/// Words that begin top-level forms, or their beginnings if they end with a dash.
const HEADS: [&str; 27] = [
    "cl-",
    "define-",
    "defalias",
    "defconst",
    "defcustom",
    "defexit",
    "defface",
    "defgroup",
    "defproject",
    "defmacro",
    "defmcp",
    "defsubst",
    "deftool",
    "defun",
    "defvar",
    "defvar-",
    "defworker",
    "ert-",
    "eval-",
    "gptel-",
    "llm-",
    "make-llm-tool",
    "provide",
    "require",
    "setq",
    "use-package",
    "with-",
];

impl Reader<'_> {
    /// Closes the forms that end before the first character of a line.
    pub(super) fn recover_before(&mut self, byte: u8) {
        let column = self.at - self.line_start;
        if byte == b'(' && column == 0 && (!self.recovery.strings || self.begins_form(self.at)) {
            if !self.open.is_empty() {
                self.close_all_unclosed(self.at, "the next form in the first column", false);
            }
            return;
        }
        // A closing parenthesis on its own line and a comment can have any indentation.
        if matches!(byte, b')' | b']' | b';') || !self.is_in_broken_form() {
            return;
        }
        // Columns of open forms grow from the outermost to the innermost, so the loop stops at the first form that
        // stays open.
        let mut outermost = None;
        let mut next = self.innermost();
        while let Some(index) = next.filter(|index| *index > 0)
            && let Some(open) = self.open.get(index).filter(|open| open.column >= column)
        {
            outermost = Some(index);
            next = open.outer.map(|index| index as usize);
        }
        if let Some(outermost) = outermost {
            self.close_by_indentation(outermost);
        }
    }

    fn is_in_broken_form(&self) -> bool {
        let start = self.open.first().and_then(|open| self.tree.nodes.get(open.id as usize));
        start.is_some_and(|node| self.recovery.forms.binary_search(&(node.span.start as usize)).is_ok())
    }

    /// Closes the open forms from `index` on, and the prefixes that wait for them.
    fn close_by_indentation(&mut self, index: usize) {
        let opener = self.open.get(index).and_then(|open| self.tree.nodes.get(open.id as usize));
        let Some(opener) = opener.map(|node| node.span) else { return };
        let outsider = Span::new(self.at, self.at + self.char_len(self.at));
        self.report_unclosed(opener, String::from("opened here"));
        if let Some(finding) = self.findings.last_mut().filter(|finding| finding.primary.span == opener) {
            let location = Location { source: self.source, span: outsider };
            let message = String::from("the indentation suggests that this is outside the list");
            finding.labels.push(Label { location, message });
        }
        let end = self.end_of_last_form(self.at);
        while self.open.len() > index {
            let Some(open) = self.open.pop() else { break };
            self.end_unclosed(open, end);
        }
        while let Some(open) = self.open.last().copied().filter(|&open| self.is_open_prefix(open)) {
            self.end_unclosed(open, end);
            self.open.pop();
        }
    }

    /// Whether the string `start..end` seems to include the start of the next form, because an even number of quotes is
    /// missing.
    pub(super) fn runs_into_form(&self, start: usize, end: usize) -> bool {
        self.has_no_gap_at(end + 1) && self.first_form_in(start, end).is_some()
    }

    fn has_no_gap_at(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
    }

    /// Returns the end of the line before the first line that begins a form.
    fn first_form_in(&self, start: usize, end: usize) -> Option<usize> {
        let inside = self.bytes.get(start..end)?;
        memchr::memchr_iter(b'\n', inside).map(|at| start + at).find(|at| self.begins_form(at + 1))
    }

    /// Whether a parenthesis and one of [`HEADS`] are at `at`.
    fn begins_form(&self, at: usize) -> bool {
        let line = self.text.get(at..).unwrap_or_default().trim_start_matches('\x0c');
        let Some(text) = line.strip_prefix('(') else { return false };
        let end = text.find(|character: char| character.is_whitespace() || character == ')');
        let word = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
        HEADS.iter().any(|head| word == *head || (head.ends_with('-') && word.starts_with(head)))
    }

    /// Returns the latest possible end of the string that starts at `start`: before a line that starts with a
    /// parenthesis. The result is cached for later strings.
    pub(super) fn string_limit(&mut self, start: usize) -> Option<usize> {
        if !self.recovery.strings {
            return None;
        }
        if self.recovery.next_form <= start {
            self.recovery.next_form = self.first_form_in(start, self.bytes.len()).unwrap_or(usize::MAX);
        }
        Some(self.recovery.next_form).filter(|cut| *cut < self.bytes.len())
    }

    /// Ends the string that starts at `start` at byte `end`, without its closing quote, and all open forms around it.
    ///
    /// After a missing quote, opening and closing quotes are swapped, so the unterminated string is not the string with
    /// the missing quote. That string is the first one in the form with a closing quote directly followed by text,
    /// because this quote actually opens the next string.
    pub(super) fn end_unclosed_string(&mut self, start: usize, end: usize) {
        let first = self
            .tree
            .nodes
            .iter()
            .rposition(|node| node.kind == Kind::List && self.is_first_column(node.span));
        let since = self.tree.nodes.get(first.unwrap_or(0)..).unwrap_or_default();
        // Strings between typographic marks are not affected by a missing quote.
        let is_quoted = |span: Span| span.of(self.text).starts_with('"') && span.of(self.text).ends_with('"');
        let culprit = since.iter().find(|node| {
            node.kind == Kind::String && is_quoted(node.span) && self.has_no_gap_at(node.span.end as usize)
        });
        let start_of_doubt = culprit.map_or(start, |node| node.span.start as usize);
        let turned = culprit.map(|node| node.span.end as usize - 1);
        self.findings.retain(|finding| (finding.primary.span.start as usize) < start_of_doubt);
        let opener = Span::new(start_of_doubt, start_of_doubt + 1);
        self.report_unclosed(opener, String::from("opened here"));
        if let (Some(turned), Some(finding)) = (turned, self.findings.last_mut()) {
            let location = Location { source: self.source, span: Span::new(turned, turned + 1) };
            let message = String::from("closed only by this quote, which seems to open another string");
            finding.labels.push(Label { location, message });
        }
        // Everything read since then is a guess.
        self.mark_misnested(start_of_doubt, end);
        self.push_string(start, end);
        self.close_all_unclosed(end, "", true);
    }

    pub(super) fn is_first_column(&self, span: Span) -> bool {
        let before = (span.start as usize).checked_sub(1).and_then(|at| self.bytes.get(at));
        before.is_none_or(|byte| *byte == b'\n')
    }
}
