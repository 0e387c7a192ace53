//! Reads arguments between braces: in Gemma's notation, `key:value` with strings between `<escape>` or `<|"|>`, and as
//! options, `--key value`.
//!
//! [`BracesScan`] finds the end of the arguments, character by character.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::grammar::advance;
use super::python::read_literal;

/// Maximum nesting depth of arguments.
const MAX_DEPTH: usize = 64;

const STRING_MARKS: [&str; 2] = ["<escape>", "<|\"|>"];

/// A streaming scan of a text in braces, after its `{`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BracesScan {
    /// The number of open braces.
    depth: usize,
    /// Characters read of each string mark.
    matched: [usize; 2],
    string: Option<Quote>,
}

/// An open string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Quote {
    /// Between string marks with this number.
    Marks(usize),
    /// As in JSON. `true` after a backslash.
    Json(bool),
}

impl BracesScan {
    pub(super) fn new() -> Self {
        Self { depth: 1, matched: [0; 2], string: None }
    }

    /// Reads one character. Returns whether it closes the braces.
    pub(super) fn push(&mut self, ch: char) -> bool {
        for (index, mark) in STRING_MARKS.iter().enumerate() {
            let Some(matched) = self.matched.get_mut(index) else { continue };
            *matched = advance(mark, *matched, ch);
            if mark.chars().nth(*matched).is_none() {
                self.string = match self.string {
                    None => Some(Quote::Marks(index)),
                    Some(Quote::Marks(open)) if open == index => None,
                    open => open,
                };
                return false;
            }
        }
        match (self.string, ch) {
            (Some(Quote::Json(false)), '"') => self.string = None,
            (Some(Quote::Json(escaped)), _) => self.string = Some(Quote::Json(!escaped && ch == '\\')),
            (Some(Quote::Marks(_)), _) => {}
            (None, '"') if self.matched == [0; 2] => self.string = Some(Quote::Json(false)),
            (None, '{') => self.depth += 1,
            (None, '}') => self.depth = self.depth.saturating_sub(1),
            (None, _) => {}
        }
        self.depth == 0
    }
}

/// Parses options between the braces: `--key "value" --other 1`.
pub(super) fn read_options(text: &str) -> Result<Map<String, Value>, String> {
    let mut reader = Reader { rest: text };
    let mut members = Map::new();
    loop {
        reader.blanks();
        if reader.rest.is_empty() {
            return Ok(members);
        }
        if !reader.take("--") {
            return Err(reader.unexpected("an option"));
        }
        let key = reader.bare(char::is_whitespace).to_owned();
        reader.blanks();
        let mut values = serde_json::Deserializer::from_str(reader.rest).into_iter::<Value>();
        let value = match values.next() {
            Some(Ok(value)) => {
                let end = values.byte_offset();
                reader.rest = reader.rest.get(end..).unwrap_or_default();
                value
            }
            Some(Err(_)) | None => return Err(reader.unexpected(&format!("the value of `--{key}`"))),
        };
        add(&mut members, key, value)?;
    }
}

fn add(members: &mut Map<String, Value>, key: String, value: Value) -> Result<(), String> {
    if members.contains_key(&key) {
        return Err(format!("duplicate argument `{key}`"));
    }
    members.insert(key, value);
    Ok(())
}

/// Parses the arguments between the braces. A word that is not a value of JSON or Python is a string.
pub(super) fn read_braces(text: &str) -> Result<Map<String, Value>, String> {
    let mut reader = Reader { rest: text };
    let members = reader.members(0)?;
    if reader.rest.is_empty() { Ok(members) } else { Err(reader.unexpected("the end of the arguments")) }
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    /// Reads members up to a closing brace or the end.
    fn members(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        let mut members = Map::new();
        loop {
            self.blanks();
            if self.rest.is_empty() || self.rest.starts_with('}') {
                return Ok(members);
            }
            let key = match self.string()? {
                Some(key) => key,
                None => self.bare(|ch| ch == ':').to_owned(),
            };
            self.blanks();
            if key.is_empty() || !self.take(":") {
                return Err(self.unexpected("a key and `:`"));
            }
            let value = self.value(depth)?;
            add(&mut members, key, value)?;
            self.blanks();
            if !(self.take(",") || self.rest.is_empty() || self.rest.starts_with('}')) {
                return Err(self.unexpected("`,`"));
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth >= MAX_DEPTH {
            return Err(String::from("nested too deeply"));
        }
        self.blanks();
        if let Some(text) = self.string()? {
            return Ok(Value::String(text));
        }
        if self.take("{") {
            let members = self.members(depth + 1)?;
            return if self.take("}") { Ok(Value::Object(members)) } else { Err(self.unexpected("`}`")) };
        }
        if self.take("[") {
            let mut items = Vec::new();
            loop {
                self.blanks();
                if self.take("]") {
                    return Ok(Value::Array(items));
                }
                items.push(self.value(depth + 1)?);
                self.blanks();
                if !self.take(",") && !self.rest.starts_with(']') {
                    return Err(self.unexpected("`,` or `]`"));
                }
            }
        }
        let word = self.bare(|ch| matches!(ch, ',' | '}' | ']')).trim_end();
        match word {
            "" => Err(self.unexpected("a value")),
            "None" => Ok(Value::Null),
            "True" => Ok(Value::Bool(true)),
            "False" => Ok(Value::Bool(false)),
            word => Ok(serde_json::from_str(word).unwrap_or_else(|_| Value::from(word))),
        }
    }

    /// Reads a string, if there is one.
    fn string(&mut self) -> Result<Option<String>, String> {
        for mark in STRING_MARKS {
            if self.take(mark) {
                let (text, rest) = self.rest.split_once(mark).ok_or("unclosed string")?;
                self.rest = rest;
                return Ok(Some(text.to_owned()));
            }
        }
        if self.rest.starts_with('\'') {
            let mut after_backslash = false;
            let is_end = |(at, ch): &(usize, char)| {
                let ends = *at > 0 && *ch == '\'' && !after_backslash;
                after_backslash = *ch == '\\' && !after_backslash;
                ends
            };
            let (end, _) = self.rest.char_indices().find(is_end).ok_or("unclosed string")?;
            let (literal, rest) = self.rest.split_at(end + 1);
            self.rest = rest;
            return Ok(read_literal(literal)?.as_str().map(str::to_owned));
        }
        if !self.rest.starts_with('"') {
            return Ok(None);
        }
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        let text = values.next().and_then(Result::ok).ok_or("unclosed string")?;
        self.rest = self.rest.get(values.byte_offset()..).unwrap_or_default();
        Ok(Some(text))
    }

    fn bare(&mut self, ends: impl Fn(char) -> bool) -> &'t str {
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        word.trim_end()
    }

    fn take(&mut self, mark: &str) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self, expected: &str) -> String {
        match self.rest.chars().next() {
            Some(ch) => format!("expected {expected}, found `{}`", ch.escape_debug()),
            None => format!("expected {expected}, found the end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_between_braces_are_parsed() {
        for (text, value) in [
            ("", json!({})),
            ("a:<escape>x, }y<escape>,b:-1.5", json!({"a": "x, }y", "b": -1.5})),
            ("a:{b:[<|\"|>x<|\"|>,true,null],c:{}}", json!({"a": {"b": ["x", true, null], "c": {}}})),
            ("<|\"|>a<|\"|>: \"q\\\"\" ,", json!({"a": "q\""})),
            ("a:None,b:Rome", json!({"a": null, "b": "Rome"})),
            ("a:'x: \\'y\\' \\\\s',b:L'Aquila", json!({"a": "x: 'y' \\s", "b": "L'Aquila"})),
        ] {
            assert_eq!(read_braces(text).map(Value::Object), Ok(value), "{text}");
        }
        for text in
            ["a", "a:", "a:<escape>x", "a:[1", "a:{b:1", ":1", "}", "a:1}", "a:1,a:2", "b:{a:1,a:2}", "a:'x"]
        {
            assert!(read_braces(text).is_err(), "{text}");
        }
        assert!(read_braces(&format!("a:{}", "[".repeat(10_000))).is_err());
        for (depth, is_read) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
            let lists = format!("a:{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(read_braces(&lists).is_ok(), is_read, "{depth}");
        }
    }

    #[test]
    fn options_are_parsed() {
        let options = read_options(" --command \"ls -la\"\n --n 2 ").map(Value::Object);
        assert_eq!(options, Ok(json!({"command": "ls -la", "n": 2})));
        for text in ["a", "--a", "--a b", "--a 1 b", "--a 1 --a 2"] {
            assert!(read_options(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_end_of_braces_is_found() {
        for (text, end) in [
            ("} x", Some(0)),
            ("a:{b:1}} x", Some(7)),
            ("a:<|\"|>}<|\"|>,b:\"}\\\"}\"}", Some(22)),
            ("a:<escape>} <|\"|><escape>}", Some(25)),
            ("a:<|\"|>}", None),
        ] {
            let mut scan = BracesScan::new();
            assert_eq!(text.chars().position(|ch| scan.push(ch)), end, "{text}");
        }
    }
}
