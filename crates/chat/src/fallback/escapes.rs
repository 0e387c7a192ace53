//! Decodes the escapes in a text: `\uXXXX` as in JSON and logs, and HTML character references (`&lt;`, `&#60;`,
//! `&#x3c;`, `&amp;lt;`).

use serde::{Deserialize, Serialize};

/// Maximum length of a reference without `&` and `;`, in bytes. Fits every known name and every numeric reference
/// without many leading zeros.
const MAX_NAME: usize = 9;

/// Decodes a Unicode escape. `text` begins after its backslashes, with `u`. Returns the character (`None` for a lone
/// surrogate) and the length of the escape in bytes. Returns `None` if the text is not a Unicode escape.
///
/// The second escape of a surrogate pair may begin with any number of backslashes.
pub(crate) fn unicode_escape(text: &str) -> Option<(Option<char>, usize)> {
    /// Length of `uXXXX`.
    const LENGTH: usize = 5;
    let code = code_unit(text)?;
    let next = text.get(LENGTH..).unwrap_or_default();
    let second = next.trim_start_matches('\\');
    let low = code_unit(second).filter(|low| second.len() < next.len() && (0xDC00..0xE000).contains(low));
    if let (0xD800..0xDC00, Some(low)) = (code, low) {
        let code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        return Some((char::from_u32(code), 2 * LENGTH + next.len() - second.len()));
    }
    Some((char::from_u32(code), LENGTH))
}

/// Reads `uXXXX`.
fn code_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Returns the character for the reference `name`, given without `&` and `;`. `None` if the name is unknown.
fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hexadecimal = number.strip_prefix(['x', 'X']);
        let code = hexadecimal.map_or_else(|| number.parse(), |digits| u32::from_str_radix(digits, 16));
        return code.ok().and_then(char::from_u32);
    }
    Some(match name {
        "amp" | "AMP" => '&',
        "lt" | "LT" => '<',
        "gt" | "GT" => '>',
        "quot" | "QUOT" => '"',
        "ldquo" => '“',
        "rdquo" => '”',
        "bdquo" => '„',
        "apos" => '\'',
        "lsquo" => '‘',
        "rsquo" => '’',
        "laquo" => '«',
        "raquo" => '»',
        "lcub" | "lbrace" => '{',
        "rcub" | "rbrace" => '}',
        "lsqb" | "lbrack" => '[',
        "rsqb" | "rbrack" => ']',
        "lpar" => '(',
        "rpar" => ')',
        "verbar" | "vert" => '|',
        "colon" => ':',
        "comma" => ',',
        "equals" => '=',
        "lowbar" => '_',
        "sol" => '/',
        "nbsp" | "Tab" | "NewLine" | "zwnj" | "zwj" | "shy" => ' ',
        _ => return None,
    })
}

/// A streaming decoder of character references. Decodes repeatedly escaped references (`&amp;lt;`) completely.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntityReader {
    /// The text after `&`; `None` outside a reference.
    name: Option<String>,
}

/// The result of one more character.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// No output yet: inside a possible reference.
    Nothing,
    /// A character, literal or decoded.
    Plain(char),
    /// Text that turned out not to be a reference.
    Text(String),
}

impl EntityReader {
    /// Reads one character.
    pub(super) fn push(&mut self, ch: char) -> Decoded {
        let Some(name) = &mut self.name else {
            if ch == '&' {
                self.name = Some(String::new());
                return Decoded::Nothing;
            }
            return Decoded::Plain(ch);
        };
        if (ch.is_ascii_alphanumeric() || ch == '#') && name.len() < MAX_NAME {
            name.push(ch);
            return Decoded::Nothing;
        }
        let read = std::mem::take(name);
        match entity(&read).filter(|_| ch == ';') {
            // Escaped twice: the decoded `&` begins another reference.
            Some('&') => Decoded::Nothing,
            Some(referred) => {
                self.name = None;
                Decoded::Plain(referred)
            }
            None if ch == '&' => Decoded::Text(format!("&{read}")),
            None => {
                self.name = None;
                Decoded::Text(format!("&{read}{ch}"))
            }
        }
    }
}

/// Decodes all references in a text.
pub(crate) fn decode_references(chars: impl Iterator<Item = char>) -> String {
    let mut reader = EntityReader::default();
    let mut out = String::new();
    for ch in chars {
        match reader.push(ch) {
            Decoded::Nothing => {}
            Decoded::Plain(ch) => out.push(ch),
            Decoded::Text(text) => out.push_str(&text),
        }
    }
    if let Some(name) = reader.name {
        out.push('&');
        out.push_str(&name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicode_escapes_are_decoded() {
        for (text, decoded) in [
            ("u003c<", Some((Some('<'), 5))),
            (r"ud83d\ude00.", Some((Some('😀'), 11))),
            (r"ud83d\\\ude00", Some((Some('😀'), 13))),
            (r"ud83d\n", Some((None, 5))),
            (r"ud83dude00", Some((None, 5))),
            (r"ude00\ud83d", Some((None, 5))),
            ("u12", None),
            ("u12é4", None),
            ("n", None),
        ] {
            assert_eq!(unicode_escape(text), decoded, "{text}");
        }
    }

    #[test]
    fn references_are_decoded() {
        for (text, plain) in [
            ("a &lt;b&gt; c", "a <b> c"),
            ("&#60;&#x3C;&amp;lt;&amp;amp;gt;", "<<<>"),
            ("a & b &c; &; &lt &toolonganame; d", "a & b &c; &; &lt &toolonganame; d"),
            ("&quot;&ldquo;", "\"“"),
            ("a&b&c&lt;", "a&b&c<"),
            ("&&amp;&amp;&", "&&&&"),
            ("a &amp;l", "a &l"),
        ] {
            assert_eq!(decode_references(text.chars()), plain, "{text}");
        }
    }
}
