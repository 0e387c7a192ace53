//! Characters, lines and words: what needs no pattern.

/// Longest text that these functions take or make, in bytes.
pub(super) const MAX_TEXT: usize = 8 << 20;

/// The characters `from` to `to` of `text`, counted from 1, or from the end where negative, as in `string.sub`.
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

/// The lines of `text`, without `\n` or `\r\n`. A line end at the end of the text begins no further line.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").map_or_else(|| (!text.is_empty()).then_some(text), Some);
    text.into_iter()
        .flat_map(|text| text.split(|byte| *byte == b'\n'))
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// `text` with `old` replaced by `new`, at most `most` times, and how often it was.
///
/// # Errors
/// When it would be longer than [`MAX_TEXT`].
pub(super) fn replace(text: &[u8], old: &[u8], new: &[u8], most: usize) -> Result<(Vec<u8>, usize), String> {
    let mut made = Vec::new();
    let (mut from, mut count) = (0, 0);
    for at in memchr::memmem::find_iter(text, old).take(most) {
        made.extend_from_slice(text.get(from..at).unwrap_or_default());
        made.extend_from_slice(new);
        within(made.len())?;
        from = at + old.len();
        count += 1;
    }
    made.extend_from_slice(text.get(from..).unwrap_or_default());
    within(made.len())?;
    Ok((made, count))
}

/// An error for a text that is to be longer than [`MAX_TEXT`].
pub(super) fn within(length: usize) -> Result<(), String> {
    if length <= MAX_TEXT {
        Ok(())
    } else {
        Err(format!("the text would be longer than {} MiB", MAX_TEXT >> 20))
    }
}

/// `text` in lines of at most `width` characters, broken at blanks. Lines are wrapped by themselves, with the blanks
/// that they begin with; a longer word stays whole.
pub(super) fn wrap(text: &str, width: usize) -> String {
    let mut made = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        if index > 0 {
            made.push('\n');
        }
        let words = line.trim_start();
        let mut column = 0;
        let indent = line.get(..line.len() - words.len()).unwrap_or_default();
        for word in words.split_whitespace() {
            let length = word.chars().count();
            if column == 0 {
                made.push_str(indent);
                column = indent.chars().count();
            } else if column + 1 + length > width {
                made.push('\n');
                column = 0;
            } else {
                made.push(' ');
                column += 1;
            }
            made.push_str(word);
            column += length;
        }
    }
    if text.ends_with('\n') {
        made.push('\n');
    }
    made
}

/// `text` cut to `most` characters (or bytes) with `mark` at the end of what was cut, whole characters only.
pub(super) fn truncate(text: &str, most: usize, in_bytes: bool, mark: &str) -> String {
    let length = |text: &str| if in_bytes { text.len() } else { text.chars().count() };
    if length(text) <= most {
        return text.to_owned();
    }
    let cut = |text: &str, most: usize| {
        let end = if in_bytes {
            (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
        } else {
            text.char_indices().nth(most).map_or(text.len(), |(at, _)| at)
        };
        text.get(..end).unwrap_or_default().to_owned()
    };
    match most.checked_sub(length(mark)) {
        Some(room) => cut(text, room) + mark,
        None => cut(text, most),
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
    fn lines_end_with_either_end() {
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
    fn lines_are_wrapped_at_blanks() {
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
    fn whole_characters_are_cut() {
        for (text, most, in_bytes, mark, cut) in [
            ("aé漢z", 4, false, "…", "aé漢z"),
            ("aé漢z", 3, false, "…", "aé…"),
            ("aé漢z", 3, false, "", "aé漢"),
            ("aé漢z", 5, true, "", "aé"),
            ("aé漢z", 2, true, "…", "a"),
            ("aé漢z", 0, false, "…", ""),
        ] {
            assert_eq!(truncate(text, most, in_bytes, mark), cut, "{text} {most}");
        }
    }
}
