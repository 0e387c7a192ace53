//! Backslash escapes of strings and character literals.
//!
//! Source: "Basic Char Syntax", "General Escape Syntax", "Ctl-Char Syntax", "Meta-Char Syntax" and "Syntax for
//! Strings" in the Emacs Lisp reference manual (Emacs 30).

use std::borrow::Cow;

use crate::diagnostic::Rule;
use crate::syntax::rules;

/// An escape that cannot be read as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// Byte offset of the backslash in the decoded text.
    pub(super) at: usize,
    /// Length in bytes.
    pub(super) len: usize,
    pub(super) rule: &'static Rule,
    pub(super) message: String,
}

/// The meaning of one escape.
enum Escape {
    /// A character code, up to 0x3FFF7F: Emacs has more characters than Unicode.
    Code(u32),
    /// Nothing: an escaped newline or space.
    Nothing,
    /// A raw byte, which is not a character.
    RawByte(u32),
    /// Not a valid escape, with the message.
    Invalid(String),
}

const META: u32 = 1 << 27;
const CONTROL: u32 = 1 << 26;
const SHIFT: u32 = 1 << 25;
const HYPER: u32 = 1 << 24;
const SUPER: u32 = 1 << 23;
const ALT: u32 = 1 << 22;

/// Decodes a string literal; `raw` is its text without the quotes. Escapes that cannot be read are left out or
/// replaced, and reported in `problems`. Line ends in the result are LF.
pub(super) fn decode_string<'t>(raw: &'t str, problems: &mut Vec<Problem>) -> Cow<'t, str> {
    let find = |at: usize| {
        let tail = raw.as_bytes().get(at..).unwrap_or_default();
        memchr::memchr2(b'\\', b'\r', tail).map(|found| at + found)
    };
    let Some(first) = find(0) else { return Cow::Borrowed(raw) };
    let mut text = String::with_capacity(raw.len());
    let mut at = 0;
    let mut next = Some(first);
    while let Some(special) = next {
        text.push_str(raw.get(at..special).unwrap_or(""));
        let rest = raw.get(special + 1..).unwrap_or("");
        if raw.as_bytes().get(special) == Some(&b'\r') {
            // Emacs turns CRLF into LF when it opens a file.
            if !rest.starts_with('\n') {
                text.push('\r');
            }
            at = special + 1;
        } else {
            let (escape, len) = read_string_escape(rest);
            if let Some((rule, message)) = push_escape(&mut text, escape) {
                problems.push(Problem { at: special, len: len + 1, rule, message });
            }
            at = special + 1 + len;
        }
        next = find(at);
    }
    text.push_str(raw.get(at..).unwrap_or(""));
    Cow::Owned(text)
}

/// Appends the meaning of an escape, or returns what is wrong with it.
fn push_escape(text: &mut String, escape: Escape) -> Option<(&'static Rule, String)> {
    match escape {
        Escape::Nothing => None,
        Escape::Code(code) => match char::from_u32(code) {
            Some(character) => {
                text.push(character);
                None
            }
            None => Some((
                &rules::not_json::NOT_JSON,
                format!("the character {code:#x} is not in Unicode and has no JSON form"),
            )),
        },
        Escape::RawByte(byte) => {
            text.extend(char::from_u32(byte));
            Some((&rules::raw_byte::RAW_BYTE, rules::raw_byte::message(byte)))
        }
        Escape::Invalid(message) => Some((&rules::bad_escape::BAD_ESCAPE, message)),
    }
}

/// Decodes a character literal; `raw` starts after the question mark. Returns its code and its length in bytes.
pub(super) fn decode_character(raw: &str) -> (Result<u32, String>, usize) {
    match raw.chars().next() {
        None => (Err(String::from("missing character after `?`")), 0),
        Some('\\') => {
            let (escape, len) = read_escape(raw.get(1..).unwrap_or(""), false);
            let code = match escape {
                Escape::Code(code) | Escape::RawByte(code) => Ok(code),
                Escape::Nothing => Err(String::from("an escaped newline is not a character")),
                Escape::Invalid(message) => Err(message),
            };
            (code, len + 1)
        }
        Some(character) => (Ok(u32::from(character)), character.len_utf8()),
    }
}

/// Reads one escape of a string; `rest` starts after the backslash. Returns its meaning and its length.
fn read_string_escape(rest: &str) -> (Escape, usize) {
    match rest.as_bytes() {
        // In a string, `\s` is a space, whatever follows it.
        [b's', ..] => (Escape::Code(0x20), 1),
        [b' ' | b'\n', ..] => (Escape::Nothing, 1),
        [b'\r', b'\n', ..] => (Escape::Nothing, 2),
        _ => read_escape(rest, true),
    }
}

/// Reads one escape; `rest` starts after the backslash. Returns its meaning and its length.
fn read_escape(rest: &str, in_string: bool) -> (Escape, usize) {
    let mut modifiers = 0;
    let mut at = 0;
    // Modifier prefixes can be stacked, each with its own backslash: `?\C-\M-x`.
    loop {
        let tail = rest.get(at..).unwrap_or("");
        let (bit, len) = match tail.as_bytes() {
            [b'^', ..] => (CONTROL, 1),
            [b'C', b'-', ..] => (CONTROL, 2),
            [b'M', b'-', ..] => (META, 2),
            [b'S', b'-', ..] => (SHIFT, 2),
            [b'H', b'-', ..] => (HYPER, 2),
            [b'A', b'-', ..] => (ALT, 2),
            [b's', b'-', ..] => (SUPER, 2),
            [letter @ (b'C' | b'M' | b'S' | b'H' | b'A'), ..] => {
                let letter = char::from(*letter);
                return (
                    Escape::Invalid(format!(
                        "`\\{letter}` is a modifier and needs a dash, as in `\\{letter}-x`"
                    )),
                    at + 1,
                );
            }
            _ => {
                let (escape, len) = read_plain_escape(tail);
                let escape = match escape {
                    Escape::Code(code) if modifiers != 0 => modified(code, modifiers, in_string),
                    other => other,
                };
                return (escape, at + len);
            }
        };
        modifiers |= bit;
        at += len;
        match rest.get(at..).unwrap_or("").chars().next() {
            None => return (Escape::Invalid(String::from("missing character after the modifier")), at),
            Some('\\') => at += 1,
            Some(character) => {
                return (modified(u32::from(character), modifiers, in_string), at + character.len_utf8());
            }
        }
    }
}

fn modified(mut code: u32, mut modifiers: u32, in_string: bool) -> Escape {
    if modifiers & CONTROL != 0 {
        let plain = char::from_u32(code).filter(char::is_ascii).map(|c| c.to_ascii_uppercase() as u32);
        match plain {
            Some(0x3F) => (code, modifiers) = (0x7F, modifiers & !CONTROL),
            Some(upper @ 0x40..=0x5F) => (code, modifiers) = (upper & 0x1F, modifiers & !CONTROL),
            // `"\C- "` is NUL; `?\C- ` is a space with a modifier.
            Some(0x20) if in_string => (code, modifiers) = (0, modifiers & !CONTROL),
            _ => {}
        }
    }
    if !in_string {
        return Escape::Code(code | modifiers);
    }
    if modifiers & SHIFT != 0
        && let Some(letter) = char::from_u32(code).filter(char::is_ascii_alphabetic)
    {
        (code, modifiers) = (u32::from(letter.to_ascii_uppercase()), modifiers & !SHIFT);
    }
    match modifiers {
        0 => Escape::Code(code),
        META if code < 0x80 => Escape::RawByte(code | 0x80),
        _ => Escape::Invalid(String::from("a string cannot contain a character with this modifier")),
    }
}

fn read_plain_escape(rest: &str) -> (Escape, usize) {
    let Some(first) = rest.chars().next() else {
        return (Escape::Invalid(String::from("missing character after the backslash")), 0);
    };
    let code = |code: u32| (Escape::Code(code), 1);
    match first {
        'a' => code(7),
        'b' => code(8),
        't' => code(9),
        'n' => code(10),
        'v' => code(11),
        'f' => code(12),
        'r' => code(13),
        'e' => code(27),
        's' => code(32),
        'd' => code(127),
        '\n' => (Escape::Invalid(String::from("an escaped newline is not a character")), 1),
        'x' => read_hex(rest),
        'u' => read_fixed(rest, 4),
        'U' => read_fixed(rest, 8),
        'N' => read_named(rest),
        '0'..='7' => {
            let digits = rest.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
            let value = u32::from_str_radix(rest.get(..digits).unwrap_or("0"), 8).unwrap_or(0);
            let is_byte = (0x80..=0xFF).contains(&value);
            (if is_byte { Escape::RawByte(value) } else { Escape::Code(value) }, digits)
        }
        other => (Escape::Code(u32::from(other)), other.len_utf8()),
    }
}

/// Reads `\xH…` with any number of digits. Two digits from 80 up are a raw byte, more digits are a character.
fn read_hex(rest: &str) -> (Escape, usize) {
    let digits = rest.get(1..).unwrap_or("");
    let digits = digits.get(..digits.bytes().take_while(u8::is_ascii_hexdigit).count()).unwrap_or("");
    let len = 1 + digits.len();
    if digits.is_empty() {
        return (Escape::Invalid(String::from("`\\x` needs hexadecimal digits")), len);
    }
    let significant = digits.trim_start_matches('0');
    let value = if significant.len() > 6 { u32::MAX } else { u32::from_str_radix(digits, 16).unwrap_or(0) };
    let escape = match value {
        0x80..=0xFF if digits.len() < 3 => Escape::RawByte(value),
        0..=0x3F_FF7F => Escape::Code(value),
        0x3F_FF80..=0x3F_FFFF => Escape::RawByte(value - 0x3F_FF00),
        _ => Escape::Invalid(format!("`\\x{digits}` is out of range for an Emacs character")),
    };
    (escape, len)
}

/// Reads `\uXXXX` and `\U00XXXXXX`.
fn read_fixed(rest: &str, wanted: usize) -> (Escape, usize) {
    let have = rest.bytes().skip(1).take(wanted).take_while(u8::is_ascii_hexdigit).count();
    let name = if wanted == 4 { 'u' } else { 'U' };
    if have < wanted {
        return (Escape::Invalid(format!("`\\{name}` needs {wanted} hexadecimal digits")), 1 + have);
    }
    let value = rest.get(1..=wanted).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match value.filter(|value| *value <= 0x10_FFFF) {
        Some(value) => (Escape::Code(value), 1 + wanted),
        None => (Escape::Invalid(format!("`\\{name}` is not a Unicode character")), 1 + wanted),
    }
}

/// Longest character name in braces, in bytes, as in Emacs (`UNICODE_CHARACTER_NAME_LENGTH_BOUND` in `lread.c` of
/// Emacs 30 is 200 with the terminator; a run of whitespace counts once). The longest name in Unicode has 83.
const MAX_NAME: usize = 199;

/// Reads `\N{SNOWMAN}` and `\N{U+2603}`. As in Emacs, a name may span lines. It ends at any character that no name
/// contains, so that an unclosed brace does not swallow the text after it.
fn read_named(rest: &str) -> (Escape, usize) {
    let tail = rest.strip_prefix("N{").unwrap_or("");
    let bytes = tail.as_bytes();
    let length = bytes.iter().take(MAX_NAME).take_while(|byte| !b"}{()[]\";\\".contains(byte)).count();
    let Some(name) = tail.get(..length).filter(|_| bytes.get(length) == Some(&b'}')) else {
        // The start of the name belongs to the mistake.
        let word =
            bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-".contains(byte)).count();
        let taken = if rest.starts_with("N{") { 2 + word } else { 1 };
        return (Escape::Invalid(String::from("`\\N` needs a character name in braces")), taken);
    };
    let len = name.len() + 3;
    let found = match name.strip_prefix("U+") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().and_then(char::from_u32),
        None => named_character(name),
    };
    match found {
        Some(character) => (Escape::Code(u32::from(character)), len),
        None => (Escape::Invalid(format!("`\\N{{{name}}}` is not a Unicode character")), len),
    }
}

/// Looks up a name. Case and the amount of whitespace between words do not matter; surrounding whitespace is invalid.
fn named_character(name: &str) -> Option<char> {
    // `unicode_names2` subtracts from the index of a dash, which fails at index 0.
    if name.trim() != name || name.starts_with('-') {
        return None;
    }
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
    // Emacs uses a shorter name for ideographs than Unicode.
    match name.strip_prefix("CJK IDEOGRAPH-") {
        Some(_) => unicode_names2::character(&name.replacen("CJK IDEOGRAPH", "CJK UNIFIED IDEOGRAPH", 1)),
        None => unicode_names2::character(&name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(raw: &str) -> (String, usize) {
        let mut problems = Vec::new();
        (decode_string(raw, &mut problems).into_owned(), problems.len())
    }

    #[test]
    fn strings() {
        for (raw, text) in [
            ("plain", "plain"),
            (r#"a\"b\\c"#, "a\"b\\c"),
            (r"\t\n\e\d\s\a", "\t\n\u{1b}\u{7f} \u{7}"),
            (r"\x41\ 1\x41g", "A1Ag"),
            (r"\u00e9\U0001F600", "é😀"),
            (r"\N{SNOWMAN}\N{U+2603}\N{LATIN SMALL LETTER A}", "☃☃a"),
            (r"\101\^C\C-c\^?", "A\u{3}\u{3}\u{7f}"),
            ("join\\\ned\\ up", "joinedup"),
            ("crlf\\\r\nx", "crlfx"),
            (r"\q\é", "qé"),
            (r"\s-", " -"),
            (r"\C- \^ \C-\ ", "\0\0\0"),
            (r"\S-a\S-B\S-\x63", "ABC"),
            (r"\x0e9\x00e9", "éé"),
            (r"\N{CJK IDEOGRAPH-4E00}\N{grinning  face}", "一😀"),
            ("\\N{LATIN SMALL\n LETTER A}", "a"),
            ("a\r\nb\rc\r\n", "a\nb\rc\n"),
        ] {
            assert_eq!(decoded(raw), (text.to_owned(), 0), "{raw}");
        }
        for (raw, text) in [
            (r"a\u12", "a"),
            (r"\N{NO SUCH}", ""),
            (r"\xe9", "é"),
            (r"x\", "x"),
            (r"\x110000", ""),
            (r"\x400000", ""),
            (r"\ud800", ""),
            (r"\Ma", "a"),
            (r"\C", ""),
            (r"\H-a", ""),
            (r"\S-1", ""),
            (r"\N{ SNOWMAN }", ""),
            (r"\N{-}", ""),
            (r"\N{-SNOWMAN}", ""),
            (r"\N{}", ""),
            (r"\N{SNOWMAN", ""),
            (r"\N{SNOWMAN (and more)}", " (and more)}"),
            (r"\N SNOWMAN", " SNOWMAN"),
            (r"\x3fff80", "\u{80}"),
            (r"\M-a", "á"),
        ] {
            assert_eq!(decoded(raw), (text.to_owned(), 1), "{raw}");
        }
    }

    #[test]
    fn characters() {
        for (raw, code, len) in [
            ("a)", 97, 1),
            (r"\()", 40, 2),
            (r"\C-x ", 24, 4),
            (r"\^I", 9, 3),
            (r"\M-x", META | 0x78, 4),
            (r"\C-\M-x", META | 0x18, 7),
            (r"\s-a", SUPER | 0x61, 4),
            (r"\s ", 32, 2),
            ("é", 233, 2),
            (r"\N{SNOWMAN}", 0x2603, 11),
        ] {
            assert_eq!(decode_character(raw), (Ok(code), len), "{raw}");
        }
        for raw in ["", "\\\n", r"\M", r"\Ca", r"\x", r"\x400000", r"\C-"] {
            assert!(decode_character(raw).0.is_err(), "{raw}");
        }
        // An unclosed name does not swallow the next form.
        let long = format!("\\N{{SNOW {}}}", "MAN ".repeat(60));
        for (raw, len) in [(r"\N", 2), (r"\N{SNOWMAN)))\n(a {x})", 10), (r"\N{\n(a)}", 3), (&long, 7)] {
            let (code, found) = decode_character(raw);
            assert_eq!((code.is_err(), found), (true, len), "{raw}");
        }
    }
}
