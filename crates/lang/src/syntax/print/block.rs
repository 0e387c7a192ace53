//! Code that is moved without changing its layout.

use super::super::NodeId;
use super::super::tree::Tree;
use crate::text::Span;

/// Tab width, as in Emacs.
const TAB: usize = 8;

/// Indentation of the body of a form, as in Emacs.
const BODY: usize = 2;

/// Returns the column after `text`, which starts at column `from`.
pub(super) fn column_after(text: &str, from: usize) -> usize {
    text.chars().fold(from, |column, character| match character {
        '\n' => 0,
        '\t' => (column / TAB + 1) * TAB,
        // A byte order mark has no width.
        '\u{FEFF}' => column,
        _ => column + 1,
    })
}

/// Returns the column of byte `at` in its line.
pub(super) fn column_of(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let line = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |newline| newline + 1);
    column_after(before.get(line..).unwrap_or_default(), 0)
}

/// Returns the text of `id` for a block that starts in `column`. Every line after the first is shifted, except for
/// lines that start inside a string or another token. A block that continues left of its start is indented like the
/// body of a `lambda` in Emacs.
pub(super) fn moved(tree: &Tree, text: &str, id: NodeId, column: usize) -> String {
    let span = tree.span(id);
    let block = span.of(text);
    if !block.contains('\n') {
        return block.to_owned();
    }
    let old = column_of(text, span.start as usize);
    if old == column {
        return block.to_owned();
    }
    let lines = lines(tree, text, id);
    let is_code = |line: &&Line<'_>| !line.text.trim_start_matches(BLANKS).starts_with(';');
    let second = lines.iter().filter(is_code).find_map(|line| line.indent).unwrap_or(old);
    // Lines left of the start of the block were never aligned with it.
    let (from, to) = if second < old { (second, column + BODY) } else { (old, column) };
    let mut out = String::with_capacity(block.len());
    for Line { text, indent } in lines {
        match indent {
            Some(indent) => {
                out.extend(std::iter::repeat_n(' ', (indent + to).saturating_sub(from)));
                out.push_str(text.trim_start_matches(BLANKS));
            }
            None => out.push_str(text),
        }
    }
    out
}

/// A line of a block, with its line end.
struct Line<'t> {
    text: &'t str,
    /// Column of its first word; `None` if the line must not move.
    indent: Option<usize>,
}

const BLANKS: [char; 2] = [' ', '\t'];

fn lines<'t>(tree: &Tree, text: &'t str, id: NodeId) -> Vec<Line<'t>> {
    let span = tree.span(id);
    let mut tokens = tokens_of_several_lines(tree, text, id).peekable();
    let mut at = span.start as usize;
    let mut lines = Vec::new();
    for line in span.of(text).split_inclusive('\n') {
        while tokens.next_if(|token| token.end as usize <= at).is_some() {}
        let is_inside = tokens.peek().is_some_and(|token| (token.start as usize) < at);
        let words = line.trim_start_matches(BLANKS);
        let moves = at > span.start as usize && !is_inside && !words.trim().is_empty();
        let blanks = line.get(..line.len() - words.len()).unwrap_or_default();
        lines.push(Line { text: line, indent: moves.then(|| column_after(blanks, 0)) });
        at += line.len();
    }
    lines
}

fn tokens_of_several_lines<'t>(tree: &'t Tree, text: &'t str, id: NodeId) -> impl Iterator<Item = Span> + 't {
    let end = tree.nodes.get(id.0 as usize).map_or(id.0, |node| node.end);
    let inside = tree.nodes.get(id.0 as usize..end as usize).unwrap_or_default();
    inside.iter().enumerate().filter_map(move |(index, node)| {
        let is_leaf = node.end as usize == id.0 as usize + index + 1;
        (is_leaf && node.kind.is_token() && node.span.of(text).contains('\n')).then_some(node.span)
    })
}
