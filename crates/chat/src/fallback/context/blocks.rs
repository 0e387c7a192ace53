//! Parts of a text in which calls are only shown, and the lines that open and close them.

use serde::{Deserialize, Serialize};

use super::lines::without_list_markers;

/// Columns of a fence, and of a delimiter line of `AsciiDoc`.
const MIN_FENCE: usize = 3;
const MIN_DELIMITER: usize = 4;

/// An open part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Block {
    /// A code block, up to a line of at least this many of these characters.
    Fence(char, usize),
    /// Up to this line, in any case: a block of Org or `AsciiDoc`, a heredoc.
    Line(String),
    /// The indented lines that follow.
    Indented,
    /// Up to an empty line: a diff.
    Paragraph,
    /// Up to this mark: a comment, CDATA, an environment of LaTeX, three quotation marks.
    Mark(Mark),
    /// Up to the closing tag. In a list item, it also ends with the item.
    Element { name: Mark, in_item: bool },
    /// The message of another role. It never ends, because the model quotes or invents a dialogue.
    Message,
}

/// The name of an element, or the text that ends a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) text: String,
    /// Written with character references. Such a mark does not close what a plain mark opened.
    pub(super) escaped: bool,
}

/// The kind of the previous line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PreviousLine {
    Text,
    /// The line that opened a block of `AsciiDoc`.
    Delimiter,
    /// Attributes, a title or `+` before a block of `AsciiDoc`.
    Announcement,
    Empty,
}

impl PreviousLine {
    /// Returns the kind of `line`, which opened no block.
    pub(super) fn of(line: &str) -> Self {
        let line = line.trim();
        let is_title = line.strip_prefix('.').is_some_and(|title| title.starts_with(char::is_alphanumeric));
        let is_attributes = line.starts_with('[') && line.ends_with(']');
        let continues_list = line == "+";
        if line.is_empty() {
            Self::Empty
        } else if is_title || is_attributes || continues_list {
            Self::Announcement
        } else {
            Self::Text
        }
    }
}

impl Block {
    /// Whether the text inside is not read, except for the end of the block.
    pub(super) fn is_literal(&self) -> bool {
        !matches!(self, Self::Element { .. } | Self::Message)
    }

    pub(super) fn is_in_item(&self) -> bool {
        matches!(self, Self::Element { in_item: true, .. })
    }

    /// Whether a whole line ends the block, or continues it.
    pub(super) fn has_lines(&self) -> bool {
        matches!(self, Self::Fence(..) | Self::Line(_) | Self::Indented | Self::Paragraph)
    }

    /// Whether `line` ends the block. `previous`: the line before it.
    pub(super) fn ends_with(&self, line: &str, previous: PreviousLine) -> bool {
        let text = line.trim();
        match self {
            Self::Fence(fence, length) => {
                text.chars().count() >= *length && text.chars().all(|ch| ch == *fence)
            }
            // An empty line after it: the delimiter was a rule of Markdown.
            Self::Line(end) => {
                text.eq_ignore_ascii_case(end) || (text.is_empty() && previous == PreviousLine::Delimiter)
            }
            Self::Paragraph => text.is_empty(),
            Self::Indented | Self::Mark(_) | Self::Element { .. } | Self::Message => false,
        }
    }
}

/// Returns the block that a line opens, and the kind of the line.
pub(super) fn opened_by(line: &str, previous: PreviousLine) -> Option<(Block, PreviousLine)> {
    let text = without_list_markers(line).trim();
    // After an empty line, a longer one is a rule of Markdown.
    let may_delimit = match previous {
        PreviousLine::Announcement => true,
        PreviousLine::Empty => text.len() == MIN_DELIMITER,
        PreviousLine::Text | PreviousLine::Delimiter => false,
    };
    if may_delimit && is_delimiter(text) {
        return Some((Block::Line(text.to_owned()), PreviousLine::Delimiter));
    }
    let block = fence(text)
        .or_else(|| org_block(text))
        .or_else(|| heredoc(text))
        .or_else(|| {
            let is_diff = text.starts_with("diff --git ") || text.starts_with("@@ -");
            is_diff.then_some(Block::Paragraph)
        })
        .or_else(|| {
            let is_restructured = text.starts_with(".. ") || text.ends_with("::");
            (is_restructured || introduces_scalar(text)).then_some(Block::Indented)
        });
    block.map(|block| (block, PreviousLine::Text))
}

/// Whether the indented lines that follow are a block scalar of YAML: `key: |`, `- >-`, `key: &name |2`.
fn introduces_scalar(text: &str) -> bool {
    let (before, last) = text.rsplit_once(' ').unwrap_or(("", text));
    let is_value = before.is_empty() || before.split(' ').any(|word| word.ends_with(':'));
    let is_style = |rest: &str| rest.chars().all(|ch| ch.is_ascii_digit() || "+-".contains(ch));
    is_value && last.strip_prefix(['|', '>']).is_some_and(is_style)
}

fn fence(text: &str) -> Option<Block> {
    let fence = text.chars().next().filter(|ch| matches!(ch, '`' | '~'))?;
    let info = text.trim_start_matches(fence);
    let length = text.len() - info.len();
    // With the same character again, the line begins with inline code, or it is a decoration.
    (length >= MIN_FENCE && !info.contains(fence)).then_some(Block::Fence(fence, length))
}

/// `#+begin_src` to `#+end_src`.
fn org_block(text: &str) -> Option<Block> {
    let prefix = text.get(.."#+begin_".len()).filter(|prefix| prefix.eq_ignore_ascii_case("#+begin_"))?;
    let name = text.get(prefix.len()..)?.split_whitespace().next()?;
    Some(Block::Line(format!("#+end_{name}")))
}

/// A line of equal characters: a listing, a literal, an example, a quotation, a sidebar or a passthrough of `AsciiDoc`.
fn is_delimiter(text: &str) -> bool {
    let mut chars = text.chars();
    let Some(first) = chars.next().filter(|ch| matches!(ch, '-' | '.' | '=' | '_' | '*' | '+' | '/')) else {
        return false;
    };
    text.len() >= MIN_DELIMITER && chars.all(|ch| ch == first)
}

/// `<<WORD`, `<<-WORD`, `<<~WORD`, `<<<WORD`, `<<'word'`. Without quotation marks, only a word in capital letters, because
/// `<<` is also an operator. Prose and inline code only mention it.
fn heredoc(text: &str) -> Option<Block> {
    if text.contains('`') || text.ends_with(['.', '!', '?', ':']) {
        return None;
    }
    let after = text.split("<<").skip(1);
    let mut words = after.filter_map(|after| {
        let after = after.strip_prefix(['-', '~', '<']).unwrap_or(after);
        let quote = after.chars().next().filter(|ch| matches!(ch, '\'' | '"'));
        let after = quote.map_or(after, |_| after.get(1..).unwrap_or_default());
        let end = after.find(|ch: char| !(ch.is_alphanumeric() || ch == '_')).unwrap_or(after.len());
        let (word, rest) = after.split_at(end);
        let is_word = match quote {
            Some(quote) => !word.is_empty() && rest.starts_with(quote),
            None => word.len() > 1 && !word.contains(char::is_lowercase) && !rest.starts_with('>'),
        };
        is_word.then(|| word.to_owned())
    });
    words.next().map(Block::Line)
}
