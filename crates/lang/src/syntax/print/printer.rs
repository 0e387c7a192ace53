//! The printer: collects the output and keeps track of the column.

use super::super::tree::Tree;
use super::block::column_after;
use super::shape::Shapes;

/// Maximum line width, as far as lines can be broken.
pub(crate) const WIDTH: usize = 100;

/// The last column (from 0) in which a multi-line value starts next to its key.
pub(crate) const BESIDE: usize = 50;

/// Prints the forms of one text.
pub(super) struct Printer<'t> {
    pub(super) tree: &'t Tree,
    pub(super) text: &'t str,
    pub(super) shapes: &'t Shapes,
    pub(super) out: String,
    /// Column of the next character.
    pub(super) column: usize,
    line_end: &'static str,
    /// Number of comments that are already printed or stay unchanged.
    pub(super) comments_done: usize,
    /// Whether the printer is between two top-level forms.
    pub(super) is_top_level: bool,
    /// Whether there is text between forms that the printer does not support.
    pub(super) is_unsupported: bool,
}

impl<'t> Printer<'t> {
    pub(super) fn new(tree: &'t Tree, text: &'t str, shapes: &'t Shapes) -> Self {
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).peekable();
        let is_windows = lines.peek().is_some()
            && lines.all(|line| line.ends_with("\r\n"))
            // In `?\r` the CR is the character literal; the line feed alone ends its line.
            && !tree.iter().any(|id| tree.kind(id).is_token() && tree.text(id, text).ends_with('\r'));
        let line_end = if is_windows { "\r\n" } else { "\n" };
        Self {
            tree,
            text,
            shapes,
            out: String::with_capacity(text.len() + text.len() / 8),
            column: 0,
            line_end,
            comments_done: 0,
            is_top_level: false,
            is_unsupported: false,
        }
    }

    /// Returns the printed text; `None` if the text must stay unchanged.
    pub(super) fn finish(self) -> Option<String> {
        (!self.is_unsupported).then_some(self.out)
    }

    pub(super) fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column = column_after(text, self.column);
    }

    pub(super) fn newline(&mut self) {
        self.out.push_str(self.line_end);
        self.column = 0;
    }

    pub(super) fn blanks(&mut self, count: usize) {
        self.out.extend(std::iter::repeat_n(' ', count));
        self.column += count;
    }

    /// Indents to `column`, at the start of a line.
    pub(super) fn indent(&mut self, column: usize) {
        self.blanks(column.saturating_sub(self.column));
    }

    pub(super) fn start_line(&mut self, after_blank: bool, indent: usize) {
        self.newline();
        if after_blank {
            self.newline();
        }
        self.indent(indent);
    }
}
