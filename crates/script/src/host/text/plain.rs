//! Functions on characters, lines and words, without patterns.

/// Maximum length of arguments and results, in bytes.
pub(super) const MAX_TEXT: usize = 8 << 20;

/// Returns the characters from `from` to `to`. Positions start at 1; negative ones count from the end, as in
/// `string.sub`.
pub(super) fn sub(text: &str, from: i64, to: i64) -> &str {
    let count = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { count().saturating_add(at).saturating_add(1) } else { at };
    let (first, last) = (from_end(from).max(1), from_end(to));
    if last < first {
        return "";
    }
    let at = |number: i64| {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        text.char_indices().nth(number).map_or(text.len(), |(at, _)| at)
    };
    text.get(at(first - 1)..at(last)).unwrap_or_default()
}

/// Returns the lines of `text`, without `\n` or `\r\n`. A line end at the end of the text does not start another line.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").map_or_else(|| (!text.is_empty()).then_some(text), Some);
    text.into_iter()
        .flat_map(|text| text.split(|byte| *byte == b'\n'))
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Replaces `old` with `new` in `text`, at most `limit` times. Returns the result and the number of replacements.
///
/// # Errors
/// When the result would be longer than [`MAX_TEXT`].
pub(super) fn replace(text: &[u8], old: &[u8], new: &[u8], limit: usize) -> Result<(Vec<u8>, usize), String> {
    let mut result = Vec::new();
    let (mut from, mut count) = (0, 0);
    for at in memchr::memmem::find_iter(text, old).take(limit) {
        result.extend_from_slice(text.get(from..at).unwrap_or_default());
        result.extend_from_slice(new);
        check_length(result.len())?;
        from = at + old.len();
        count += 1;
    }
    result.extend_from_slice(text.get(from..).unwrap_or_default());
    check_length(result.len())?;
    Ok((result, count))
}

/// Returns an error if `length` exceeds [`MAX_TEXT`].
pub(super) fn check_length(length: usize) -> Result<(), String> {
    if length <= MAX_TEXT {
        Ok(())
    } else {
        Err(format!("the text would be longer than {} MiB", MAX_TEXT >> 20))
    }
}

/// Wraps the lines of `text` at whitespace to at most `width` characters. Each line is wrapped separately and keeps its
/// indentation. Longer words are not split.
pub(super) fn wrap(text: &str, width: usize) -> String {
    let mut result = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        if index > 0 {
            result.push('\n');
        }
        let words = line.trim_start();
        let mut column = 0;
        let indent = line.get(..line.len() - words.len()).unwrap_or_default();
        for word in words.split_whitespace() {
            let length = word.chars().count();
            if column == 0 {
                result.push_str(indent);
                column = indent.chars().count();
            } else if column + 1 + length > width {
                result.push('\n');
                column = 0;
            } else {
                result.push(' ');
                column += 1;
            }
            result.push_str(word);
            column += length;
        }
    }
    if text.ends_with('\n') {
        result.push('\n');
    }
    result
}

/// Truncates `text` to `limit` characters (or bytes, without splitting a character), including `mark` at the end.
pub(super) fn truncate(text: &str, limit: usize, in_bytes: bool, mark: &str) -> String {
    let length = |text: &str| if in_bytes { text.len() } else { text.chars().count() };
    if length(text) <= limit {
        return text.to_owned();
    }
    let cut = |text: &str, limit: usize| {
        let end = if in_bytes {
            (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
        } else {
            text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at)
        };
        text.get(..end).unwrap_or_default().to_owned()
    };
    match limit.checked_sub(length(mark)) {
        Some(room) => cut(text, room) + mark,
        None => cut(text, limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_from_both_ends() {
        for (from, to, part) in [
            (1, -1, "aé漢z"),
            (2, 3, "é漢"),
            (-2, -1, "漢z"),
            (0, 1, "a"),
            (-9, 2, "aé"),
            (3, 2, ""),
            (5, 9, ""),
            (2, i64::MAX, "é漢z"),
            (i64::MIN, i64::MIN, ""),
        ] {
            assert_eq!(sub("aé漢z", from, to), part, "{from} {to}");
        }
    }

    #[test]
    fn both_line_ends_are_recognised() {
        for (text, expected) in [
            ("", &[][..]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("a\r\nb\n", &["a", "b"]),
            ("a\n\nb", &["a", "", "b"]),
            ("a\rb\r\n\r\n", &["a\rb", ""]),
        ] {
            let found: Vec<&[u8]> = lines(text.as_bytes()).collect();
            let expected: Vec<&[u8]> = expected.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_wrapped_at_whitespace() {
        for (text, width, wrapped) in [
            ("one two three", 7, "one two\nthree"),
            ("one two three", 1, "one\ntwo\nthree"),
            ("  a b\n\nc  d\n", 3, "  a\nb\n\nc d\n"),
            ("überlang kurz", 8, "überlang\nkurz"),
            ("", 5, ""),
        ] {
            assert_eq!(wrap(text, width), wrapped, "{text:?} {width}");
        }
    }

    #[test]
    fn truncation_never_splits_a_character() {
        for (text, limit, in_bytes, mark, cut) in [
            ("aé漢z", 4, false, "…", "aé漢z"),
            ("aé漢z", 3, false, "…", "aé…"),
            ("aé漢z", 3, false, "", "aé漢"),
            ("aé漢z", 5, true, "", "aé"),
            ("aé漢z", 2, true, "…", "a"),
            ("aé漢z", 0, false, "…", ""),
        ] {
            assert_eq!(truncate(text, limit, in_bytes, mark), cut, "{text} {limit}");
        }
    }
}
