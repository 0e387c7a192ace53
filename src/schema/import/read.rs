//! JSON text → values with places.
//!
//! Takes one value after the other, as JSON lines are, and stops at the first thing that is no JSON: what follows it
//! would be a guess. Of a member that is given twice the last counts, as it does for every API. Nesting is bounded.
//!
//! Source: RFC 8259.

use std::collections::HashMap;

use crate::diagnostic::Diagnostic;
use crate::schema::rules;
use crate::spec::{Json, JsonKind, Member};
use crate::text::{Location, SourceId, Span};

/// Deeper than any tool is, and what a spec may be nested.
const MAX_DEPTH: usize = 120;

/// The values that `text`, the whole of `source`, holds, up to the first mistake.
pub(super) fn read_json(source: SourceId, text: &str) -> (Vec<Json>, Vec<Diagnostic>) {
    let mut reader = Reader { source, text, at: 0, findings: Vec::new() };
    let mut values = Vec::new();
    reader.skip_blanks();
    while reader.at < text.len() || values.is_empty() {
        match reader.read_value(0) {
            Ok(value) => values.push(value),
            Err(mistake) => {
                let location = Location { source, span: mistake.span };
                reader.findings.push(rules::invalid_json::finding(location, mistake.message));
                break;
            }
        }
        reader.skip_blanks();
    }
    (values, reader.findings)
}

/// Why the text is no JSON.
pub(super) struct Mistake {
    pub(super) span: Span,
    pub(super) message: String,
}

/// Reads one text.
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

    /// A mistake at the character that is next.
    fn expected(&self, what: &str) -> Mistake {
        let next = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let (found, len) = match next {
            Some(character) => (format!("found `{character}`"), character.len_utf8()),
            None => (String::from("the text ends here"), 0),
        };
        Mistake { span: Span::new(self.at, self.at + len), message: format!("expected {what}, {found}") }
    }

    fn read_value(&mut self, depth: usize) -> Result<Json, Mistake> {
        let start = self.at;
        if depth > MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels, which no tool is");
            return Err(Mistake { span: Span::new(start, start + 1), message });
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

    fn read_word(&mut self) -> Result<JsonKind, Mistake> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let word: &str = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let kind = match word {
            "null" => JsonKind::Null,
            "true" => JsonKind::Bool(true),
            "false" => JsonKind::Bool(false),
            _ => {
                let mut mistake = self.expected("a value");
                let hint = match word {
                    "True" => "; JSON writes `true`",
                    "False" => "; JSON writes `false`",
                    "None" | "undefined" => "; JSON writes `null`",
                    "" if rest.starts_with('\'') => "; strings take double quotes",
                    "" if rest.starts_with("//") || rest.starts_with("/*") => "; JSON has no comments",
                    "" if rest.starts_with([']', '}']) => "; after the last one stands no comma",
                    _ => "",
                };
                mistake.message.push_str(hint);
                return Err(mistake);
            }
        };
        self.at += word.len();
        Ok(kind)
    }

    fn read_array(&mut self, depth: usize) -> Result<JsonKind, Mistake> {
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

    fn read_object(&mut self, depth: usize) -> Result<JsonKind, Mistake> {
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
                let mut mistake = self.expected("a key in double quotes");
                if self.peek() == Some(b'}') {
                    mistake.message.push_str("; after the last member stands no comma");
                }
                return Err(mistake);
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
                    self.findings.push(rules::repeated_member::finding(location, &key, member.key_span));
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

    /// A comma, or the closer: then it was the last.
    fn read_separator(&mut self, opener: usize, closer: u8) -> Result<bool, Mistake> {
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
                let message = format!("`{opening}` is never closed");
                Err(Mistake { span: Span::new(opener, opener + 1), message })
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
    fn values_are_what_serde_reads() {
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
    fn mistakes_are_told_where_they_are() {
        for (text, finding) in [
            ("", "0..0 expected a value, the text ends here"),
            (
                "{\"a\": 1,}",
                "8..9 expected a key in double quotes, found `}`; after the last member stands no comma",
            ),
            ("[1,]", "3..4 expected a value, found `]`; after the last one stands no comma"),
            ("[1 2]", "3..4 expected `,` or `]`, found `2`"),
            ("{\"a\" 1}", "5..6 expected `:` after the key, found `1`"),
            ("{'a': 1}", "1..2 expected a key in double quotes, found `'`"),
            ("[True]", "1..2 expected a value, found `T`; JSON writes `true`"),
            ("[1, // one\n 2]", "4..5 expected a value, found `/`; JSON has no comments"),
            ("{\"a\": [1", "6..7 `[` is never closed"),
            ("\"abc", "0..1 a string is never closed"),
            ("\"a\nb\"", "2..3 a line end or control character inside a string is written as an escape"),
            ("\"\\x\"", "1..3 `\\x` is no escape of JSON"),
            ("\"\\ud800\"", "1..7 `\\ud800` is no character"),
            ("\"\\u12g4\"", "1..3 `\\u` is no character"),
            ("01", "0..2 `01` is no number as JSON writes them"),
            ("1e999", "0..5 a number beyond every float, which no API carries"),
            ("NaN", "0..1 expected a value, found `N`"),
            ("é", "0..2 expected a value, found `é`"),
        ] {
            assert_eq!(read(text).1, [finding], "{text}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(read(&deep).1, ["121..122 nested deeper than 120 levels, which no tool is"]);
    }

    #[test]
    fn doubts_do_not_end_the_reading() {
        let (values, findings) = read(r#"{"a": 1, "b": 2, "a": 18446744073709551616}"#);
        assert_eq!(values, [r#"{"a":1.8446744073709552e+19,"b":2}"#]);
        assert_eq!(
            findings,
            [
                "22..42 an integer beyond 64 bits; imported as the nearest float 1.8446744073709552e19",
                "17..20 `a` is given twice; the last counts",
            ]
        );
    }

    /// Every prefix of a real text is a mistake in one finding.
    #[test]
    fn every_prefix_is_read() {
        let text = r#"{"tools": [{"name": "é\n", "input_schema": {"type": "object", "n": -1.5e-3, "b": [true, null]}}]}"#;
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert_eq!(read(&text[..end]).1.len(), 1, "{}", &text[..end]);
        }
    }
}
