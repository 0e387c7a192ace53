//! Numbers and strings of JSON text, for the [`Reader`].
//!
//! An integer that does not fit in 64 bits becomes the nearest float, which is reported.

use serde::de::IgnoredAny;
use serde_json::Number;

use super::read::{Reader, SyntaxError};
use crate::diagnostic::Diagnostic;
use crate::spec::JsonKind;
use crate::spec::rules::inexact_number::INEXACT_NUMBER;
use crate::text::{Location, Span};

impl Reader<'_> {
    pub(super) fn read_number(&mut self) -> Result<JsonKind, SyntaxError> {
        let start = self.at;
        let is_part = |byte: Option<u8>| {
            matches!(byte, Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' | b'a'..=b'z' | b'A'..=b'Z'))
        };
        while is_part(self.peek()) {
            self.at += 1;
        }
        let span = Span::new(start, self.at);
        let digits = span.of(self.text);
        // serde checks the syntax; the standard library parses every float exactly.
        let Ok(value) = digits
            .parse::<f64>()
            .map_err(|_| ())
            .and_then(|value| serde_json::from_str::<IgnoredAny>(digits).map(|_| value).map_err(|_| ()))
        else {
            let shown: String = digits.chars().take(40).collect();
            return Err(SyntaxError { span, message: format!("invalid JSON number `{shown}`") });
        };
        // `-0` is a float in serde too, because integers have no negative zero.
        let is_integer = !digits.contains(['.', 'e', 'E']) && digits != "-0";
        let exact =
            digits.parse::<i64>().map(Number::from).or_else(|_| digits.parse::<u64>().map(Number::from));
        if let Some(exact) = exact.ok().filter(|_| is_integer) {
            return Ok(JsonKind::Number(exact));
        }
        let Some(number) = Number::from_f64(value) else {
            let message = String::from("number exceeds the range of a float");
            return Err(SyntaxError { span, message });
        };
        if is_integer {
            let message = format!("integer exceeds 64 bits; imported as the nearest float `{value:e}`");
            let location = Location { source: self.source, span };
            self.findings.push(Diagnostic::new(&INEXACT_NUMBER, location, message));
        }
        Ok(JsonKind::Number(number))
    }

    pub(super) fn read_string(&mut self) -> Result<String, SyntaxError> {
        let opener = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(plain) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                let message = String::from("unclosed string");
                return Err(SyntaxError { span: Span::new(opener, opener + 1), message });
            };
            text.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.read_escape()?),
                _ => {
                    let message = String::from("unescaped control character in a string");
                    return Err(SyntaxError { span: Span::new(self.at, self.at + 1), message });
                }
            }
        }
    }

    fn read_escape(&mut self) -> Result<char, SyntaxError> {
        let start = self.at;
        let letter = self.text.get(start + 1..).and_then(|rest| rest.chars().next());
        self.at += 1 + letter.map_or(0, char::len_utf8);
        Ok(match letter {
            Some(character @ ('"' | '\\' | '/')) => character,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.read_unicode_escape(start),
            Some(_) | None => {
                let span = Span::new(start, self.at);
                let message = format!("unknown escape `{}`", span.of(self.text));
                return Err(SyntaxError { span, message });
            }
        })
    }

    /// Reads four hex digits, or a surrogate pair.
    fn read_unicode_escape(&mut self, start: usize) -> Result<char, SyntaxError> {
        let first = self.read_digits();
        let code = match first {
            Some(high @ 0xD800..=0xDBFF)
                if self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) =>
            {
                self.at += 2;
                self.read_digits()
                    .filter(|low| (0xDC00..=0xDFFF).contains(low))
                    .map(|low| 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
            }
            code => code,
        };
        code.and_then(char::from_u32).ok_or_else(|| {
            let span = Span::new(start, self.at);
            SyntaxError { span, message: format!("invalid character `{}`", span.of(self.text)) }
        })
    }

    fn read_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}
