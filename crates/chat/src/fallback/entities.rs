//! HTML character references: `&lt;`, `&#60;`, `&#x3c;`, `&amp;lt;`.

use serde::{Deserialize, Serialize};

/// Maximum length of a reference without `&` and `;`, in bytes. Fits every known name and every numeric reference
/// without many leading zeros.
const MAX_NAME: usize = 9;

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
    /// A literal character.
    Plain(char),
    /// The character of a decoded reference.
    Referred(char),
    /// Text that turned out not to be a reference.
    Text(String),
}

impl EntityReader {
    /// Whether the reader is outside a reference.
    pub(super) fn is_idle(&self) -> bool {
        self.name.is_none()
    }

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
                Decoded::Referred(referred)
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
            Decoded::Plain(ch) | Decoded::Referred(ch) => out.push(ch),
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
