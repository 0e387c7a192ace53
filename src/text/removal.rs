//! What has to go with a piece of text so that the layout around it stays good.

use super::Span;

/// The span that goes when the form, or the run of forms, at `span` does.
///
/// Alone on its line it takes the line along, between others on a line all blanks but one, before a closing
/// parenthesis the blanks and line ends that stood before it. A comment is never taken, and nothing is ever drawn into
/// one. A span that is only a part of a form is returned as it is.
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
        // What comes next moves up to the opener; a comment stays on its line.
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
                // A comment there would swallow the parenthesis.
                let start = if last_line.contains(';') { span.start as usize } else { kept.len() };
                Span::new(start, span.end as usize)
            }
            Some(_) => Span::new(span.start as usize, end),
            // The last line of a file without a line end.
            None => Span::new(line_start.trim_end_matches(is_line_end).len(), end),
        };
    }
    match rest.chars().next() {
        // Blanks before a comment are the author's.
        Some(';') => Span::new(start, span.end as usize),
        Some(')' | ']' | '\n' | '\r') | None => Span::new(start, end),
        Some(_) => Span::new(start, end - 1),
    }
}

/// Whether `piece` starts and ends where forms do.
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

/// Bytes of the line end that `text` starts with.
fn line_end(text: &str) -> Option<usize> {
    ["\n", "\r\n"].into_iter().find(|end| text.starts_with(end)).map(str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what stands between `«` and `»` out.
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
    fn layout_stays_good() {
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
    fn comments_stay_and_swallow_nothing() {
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
    fn a_part_of_a_form_is_taken_as_it_is() {
        for (marked, expected) in [
            ("(:type «'»string)", "(:type string)"),
            ("(:type «(quote »string))", "(:type string))"),
            ("(:a «' »x)", "(:a x)"),
        ] {
            assert_eq!(without(marked), expected, "{marked}");
        }
    }
}
