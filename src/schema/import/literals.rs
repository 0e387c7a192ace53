//! Numbers and strings of JSON text, for its [`Reader`].
//!
//! A number is what it says: an integer where 64 bits hold it, else the nearest float, which is told.

use serde::de::IgnoredAny;
use serde_json::Number;

use super::read::{Mistake, Reader};
use crate::diagnostic::Diagnostic;
use crate::spec::JsonKind;
use crate::spec::rules::INEXACT_NUMBER;
use crate::text::{Location, Span};

impl Reader<'_> {
    pub(super) fn read_number(&mut self) -> Result<JsonKind, Mistake> {
        let start = self.at;
        let is_part = |byte: Option<u8>| {
            matches!(byte, Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' | b'a'..=b'z' | b'A'..=b'Z'))
        };
        while is_part(self.peek()) {
            self.at += 1;
        }
        let span = Span::new(start, self.at);
        let digits = span.of(self.text);
        // Digits are checked by serde and read by the standard library, which reads every float exactly.
        let Ok(value) = digits
            .parse::<f64>()
            .map_err(|_| ())
            .and_then(|value| serde_json::from_str::<IgnoredAny>(digits).map(|_| value).map_err(|_| ()))
        else {
            let shown: String = digits.chars().take(40).collect();
            return Err(Mistake { span, message: format!("`{shown}` is no number as JSON writes them") });
        };
        // `-0` is a float for serde, too: no integer has that sign.
        let is_integer = !digits.contains(['.', 'e', 'E']) && digits != "-0";
        let exact =
            digits.parse::<i64>().map(Number::from).or_else(|_| digits.parse::<u64>().map(Number::from));
        if let Some(exact) = exact.ok().filter(|_| is_integer) {
            return Ok(JsonKind::Number(exact));
        }
        let Some(number) = Number::from_f64(value) else {
            let message = String::from("a number beyond every float, which no API carries");
            return Err(Mistake { span, message });
        };
        if is_integer {
            let message = format!("an integer beyond 64 bits; imported as the nearest float {value:e}");
            let location = Location { source: self.source, span };
            self.findings.push(Diagnostic::new(&INEXACT_NUMBER, location, message));
        }
        Ok(JsonKind::Number(number))
    }

    pub(super) fn read_string(&mut self) -> Result<String, Mistake> {
        let opener = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(plain) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                let message = String::from("a string is never closed");
                return Err(Mistake { span: Span::new(opener, opener + 1), message });
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
                    let message = String::from(
                        "a line end or control character inside a string is written as an escape",
                    );
                    return Err(Mistake { span: Span::new(self.at, self.at + 1), message });
                }
            }
        }
    }

    fn read_escape(&mut self) -> Result<char, Mistake> {
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
                let message = format!("`{}` is no escape of JSON", span.of(self.text));
                return Err(Mistake { span, message });
            }
        })
    }

    /// Four digits, or twice four for a character beyond them.
    fn read_unicode_escape(&mut self, start: usize) -> Result<char, Mistake> {
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
            Mistake { span, message: format!("`{}` is no character", span.of(self.text)) }
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
