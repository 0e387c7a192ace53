//! Parses calls in Python syntax: `name(a="x", b=[1, True])`, with literals only. Nothing is evaluated.
//!
//! [`CallScan`] finds the end of a call, character by character. [`read_call`] parses a complete call, [`read_literal`]
//! a single value.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// Maximum nesting depth of a call.
const MAX_DEPTH: usize = 64;

/// The result of one more character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStep {
    /// The call goes on.
    More,
    /// The character closes the call.
    End,
    /// The character is a syntax error.
    Bad,
}

/// A streaming scan of a call, after the first character of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallScan {
    /// The expected closing brackets, the innermost last.
    stack: Vec<char>,
    /// The open string.
    string: Option<Quote>,
    /// Quotation marks just read that may be the first of three.
    run: u8,
    keyword: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Quote {
    mark: char,
    triple: bool,
    escaped: bool,
    /// Closing marks read, of up to three.
    closing: u8,
}

impl CallScan {
    pub(super) fn new() -> Self {
        Self { stack: Vec::new(), string: None, run: 0, keyword: false }
    }

    /// Whether the scan is after the name.
    pub(super) fn is_open(&self) -> bool {
        !self.stack.is_empty()
    }

    /// Whether an argument has a name, which is rare in text that only resembles a call.
    pub(super) fn has_keyword(&self) -> bool {
        self.keyword
    }

    pub(super) fn push(&mut self, ch: char) -> CallStep {
        if let Some(quote) = &mut self.string {
            return if quote.push(ch, &mut self.run) {
                if quote.closing == u8::MAX {
                    self.string = None;
                }
                CallStep::More
            } else if quote.closing == u8::MAX {
                // The character follows an empty string.
                self.string = None;
                self.push(ch)
            } else {
                CallStep::Bad
            };
        }
        if self.stack.is_empty() {
            return match ch {
                '(' => {
                    self.stack.push(')');
                    CallStep::More
                }
                _ if is_name(ch) => CallStep::More,
                _ => CallStep::Bad,
            };
        }
        match ch {
            '"' | '\'' => {
                self.run = 1;
                self.string = Some(Quote { mark: ch, triple: false, escaped: false, closing: 0 });
            }
            '(' | '[' | '{' if self.stack.len() < MAX_DEPTH => {
                self.stack.push(match ch {
                    '(' => ')',
                    '[' => ']',
                    _ => '}',
                });
            }
            ')' | ']' | '}' if self.stack.last() == Some(&ch) => {
                self.stack.pop();
                return if self.stack.is_empty() { CallStep::End } else { CallStep::More };
            }
            '(' | '[' | '{' | ')' | ']' | '}' | '<' | '>' | ';' | '`' => return CallStep::Bad,
            '=' => self.keyword |= self.stack.len() == 1,
            _ => {}
        }
        CallStep::More
    }
}

impl Quote {
    /// Reads one character. Returns `false` if it is not part of the string. `closing` is [`u8::MAX`] after the
    /// string's end.
    fn push(&mut self, ch: char, run: &mut u8) -> bool {
        if *run > 0 {
            // `"` opens a string, `""` may be an empty string, `"""` opens a triple-quoted one.
            if ch == self.mark {
                *run += 1;
                if *run == 3 {
                    self.triple = true;
                    *run = 0;
                }
                return true;
            }
            let empty = *run == 2;
            *run = 0;
            if empty {
                self.closing = u8::MAX;
                return false;
            }
        }
        if self.escaped {
            self.escaped = false;
        } else if ch == self.mark {
            self.closing += 1;
            if !self.triple || self.closing == 3 {
                self.closing = u8::MAX;
            }
            return true;
        } else if ch == '\\' {
            self.escaped = true;
        } else if ch == '\n' && !self.triple {
            return false;
        }
        self.closing = 0;
        true
    }
}

/// A parsed call.
#[derive(Debug, PartialEq)]
pub(super) struct PythonCall<'t> {
    pub(super) name: &'t str,
    pub(super) positional: Vec<Value>,
    pub(super) named: Map<String, Value>,
}

/// Parses `name(…)`.
///
/// # Errors
/// A description of the syntax error.
pub(super) fn read_call(text: &str) -> Result<PythonCall<'_>, String> {
    let (name, _) = text.split_once('(').ok_or("expected `name(…)`")?;
    let mut reader = Reader { text, at: name.len() + 1 };
    let mut call = PythonCall { name: name.trim(), positional: Vec::new(), named: Map::new() };
    loop {
        reader.blanks();
        if reader.take(')') {
            break;
        }
        if let Some(key) = reader.keyword() {
            let value = reader.value(0)?;
            if call.named.insert(key.to_owned(), value).is_some() {
                return Err(format!("duplicate argument `{key}`"));
            }
        } else if call.named.is_empty() {
            call.positional.push(reader.value(0)?);
        } else {
            return Err(String::from("positional argument after a named one"));
        }
        reader.blanks();
        if !reader.take(',') && reader.peek() != Some(')') {
            return Err(reader.unexpected("`,` or `)`"));
        }
    }
    reader.blanks();
    if reader.at == text.len() { Ok(call) } else { Err(reader.unexpected("the end of the text")) }
}

/// Parses one literal in Python syntax: `True`, `'text'`, `[1, None]`.
///
/// # Errors
/// A description of the syntax error.
pub(crate) fn read_literal(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.blanks();
    if reader.at == text.len() { Ok(value) } else { Err(reader.unexpected("the end of the text")) }
}

/// Whether `ch` may be in a dotted name.
pub(super) fn is_name(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '.' | '-')
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let ch = self.peek()?;
        self.at += ch.len_utf8();
        Some(ch)
    }

    fn take(&mut self, ch: char) -> bool {
        let found = self.peek() == Some(ch);
        self.at += if found { ch.len_utf8() } else { 0 };
        found
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn unexpected(&self, expected: &str) -> String {
        match self.peek() {
            Some(ch) => format!("expected {expected}, found `{}`", ch.escape_debug()),
            None => format!("expected {expected}, found the end"),
        }
    }

    /// Reads the name and the `=` of a named argument.
    fn keyword(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        let end = rest.find(|ch: char| !is_name(ch)).filter(|end| *end > 0)?;
        let (key, after) = rest.split_at(end);
        let value = after.trim_start().strip_prefix('=')?;
        self.at = self.text.len() - value.len();
        Some(key)
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth >= MAX_DEPTH {
            return Err(String::from("nested too deeply"));
        }
        self.blanks();
        match self.peek() {
            Some('[') => self.items(']', depth).map(Value::Array),
            Some('(') => self.items(')', depth).map(Value::Array),
            Some('{') => self.members(depth).map(Value::Object),
            Some('"' | '\'') => self.string().map(Value::String),
            Some(ch) if ch.is_ascii_digit() || matches!(ch, '+' | '-' | '.') => self.number(),
            Some(_) => self.word(),
            None => Err(self.unexpected("a value")),
        }
    }

    fn items(&mut self, close: char, depth: usize) -> Result<Vec<Value>, String> {
        self.next();
        let mut items = Vec::new();
        loop {
            self.blanks();
            if self.take(close) {
                return Ok(items);
            }
            items.push(self.value(depth + 1)?);
            self.blanks();
            if !self.take(',') && self.peek() != Some(close) {
                return Err(self.unexpected("`,`"));
            }
        }
    }

    fn members(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        self.next();
        let mut members = Map::new();
        loop {
            self.blanks();
            if self.take('}') {
                return Ok(members);
            }
            let Value::String(key) = self.value(depth + 1)? else {
                return Err(String::from("expected a string as key"));
            };
            self.blanks();
            if !self.take(':') {
                return Err(self.unexpected("`:`"));
            }
            let value = self.value(depth + 1)?;
            members.insert(key, value);
            self.blanks();
            if !self.take(',') && self.peek() != Some('}') {
                return Err(self.unexpected("`,`"));
            }
        }
    }

    /// Reads a string and the adjacent strings that Python joins to it.
    fn string(&mut self) -> Result<String, String> {
        let mut whole = String::new();
        while let Some(mark @ ('"' | '\'')) = self.peek() {
            self.one_string(mark, false, &mut whole)?;
            self.blanks();
        }
        Ok(whole)
    }

    fn one_string(&mut self, mark: char, raw: bool, into: &mut String) -> Result<(), String> {
        let triple: String = [mark; 3].iter().collect();
        let close = if self.rest().starts_with(&triple) { triple } else { mark.to_string() };
        self.at += close.len();
        loop {
            if self.rest().starts_with(&close) {
                self.at += close.len();
                return Ok(());
            }
            match self.next() {
                None => return Err(String::from("unclosed string")),
                Some('\n') if close.len() == 1 => {
                    return Err(String::from("line break in a string"));
                }
                Some('\\') if raw => {
                    into.push('\\');
                    into.extend(self.next());
                }
                Some('\\') => self.escape(into)?,
                Some(ch) => into.push(ch),
            }
        }
    }

    fn escape(&mut self, into: &mut String) -> Result<(), String> {
        let ch = self.next().ok_or("unclosed string")?;
        let digits = match ch {
            '\n' => return Ok(()),
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'a' => '\u{7}',
            'v' => '\u{b}',
            '0' => '\0',
            '\\' | '\'' | '"' | '/' => ch,
            'x' => return self.code(2).and_then(|code| push_code(code, into)),
            'U' => return self.code(8).and_then(|code| push_code(code, into)),
            'u' => {
                let mut code = self.code(4)?;
                // A surrogate pair, as in JSON.
                if (0xd800..0xdc00).contains(&code) && self.rest().starts_with("\\u") {
                    self.at += 2;
                    let low = self.code(4)?;
                    let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400);
                    code = 0x1_0000 + ((code - 0xd800) << 10) + low.ok_or("invalid character escape")?;
                }
                return push_code(code, into);
            }
            // Python keeps the backslash of an unknown escape.
            _ => {
                into.push('\\');
                ch
            }
        };
        into.push(digits);
        Ok(())
    }

    fn code(&mut self, digits: usize) -> Result<u32, String> {
        let code = self.rest().get(..digits).and_then(|text| u32::from_str_radix(text, 16).ok());
        self.at += digits;
        code.ok_or_else(|| String::from("missing digits in a character escape"))
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        let end = rest
            .find(|ch: char| !(ch.is_ascii_alphanumeric() || matches!(ch, '+' | '-' | '.' | '_')))
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        self.at += end;
        read_number(word).ok_or_else(|| format!("invalid number `{word}`"))
    }

    fn word(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        let end = rest.find(|ch: char| !(ch.is_alphanumeric() || ch == '_')).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let value = match word {
            "True" | "true" => Value::Bool(true),
            "False" | "false" => Value::Bool(false),
            "None" | "null" => Value::Null,
            "r" | "R" | "b" | "u"
                if matches!(rest.get(end..).and_then(|it| it.chars().next()), Some('"' | '\'')) =>
            {
                self.at += end;
                let mut text = String::new();
                let mark = self.peek().unwrap_or('"');
                self.one_string(mark, matches!(word, "r" | "R"), &mut text)?;
                return Ok(Value::String(text));
            }
            _ if word.is_empty() => return Err(self.unexpected("a value")),
            _ => return Err(format!("expected a literal, found `{word}`")),
        };
        self.at += end;
        Ok(value)
    }
}

/// Parses a number in Python syntax.
fn read_number(word: &str) -> Option<Value> {
    let plain = word.replace('_', "");
    let plain = plain.strip_prefix('+').unwrap_or(&plain);
    let (sign, digits) = plain.strip_prefix('-').map_or(("", plain), |digits| ("-", digits));
    if let Some(hex) = digits.strip_prefix("0x") {
        let value = i64::from_str_radix(hex, 16).ok()?;
        return Some(Value::from(if sign.is_empty() { value } else { -value }));
    }
    let lead = if digits.starts_with('.') { "0" } else { "" };
    let text = format!("{sign}{lead}{digits}");
    let text = text.strip_suffix('.').map_or(text.clone(), |whole| format!("{whole}.0"));
    serde_json::from_str::<Number>(&text.replace(".e", ".0e")).ok().map(Value::Number)
}

fn push_code(code: u32, into: &mut String) -> Result<(), String> {
    into.push(char::from_u32(code).ok_or("invalid character escape")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn end_of(text: &str) -> Result<Option<usize>, usize> {
        let mut scan = CallScan::new();
        for (at, ch) in text.char_indices().skip(1) {
            match scan.push(ch) {
                CallStep::More => {}
                CallStep::End => return Ok(Some(at)),
                CallStep::Bad => return Err(at),
            }
        }
        Ok(None)
    }

    #[test]
    fn the_end_of_a_call_is_found() {
        assert_eq!(end_of("f() x"), Ok(Some(2)));
        assert_eq!(end_of(r#"f(a="x)", b=')\'', c="") x"#), Ok(Some(23)));
        assert_eq!(end_of("f('''a'\n)''', (1, [2]))"), Ok(Some(22)));
        assert_eq!(end_of("f(''"), Ok(None));
        assert_eq!(end_of("f(a='x\n"), Err(6));
        assert_eq!(end_of("f(]"), Err(2));
        assert_eq!(end_of("f "), Err(1));
        assert!(end_of(&format!("f({}", "(".repeat(500))).is_err());
    }

    #[test]
    fn only_literals_are_parsed() {
        for (text, value) in [
            ("'a\\'b\\n\\u00e9\\x41'", json!("a'b\né\u{41}")),
            ("\"\"\"x\ny\"\"\"", json!("x\ny")),
            ("r'\\d'", json!("\\d")),
            ("'a' \"b\"", json!("ab")),
            ("'\\ud83d\\ude00'", json!("😀")),
            ("-1_000", json!(-1000)),
            ("+.5", json!(0.5)),
            ("2.", json!(2.0)),
            ("0x1f", json!(31)),
            ("1e3", json!(1000.0)),
            ("[True, None, (1, 2,), {'a': []}]", json!([true, null, [1, 2], {"a": []}])),
        ] {
            assert_eq!(read_literal(text), Ok(value), "{text}");
        }
        for text in
            ["x", "f()", "1+1", "[1 2]", "{1: 2}", "'a", "f'x'", "lambda: 1", "", "nan", "'\\ud800'", "'\\x4"]
        {
            assert!(read_literal(text).is_err(), "{text}");
        }
        assert!(read_literal(&"[".repeat(10_000)).is_err());
    }

    #[test]
    fn calls_are_parsed() {
        let call = read_call("a.b( 1, x = 'y', z=[1],)").unwrap();
        assert_eq!((call.name, call.positional), ("a.b", vec![json!(1)]));
        assert_eq!(Value::Object(call.named), json!({"x": "y", "z": [1]}));
        for text in ["f(a=1, 2)", "f(a=1, a=2)", "f(g())", "f(a)", "f(", "f() x", "f(,)"] {
            assert!(read_call(text).is_err(), "{text}");
        }
    }
}
