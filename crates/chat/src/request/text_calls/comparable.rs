//! Normalises texts for comparison, to find text that a model copies.
//!
//! A tool result may contain text as the source of a page, as an escaped log or with invisible characters, which a
//! model then writes in plain form. So all escapes and character references are decoded at any depth, blanks and
//! invisible characters are removed, and variants of a character are unified. Different texts may become equal:
//! ignoring a real call is better than executing a copied one.
//!
//! Not supported: base64 and similar encodings, and calls that a text describes in other words.

use crate::fallback::{decode_references, unicode_escape};

/// Returns `text` in the form that is compared.
pub(super) fn comparable(text: &str) -> String {
    let mut rest = text;
    let chars = std::iter::from_fn(|| {
        let first = rest.chars().next()?;
        let (ch, length) = if first == '\\' { escape(rest) } else { (Some(first), first.len_utf8()) };
        rest = rest.get(length..).unwrap_or_default();
        Some(ch)
    });
    decode_references(chars.flatten()).chars().filter_map(plain).collect()
}

/// Decodes an escape with any number of backslashes. Returns the character, if any, and the length in bytes.
fn escape(text: &str) -> (Option<char>, usize) {
    let after = text.trim_start_matches('\\');
    let slashes = text.len() - after.len();
    let (ch, length) = match after.bytes().next() {
        // Blanks and controls.
        Some(b'b' | b'f' | b'n' | b'r' | b't') => (Some(' '), 1),
        Some(b'u') => unicode_escape(after).unwrap_or((None, 0)),
        Some(_) | None => (None, 0),
    };
    (ch, slashes + length)
}

/// Returns the character that represents all similar characters. `None` for invisible characters.
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
    use deftool_test_support::cpu::assert_linear;

    use super::*;

    #[test]
    fn notations_of_a_text_are_equal() {
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
    fn comparable_takes_linear_time() {
        for unit in ["\\", "&", "&amp;", "\\ud83d", "\\ud83d\\\\\\", "&#"] {
            assert_linear(unit, 100_000, |size| {
                let text = unit.repeat(size / unit.len());
                assert!(comparable(&text).len() <= text.len());
            });
        }
    }
}
