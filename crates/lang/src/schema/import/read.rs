//! Parses JSON text to values with locations.
//!
//! Reads a sequence of values, as in JSON Lines, and stops at the first syntax error. The last of duplicate members is
//! used, as in every API. Nesting is limited.
//!
//! Source: RFC 8259.

use std::collections::HashMap;

use super::messages;
use crate::diagnostic::Diagnostic;
use crate::schema::rules;
use crate::spec::{Json, JsonKind, Member};
use crate::text::{Location, SourceId, Sources, Span};

/// Maximum nesting, as in specs; no real tool is nested more deeply.
const MAX_DEPTH: usize = 120;

/// Parses `text`, the content of `source`, up to the first error.
pub(super) fn read_json(source: SourceId, text: &str) -> (Vec<Json>, Vec<Diagnostic>) {
    let mut reader = Reader { source, text, at: 0, findings: Vec::new() };
    let mut values = Vec::new();
    reader.skip_blanks();
    while reader.at < text.len() || values.is_empty() {
        match reader.read_value(0) {
            Ok(value) => values.push(value),
            Err(error) => {
                let location = Location { source, span: error.span };
                reader.findings.push(rules::invalid_json::finding(location, error.message));
                break;
            }
        }
        reader.skip_blanks();
    }
    (values, reader.findings)
}

/// Returns the first duplicate member of a JSON text.
pub fn repeated_member(text: &str) -> Option<String> {
    let (_, findings) = read_json(Sources::new().id_ahead(0), text);
    // What the reader reports beside invalid JSON.
    let repeated = findings.iter().find(|finding| *finding.rule == rules::import::IMPORT)?;
    let key = repeated.primary.span.of(text);
    Some(serde_json::from_str(key).unwrap_or_else(|_| key.to_owned()))
}

/// A syntax error in JSON text.
pub(super) struct SyntaxError {
    pub(super) span: Span,
    pub(super) message: String,
}

/// The parser state for one text.
pub(super) struct Reader<'t> {
    pub(super) source: SourceId,
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) findings: Vec<Diagnostic>,
}

impl Reader<'_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Returns an error at the next character.
    fn expected(&self, what: &str) -> SyntaxError {
        let next = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let (found, len) = match next {
            Some(character) => (format!("found `{character}`"), character.len_utf8()),
            None => (String::from("found end of input"), 0),
        };
        SyntaxError { span: Span::new(self.at, self.at + len), message: format!("expected {what}, {found}") }
    }

    fn read_value(&mut self, depth: usize) -> Result<Json, SyntaxError> {
        let start = self.at;
        if depth > MAX_DEPTH {
            let message = format!("nesting exceeds {MAX_DEPTH} levels");
            return Err(SyntaxError { span: Span::new(start, start + 1), message });
        }
        let kind = match self.peek() {
            Some(b'{') => self.read_object(depth)?,
            Some(b'[') => self.read_array(depth)?,
            Some(b'"') => JsonKind::String(self.read_string()?),
            Some(b'-' | b'0'..=b'9') => self.read_number()?,
            _ => self.read_word()?,
        };
        Ok(Json { span: Span::new(start, self.at), kind })
    }

    fn read_word(&mut self) -> Result<JsonKind, SyntaxError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let word: &str = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let kind = match word {
            "null" => JsonKind::Null,
            "true" => JsonKind::Bool(true),
            "false" => JsonKind::Bool(false),
            _ => {
                let mut error = self.expected("a value");
                let hint = match word {
                    "True" => "; use `true` in JSON",
                    "False" => "; use `false` in JSON",
                    "None" | "undefined" => "; use `null` in JSON",
                    "" if rest.starts_with('\'') => "; use double quotes for strings",
                    "" if rest.starts_with("//") || rest.starts_with("/*") => "; JSON has no comments",
                    "" if rest.starts_with([']', '}']) => "; JSON has no trailing commas",
                    _ => "",
                };
                error.message.push_str(hint);
                return Err(error);
            }
        };
        self.at += word.len();
        Ok(kind)
    }

    fn read_array(&mut self, depth: usize) -> Result<JsonKind, SyntaxError> {
        let opener = self.at;
        self.at += 1;
        let mut items = Vec::new();
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(JsonKind::Array(items));
        }
        loop {
            self.skip_blanks();
            items.push(self.read_value(depth + 1)?);
            if self.read_separator(opener, b']')? {
                return Ok(JsonKind::Array(items));
            }
        }
    }

    fn read_object(&mut self, depth: usize) -> Result<JsonKind, SyntaxError> {
        let opener = self.at;
        self.at += 1;
        let mut members: Vec<Member> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(JsonKind::Object(members));
        }
        loop {
            self.skip_blanks();
            let start = self.at;
            if self.peek() != Some(b'"') {
                let mut error = self.expected("a key in double quotes");
                if self.peek() == Some(b'}') {
                    error.message.push_str("; JSON has no trailing commas");
                }
                return Err(error);
            }
            let key = self.read_string()?;
            let key_span = Span::new(start, self.at);
            self.skip_blanks();
            if self.peek() != Some(b':') {
                return Err(self.expected("`:` after the key"));
            }
            self.at += 1;
            self.skip_blanks();
            let value = self.read_value(depth + 1)?;
            match known.get(&key).and_then(|&index| members.get_mut(index)) {
                Some(member) => {
                    let location = Location { source: self.source, span: key_span };
                    self.findings.push(messages::repeated_member(location, &key, member.key_span));
                    *member = Member { key, key_span, value };
                }
                None => {
                    known.insert(key.clone(), members.len());
                    members.push(Member { key, key_span, value });
                }
            }
            if self.read_separator(opener, b'}')? {
                return Ok(JsonKind::Object(members));
            }
        }
    }

    /// Reads a comma, or the closing bracket. Returns true for the closing bracket.
    fn read_separator(&mut self, opener: usize, closer: u8) -> Result<bool, SyntaxError> {
        self.skip_blanks();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == closer => {
                self.at += 1;
                Ok(true)
            }
            None => {
                let opening = if closer == b']' { '[' } else { '{' };
                let message = format!("unclosed `{opening}`");
                Err(SyntaxError { span: Span::new(opener, opener + 1), message })
            }
            Some(_) => Err(self.expected(&format!("`,` or `{}`", char::from(closer)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Sources;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let source = Sources::new().add(crate::text::SourceFile::new("t.json", ""));
        let (values, findings) = read_json(source, text);
        let values = values.iter().map(|value| value.to_value().to_string()).collect();
        let findings = findings.iter().map(|finding| {
            let Span { start, end } = finding.primary.span;
            format!("{start}..{end} {}", finding.message)
        });
        (values, findings.collect())
    }

    #[test]
    fn reads_the_same_values_as_serde() {
        for text in [
            "{}",
            "[]",
            r#"{"a": [1, -2.5e3, 1.0, 18446744073709551615, -0], "b": {"c": null}, "d": [true, false]}"#,
            r#""é\u00e9\ud83d\ude00\n\/\"\\ \u0000""#,
            " \t\r\n 1e2 ",
        ] {
            let expected = serde_json::from_str::<serde_json::Value>(text).unwrap().to_string();
            assert_eq!(read(text), (vec![expected], vec![]), "{text}");
        }
        assert_eq!(read("{}\n{}\n[1]\n").0, ["{}", "{}", "[1]"]);
    }

    #[test]
    fn reports_errors_with_their_location() {
        for (text, finding) in [
            ("", "0..0 expected a value, found end of input"),
            ("{\"a\": 1,}", "8..9 expected a key in double quotes, found `}`; JSON has no trailing commas"),
            ("[1,]", "3..4 expected a value, found `]`; JSON has no trailing commas"),
            ("[1 2]", "3..4 expected `,` or `]`, found `2`"),
            ("{\"a\" 1}", "5..6 expected `:` after the key, found `1`"),
            ("{'a': 1}", "1..2 expected a key in double quotes, found `'`"),
            ("[True]", "1..2 expected a value, found `T`; use `true` in JSON"),
            ("[1, // one\n 2]", "4..5 expected a value, found `/`; JSON has no comments"),
            ("{\"a\": [1", "6..7 unclosed `[`"),
            ("\"abc", "0..1 unclosed string"),
            ("\"a\nb\"", "2..3 unescaped control character in a string"),
            ("\"\\x\"", "1..3 unknown escape `\\x`"),
            ("\"\\ud800\"", "1..7 invalid character `\\ud800`"),
            ("\"\\u12g4\"", "1..3 invalid character `\\u`"),
            ("01", "0..2 invalid JSON number `01`"),
            ("1e999", "0..5 number exceeds the range of a float"),
            ("NaN", "0..1 expected a value, found `N`"),
            ("é", "0..2 expected a value, found `é`"),
        ] {
            assert_eq!(read(text).1, [finding], "{text}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(read(&deep).1, ["121..122 nesting exceeds 120 levels"]);
    }

    #[test]
    fn warnings_do_not_stop_the_parser() {
        let (values, findings) = read(r#"{"a": 1, "b": 2, "a": 18446744073709551616}"#);
        assert_eq!(values, [r#"{"a":1.8446744073709552e+19,"b":2}"#]);
        assert_eq!(
            findings,
            [
                "22..42 integer exceeds 64 bits; imported as the nearest float `1.8446744073709552e19`",
                "17..20 duplicate member `a`; the last value is used",
            ]
        );
    }

    /// Every prefix of a valid text has exactly one finding.
    #[test]
    fn reads_every_prefix() {
        let text = r#"{"tools": [{"name": "é\n", "input_schema": {"type": "object", "n": -1.5e-3, "b": [true, null]}}]}"#;
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert_eq!(read(&text[..end]).1.len(), 1, "{}", &text[..end]);
        }
    }
}
