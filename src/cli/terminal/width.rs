//! The width of the terminal.

use std::io::IsTerminal;

use unicode_width::UnicodeWidthStr;

/// The number of columns of a terminal that does not report its size.
const DEFAULT_COLUMNS: usize = 80;

/// The number of columns of output that is not a terminal, as in rustc.
const FILE_COLUMNS: usize = 140;

/// The number of columns for help texts if there is no terminal, as in clap.
const DEFAULT_HELP_COLUMNS: usize = 100;

/// Returns the number of columns of a stream.
pub(in crate::cli) fn columns(stream: &impl IsTerminal) -> usize {
    if stream.is_terminal() { terminal_columns().unwrap_or(DEFAULT_COLUMNS) } else { FILE_COLUMNS }
}

/// Returns the number of columns for help texts. Like clap, it takes `COLUMNS` if there is no terminal.
pub(in crate::cli) fn help_columns() -> usize {
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal_columns().or_else(variable).unwrap_or(DEFAULT_HELP_COLUMNS)
}

/// Returns the number of columns of the terminal of stdout, stderr or stdin.
fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

/// Returns `start` and the words of `text`, in lines of at most `columns` columns, each with a line end. Lines after the
/// first one are indented by `indent` columns.
pub(in crate::cli) fn fill(start: &str, text: &str, indent: usize, columns: usize) -> String {
    let mut filled = start.to_owned();
    let mut column = start.width();
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 && column + 1 + word.width() > columns {
            filled.push('\n');
            filled.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if index > 0 {
            filled.push(' ');
            column += 1;
        }
        filled.push_str(word);
        column += word.width();
    }
    filled.push('\n');
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_filled_between_words() {
        for (columns, expected) in [
            (80, "  a  one two three 日本 語 four\n"),
            (20, "  a  one two three\n     日本 語 four\n"),
            (17, "  a  one two\n     three 日本\n     語 four\n"),
            (16, "  a  one two\n     three 日本\n     語 four\n"),
            (14, "  a  one two\n     three\n     日本 語\n     four\n"),
            (0, "  a  one\n     two\n     three\n     日本\n     語\n     four\n"),
        ] {
            assert_eq!(fill("  a  ", "one two\nthree 日本 語 four", 5, columns), expected, "{columns}");
        }
        assert_eq!(fill("", "", 0, 80), "\n");
    }
}
