//! Reads arguments in Gemma's notation: `key:value` between braces, with strings between `<escape>` or `<|"|>`.

use serde_json::{Map, Value};

/// Maximum nesting depth of arguments.
const MAX_DEPTH: usize = 64;

const STRING_MARKS: [&str; 2] = ["<escape>", "<|\"|>"];

/// Parses the arguments between the braces.
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
            members.insert(key, self.value(depth)?);
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
        serde_json::from_str(word).map_err(|_| format!("expected a value, found `{word}`"))
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
        ] {
            assert_eq!(read_braces(text).map(Value::Object), Ok(value), "{text}");
        }
        for text in ["a", "a:", "a:x", "a:<escape>x", "a:[1", "a:{b:1", ":1", "a:1 2", "}", "a:1}"] {
            assert!(read_braces(text).is_err(), "{text}");
        }
        assert!(read_braces(&format!("a:{}", "[".repeat(10_000))).is_err());
    }
}
