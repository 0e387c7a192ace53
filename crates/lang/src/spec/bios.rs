//! Splits the text of a BIOS file at its placeholders.
//!
//! `{worker}` is a placeholder; `{{worker}}` is the literal text `{worker}`. Unknown words in braces and all other
//! braces are literal text too, so that JSON and code need no escapes.

/// A placeholder in a BIOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// The worker's name.
    Worker,
    /// The local time when the request is submitted.
    Time,
    /// The time zone when the request is submitted.
    Zone,
    /// Remaining units of tool budget.
    Budget,
    /// The names of the exit tools.
    ExitTools,
    /// Instructions for writing a call as text.
    CallConvention,
}

impl Placeholder {
    /// All placeholders.
    pub const ALL: [Self; 6] =
        [Self::Worker, Self::Time, Self::Zone, Self::Budget, Self::ExitTools, Self::CallConvention];

    /// Returns the name without braces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Time => "time",
            Self::Zone => "zone",
            Self::Budget => "budget",
            Self::ExitTools => "exit_tools",
            Self::CallConvention => "call_convention",
        }
    }
}

/// A part of a BIOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BiosPiece<'t> {
    /// Literal text.
    Text(&'t str),
    /// A placeholder to replace.
    Placeholder(Placeholder),
    /// An unknown word in braces, without the braces. It is sent unchanged.
    Unknown(&'t str),
}

/// Returns the pieces of `text` in order.
pub fn bios_pieces(text: &str) -> impl Iterator<Item = BiosPiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, len) = first_piece(rest)?;
        rest = rest.get(len..).unwrap_or_default();
        Some(piece)
    })
}

/// Returns the first piece and its length in bytes of `text`.
fn first_piece(text: &str) -> Option<(BiosPiece<'_>, usize)> {
    match text.find('{') {
        None => return (!text.is_empty()).then_some((BiosPiece::Text(text), text.len())),
        Some(0) => {}
        Some(open) => return Some((BiosPiece::Text(text.get(..open)?), open)),
    }
    let inside = text.get(1..)?;
    if let Some(word) = inside.strip_prefix('{').and_then(|inside| word_before("}}", inside)) {
        let end = word.len() + 3;
        return Some((BiosPiece::Text(text.get(1..end)?), end + 1));
    }
    let Some(word) = word_before("}", inside) else { return Some((BiosPiece::Text(text.get(..1)?), 1)) };
    let known = Placeholder::ALL.into_iter().find(|placeholder| placeholder.as_str() == word);
    Some((known.map_or(BiosPiece::Unknown(word), BiosPiece::Placeholder), word.len() + 2))
}

/// Maximum length of a word in braces, in bytes.
const MAX_WORD: usize = 100;

/// Returns the word at the start of `text` if `end` follows it: letters, digits and `_`, not starting with a digit.
fn word_before<'t>(end: &str, text: &'t str) -> Option<&'t str> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let len = text.bytes().take(MAX_WORD + 1).take_while(is_part).count();
    let word = text.get(..len).filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()))?;
    (len <= MAX_WORD && text.get(len..)?.starts_with(end)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces() {
        use BiosPiece::{Placeholder as Is, Text, Unknown};
        let cases: [(&str, &[BiosPiece<'_>]); 12] = [
            ("", &[]),
            ("plain", &[Text("plain")]),
            (
                "a {worker}, {zone}!",
                &[Text("a "), Is(Placeholder::Worker), Text(", "), Is(Placeholder::Zone), Text("!")],
            ),
            ("{bugdet}", &[Unknown("bugdet")]),
            ("{{budget}}", &[Text("{budget}")]),
            ("{{x}} {{x}", &[Text("{x}"), Text(" "), Text("{"), Unknown("x")]),
            ("{{{time}}}", &[Text("{"), Text("{time}"), Text("}")]),
            (r#"{"a": {"b": 1}}"#, &[Text("{"), Text("\"a\": "), Text("{"), Text("\"b\": 1}}")]),
            (
                "{é} {1} {} {a b}",
                &[
                    Text("{"),
                    Text("é} "),
                    Text("{"),
                    Text("1} "),
                    Text("{"),
                    Text("} "),
                    Text("{"),
                    Text("a b}"),
                ],
            ),
            ("{", &[Text("{")]),
            ("{{", &[Text("{"), Text("{")]),
            ("{worker", &[Text("{"), Text("worker")]),
        ];
        for (text, expected) in cases {
            assert_eq!(bios_pieces(text).collect::<Vec<_>>(), expected, "{text}");
        }
        // The search for a word after a brace stops at the length limit.
        let braces = "{{a".repeat(100_000) + &"{".repeat(100_000) + &"a".repeat(100_000);
        assert!(bios_pieces(&braces).all(|piece| matches!(piece, Text(_))));
    }
}
