//! Removal of forms together with the surrounding whitespace.

use super::span::Span;

/// Returns the span to delete so that removing the form, or the run of forms, at `span` leaves a clean layout.
///
/// - A form alone on its line is removed with the line.
/// - Between other forms on a line, one space stays.
/// - Before a closing parenthesis, the whitespace in front of the form is removed too.
///
/// Comments are never removed, and no code moves into a comment. If `span` covers only part of a form, it is returned
/// unchanged.
#[must_use]
pub fn removal(text: &str, span: Span) -> Span {
    let Some((before, after)) = text.get(..span.start as usize).zip(text.get(span.end as usize..)) else {
        return span;
    };
    if !is_whole(before, span.of(text), after) {
        return span;
    }
    let line_start = before.trim_end_matches(is_blank);
    let rest = after.trim_start_matches(is_blank);
    let (start, end) = (line_start.len(), text.len() - rest.len());
    let starts_line = line_start.is_empty() || line_start.ends_with('\n');
    let follows_opener = line_start.ends_with(['(', '[']);
    if follows_opener {
        // The next form moves up to the opening parenthesis; a comment stays on its line.
        let next = after.trim_start_matches(|c| is_blank(c) || is_line_end(c));
        let end = if next.starts_with(';') { end } else { text.len() - next.len() };
        return Span::new(span.start as usize, end);
    }
    if starts_line {
        if let Some(line_end) = line_end(rest) {
            return Span::new(start, end + line_end);
        }
        return match rest.chars().next() {
            Some(')' | ']') => {
                let kept = line_start.trim_end_matches(|c| is_blank(c) || is_line_end(c));
                let last_line = kept.rsplit('\n').next().unwrap_or(kept);
                // A comment on that line would comment out the parenthesis.
                let start = if last_line.contains(';') { span.start as usize } else { kept.len() };
                Span::new(start, span.end as usize)
            }
            Some(_) => Span::new(span.start as usize, end),
            // The last line of a file that does not end in a line end.
            None => Span::new(line_start.trim_end_matches(is_line_end).len(), end),
        };
    }
    match rest.chars().next() {
        // The author's spaces before a comment stay.
        Some(';') => Span::new(start, span.end as usize),
        Some(')' | ']' | '\n' | '\r') | None => Span::new(start, end),
        Some(_) => Span::new(start, end - 1),
    }
}

/// Whether `piece` starts and ends at form boundaries.
fn is_whole(before: &str, piece: &str, after: &str) -> bool {
    let opens = before.is_empty() || before.ends_with([' ', '\t', '\n', '\r', '(', '[']);
    let closes = after.is_empty() || after.starts_with([' ', '\t', '\n', '\r', ')', ']', ';']);
    opens && closes && !piece.is_empty() && piece.trim() == piece
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r')
}

/// Returns the length of the line end at the start of `text`, in bytes.
fn line_end(text: &str) -> Option<usize> {
    ["\n", "\r\n"].into_iter().find(|end| text.starts_with(end)).map(str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes the text between `«` and `»`.
    fn without(marked: &str) -> String {
        let (before, rest) = marked.split_once('«').unwrap();
        let (piece, after) = rest.split_once('»').unwrap();
        let text = [before, piece, after].concat();
        let mut removed = text.clone();
        removed
            .replace_range(removal(&text, Span::new(before.len(), before.len() + piece.len())).range(), "");
        removed
    }

    #[test]
    fn removal_leaves_a_clean_layout() {
        for (marked, expected) in [
            ("(:a 1 «:r t» :b 2)", "(:a 1 :b 2)"),
            ("(:a 1  «:r t»   :b 2)", "(:a 1 :b 2)"),
            ("(:a 1 «:r t»)", "(:a 1)"),
            ("(:a 1 «:r t» )", "(:a 1)"),
            ("(«:r t» :a 1)", "(:a 1)"),
            ("(«:r t»\n :a 1)", "(:a 1)"),
            ("(«:r t»)", "()"),
            ("(:a 1\n «:r t»\n :b 2)", "(:a 1\n :b 2)"),
            ("(:a 1\r\n «:r t»\r\n :b 2)", "(:a 1\r\n :b 2)"),
            ("(:a 1\n «:r t»)", "(:a 1)"),
            ("(:a 1\r\n «:r t»)\r\n", "(:a 1)\r\n"),
            ("(:a 1\n «:r t»\n )", "(:a 1\n )"),
            ("(:a 1\n «:r t» :b 2)", "(:a 1\n :b 2)"),
            ("(:a 1 «:r t»\n :b 2)", "(:a 1\n :b 2)"),
            ("(:a 1\n\n «:r t»\n\n :b 2)", "(:a 1\n\n\n :b 2)"),
            ("[\"a\" «\"a\"»]", "[\"a\"]"),
            ("(a)\n«(b)»", "(a)"),
            ("«(a)»\n(b)", "(b)"),
            ("«(a)»", ""),
        ] {
            assert_eq!(without(marked), expected, "{marked}");
        }
    }

    #[test]
    fn removal_keeps_comments_and_code() {
        for (marked, expected) in [
            ("(:a 1 «:r t»  ; why\n :b 2)", "(:a 1  ; why\n :b 2)"),
            ("(:a 1\n «:r t» ; why\n :b 2)", "(:a 1\n ; why\n :b 2)"),
            ("(:a 1 ; one\n «:r t»)", "(:a 1 ; one\n )"),
            ("(:a 1 ; one\n «:r t»\n :b 2)", "(:a 1 ; one\n :b 2)"),
            ("(«:r t» ; why\n :a 1)", "(; why\n :a 1)"),
            ("(«:r t»\n ; why\n :a 1)", "(\n ; why\n :a 1)"),
        ] {
            assert_eq!(without(marked), expected, "{marked}");
        }
    }

    #[test]
    fn removal_of_a_part_of_a_form_returns_the_span_unchanged() {
        for (marked, expected) in [
            ("(:type «'»string)", "(:type string)"),
            ("(:type «(quote »string))", "(:type string))"),
            ("(:a «' »x)", "(:a x)"),
        ] {
            assert_eq!(without(marked), expected, "{marked}");
        }
    }
}
