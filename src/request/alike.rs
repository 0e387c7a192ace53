//! Texts made comparable, to tell what a model repeats from what it says itself.
//!
//! What stands in a tool's result as a page's source, an escaped log or with characters that nobody sees is written plainly by a
//! model that shows it. So escapes and entities are read, however often they were written over, blanks and invisible
//! characters left out, and forms of one character taken for it. What becomes alike by that is alike: rather a call too few.
//!
//! Absent: base64 and its like, and calls that a text describes in other words.

use crate::chat::fallback;

/// No entity that is known is longer.
const MAX_ENTITY: usize = 10;

/// `text` as it is compared.
pub(super) fn comparable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (character, length) = match first {
            '\\' => escape(rest),
            '&' => entity(rest),
            other => (Some(other), other.len_utf8()),
        };
        out.extend(character.and_then(plain));
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// The character that backslashes begin, however many, and how many bytes it takes.
fn escape(text: &str) -> (Option<char>, usize) {
    let after = text.trim_start_matches('\\');
    let slashes = text.len() - after.len();
    match after.bytes().next() {
        // Blanks and controls.
        Some(b'b' | b'f' | b'n' | b'r' | b't') => (None, slashes + 1),
        Some(b'u') => match unit(after) {
            Some(high @ 0xD800..0xDC00) => {
                let next = after.get(5..).unwrap_or_default();
                let second = next.trim_start_matches('\\');
                match unit(second) {
                    Some(low @ 0xDC00..0xE000) if second.len() < next.len() => {
                        let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                        (char::from_u32(code), slashes + 10 + next.len() - second.len())
                    }
                    Some(_) | None => (None, slashes + 5),
                }
            }
            Some(code) => (char::from_u32(code), slashes + 5),
            None => (None, slashes),
        },
        Some(_) | None => (None, slashes),
    }
}

/// `u003c`
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// The character that an ampersand begins, and how many bytes it takes.
fn entity(text: &str) -> (Option<char>, usize) {
    let mut body = text.get(1..).unwrap_or_default();
    while let Some(inner) = body.strip_prefix("amp;") {
        body = inner;
    }
    let start = text.len() - body.len();
    let end = body.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
    let found = end.and_then(|end| Some((fallback::entity(body.get(..end)?)?, start + end + 1)));
    found.map_or((Some('&'), start), |(character, length)| (Some(character), length))
}

/// The character that stands for all that look like it; `None`: it is not seen.
fn plain(character: char) -> Option<char> {
    match character {
        '\u{AD}'
        | '\u{34F}'
        | '\u{61C}'
        | '\u{180E}'
        | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{E0000}'..='\u{E01EF}' => None,
        '“' | '”' | '„' => Some('"'),
        '‘' | '’' => Some('\''),
        // ASCII in full width.
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(character) - 0xFEE0),
        other if other.is_whitespace() || other.is_control() => None,
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_otherwise_is_alike() {
        let plain = r#"<a>{"b": "c"}</a>"#;
        for other in [
            "&lt;a&gt;{&quot;b&quot;: &#34;c&#x22;}&lt;/a&gt;",
            "&amp;lt;a&amp;amp;gt;{\u{201c}b”:\n\t\"c\"}</a>",
            r#"\u003ca\\u003E{\"b\":\\\n\"c\"}<\/a>"#,
            "＜a＞{\u{feff}\"b\":\u{200b}\"c\"}</a>",
        ] {
            assert_eq!(comparable(other), comparable(plain), "{other}");
        }
        assert_eq!(comparable(r"\ud83d\ude00 \\ud83d\\ude00"), "😀😀");
        for (odd, left) in
            [(r"\ud83d\n\u12", "u12"), (r"\", ""), ("&", "&"), ("&lt &foo; &#xD800;", "&lt&foo;&#xD800;")]
        {
            assert_eq!(comparable(odd), left);
        }
    }

    #[test]
    fn it_takes_linear_time() {
        for unit in ["\\", "&", "&amp;", "\\ud83d", "\\ud83d\\\\\\", "&#"] {
            let text = unit.repeat(1_000_000 / unit.len());
            assert!(comparable(&text).len() <= text.len());
        }
    }
}
