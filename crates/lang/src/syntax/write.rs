//! Writing constants as text. Emacs and the reader read the text back as the same constants.
//!
//! The layout is simple. A value that fits stays on one line; otherwise each key or element gets a line. A tool form
//! always has one key per line. Descriptions contain literal line ends, like docstrings, except where editors may
//! change them, such as after a space. Other strings escape line ends, and all strings escape control characters.

use std::fmt::Write as _;

use super::datum::{Datum, DatumKind};
use super::number::{Number, classify};
use super::rules::odd_blank;
use crate::text::is_readable;

/// Maximum line width, as far as the content can be broken.
const WIDTH: usize = 100;

/// Writes a constant, without a line end after it. [`DatumKind::Invalid`] is written as `nil`.
pub fn write(datum: &Datum) -> String {
    let mut writer = Writer { out: String::new(), column: 0 };
    if let DatumKind::List(items) = &datum.kind
        && is_form(items)
    {
        writer.put_list(items, 0);
    } else {
        writer.put_datum(datum, 0);
    }
    writer.out
}

/// Writes `text` as a string literal on one line.
pub fn quoted(text: &str) -> String {
    write_string(text, false)
}

/// Whether the list is `(head :key value …)`.
fn is_form(items: &[Datum]) -> bool {
    matches!(items, [Datum { kind: DatumKind::Symbol(_), .. }, Datum { kind: DatumKind::Keyword(_), .. }, ..])
}

struct Writer {
    out: String,
    /// Characters on the current line.
    column: usize,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        match text.rfind('\n') {
            Some(end) => self.column = text.get(end + 1..).unwrap_or_default().chars().count(),
            None => self.column += text.chars().count(),
        }
    }

    fn break_line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    /// Writes `datum` at the current position; `closers` brackets follow it.
    fn put_datum(&mut self, datum: &Datum, closers: usize) {
        let room = WIDTH.saturating_sub(self.column + closers);
        let mut line = Line { text: String::new(), room };
        if line.push_datum(datum).is_some() {
            self.put(&line.text);
            return;
        }
        match &datum.kind {
            DatumKind::List(items) => self.put_list(items, closers),
            DatumKind::Vector(items) => {
                self.put("[");
                self.put_items(items, self.column, closers + 1);
                self.put("]");
            }
            DatumKind::Quoted(inner) => {
                self.put("'");
                self.put_datum(inner, closers);
            }
            DatumKind::Dotted(items, tail) => {
                self.put("(");
                let indent = self.column;
                self.put_items(items, indent, 0);
                self.break_line(indent);
                self.put(". ");
                self.put_datum(tail, closers + 1);
                self.put(")");
            }
            _ => self.put(&atom(datum)),
        }
    }

    fn put_list(&mut self, items: &[Datum], closers: usize) {
        let start = self.column;
        self.put("(");
        match items {
            [head, entries @ ..] if is_form(items) => {
                self.put_datum(head, 0);
                self.break_line(start + 1);
                self.put_entries(entries, start + 1, closers + 1);
            }
            [Datum { kind: DatumKind::Keyword(_), .. }, ..] => {
                self.put_entries(items, start + 1, closers + 1);
            }
            [head @ Datum { kind: DatumKind::Symbol(word), .. }, first, rest @ ..] => {
                self.put_datum(head, 0);
                self.put(" ");
                // The body of a function is indented; arguments are aligned.
                let indent = if word == "lambda" { start + 2 } else { self.column };
                self.put_datum(first, if rest.is_empty() { closers + 1 } else { 0 });
                if !rest.is_empty() {
                    self.break_line(indent);
                    self.put_items(rest, indent, closers + 1);
                }
            }
            _ => self.put_items(items, start + 1, closers + 1),
        }
        self.put(")");
    }

    fn put_entries(&mut self, items: &[Datum], indent: usize, closers: usize) {
        let count = items.len().div_ceil(2);
        for (index, entry) in items.chunks(2).enumerate() {
            if index > 0 {
                self.break_line(indent);
            }
            let last = if index + 1 == count { closers } else { 0 };
            if let [key, value] = entry {
                self.put_datum(key, 0);
                self.put(" ");
                match prose(key, value) {
                    Some(text) => self.put(&write_string(text, true)),
                    None => self.put_datum(value, last),
                }
            } else if let [key] = entry {
                self.put_datum(key, last);
            }
        }
    }

    fn put_items(&mut self, items: &[Datum], indent: usize, closers: usize) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.break_line(indent);
            }
            self.put_datum(item, if index + 1 == items.len() { closers } else { 0 });
        }
    }
}

/// A constant on one line of limited length. The methods return `None` if it does not fit.
struct Line {
    text: String,
    room: usize,
}

impl Line {
    fn push(&mut self, text: &str) -> Option<()> {
        self.room = self.room.checked_sub(text.chars().count())?;
        self.text.push_str(text);
        Some(())
    }

    fn push_datum(&mut self, datum: &Datum) -> Option<()> {
        match &datum.kind {
            DatumKind::List(items) if items.is_empty() => self.push("nil"),
            DatumKind::List(items) => {
                self.push("(")?;
                self.push_items(items)?;
                self.push(")")
            }
            DatumKind::Vector(items) => {
                self.push("[")?;
                self.push_items(items)?;
                self.push("]")
            }
            DatumKind::Dotted(items, tail) => {
                self.push("(")?;
                self.push_items(items)?;
                self.push(" . ")?;
                self.push_datum(tail)?;
                self.push(")")
            }
            DatumKind::Quoted(inner) => {
                self.push("'")?;
                self.push_datum(inner)
            }
            // Skip the cost of escaping a string that cannot fit.
            DatumKind::String(text) if text.len() > 4 * self.room => None,
            _ => self.push(&atom(datum)),
        }
    }

    fn push_items(&mut self, items: &[Datum]) -> Option<()> {
        if items.windows(2).any(|pair| matches!(pair, [key, value] if prose(key, value).is_some())) {
            return None;
        }
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.push(" ")?;
            }
            self.push_datum(item)?;
        }
        Some(())
    }
}

/// Returns the text if the value is a description of several lines.
fn prose<'d>(key: &Datum, value: &'d Datum) -> Option<&'d str> {
    let DatumKind::Keyword(key) = &key.kind else { return None };
    let DatumKind::String(text) = &value.kind else { return None };
    (key == ":description" && text.contains('\n')).then_some(text.as_str())
}

/// Writes a value without parts.
fn atom(datum: &Datum) -> String {
    match &datum.kind {
        DatumKind::Symbol(name) => write_symbol(name),
        DatumKind::Keyword(name) => escape_name(name),
        DatumKind::String(text) => quoted(text),
        DatumKind::Number(number) => write_number(*number),
        DatumKind::NotFinite(text) => text.clone(),
        _ => String::from("nil"),
    }
}

fn write_number(number: Number) -> String {
    match number {
        Number::Integer(value) => value.to_string(),
        Number::Unsigned(value) => value.to_string(),
        // The shortest digits that read back as the same float, always with a dot or an exponent.
        Number::Float(value) | Number::Rounded(value) if value.is_finite() => format!("{value:?}"),
        Number::Float(value) | Number::Rounded(value) if value.is_nan() => String::from("0.0e+NaN"),
        Number::Float(value) | Number::Rounded(value) => {
            String::from(if value > 0.0 { "1.0e+INF" } else { "-1.0e+INF" })
        }
    }
}

fn write_symbol(name: &str) -> String {
    let Some(first) = name.chars().next() else { return String::from("##") };
    // Escape names that would be read as a number, a character, a dot or a quote that Emacs considers confusable.
    let is_other = classify(name.as_bytes()).is_some() || matches!(first, '.' | '?') || !first.is_ascii();
    let escaped = escape_name(name);
    if is_other && !escaped.starts_with('\\') { format!("\\{escaped}") } else { escaped }
}

/// Writes a name with a backslash before every character that would end it.
fn escape_name(name: &str) -> String {
    let ends = |character: char| {
        character <= ' ' || "\u{a0}\"'`,;#()[]\\".contains(character) || odd_blank::is_odd(character)
    };
    let mut escaped = String::with_capacity(name.len());
    for character in name.chars() {
        if ends(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Writes a string literal. With `keeps_lines`, line ends are written literally.
fn write_string(text: &str, keeps_lines: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    // Whether the last character of `out` is unescaped.
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let at_line_start = before == Some('\n');
        before = Some(character);
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            // Editors may strip trailing spaces, and a line end at the end of a string is easily missed.
            '\n' if keeps_lines && ends_in_word(&out) && characters.peek().is_some() => out.push('\n'),
            '\n' => {
                out.push_str("\\n");
                before = None;
            }
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            // Emacs treats an open parenthesis in the first column as the start of a form.
            '(' if at_line_start => out.push_str("\\("),
            _ if character.is_ascii_control() => {
                let _ = write!(out, "\\{:03o}", u32::from(character));
            }
            _ if !is_readable(character) => {
                let code = u32::from(character);
                let _ =
                    if code > 0xFFFF { write!(out, "\\U{code:08x}") } else { write!(out, "\\u{code:04x}") };
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// Whether a line may end here: not at the start of a string, and not after a space or an escaped line end.
fn ends_in_word(out: &str) -> bool {
    out.len() > 1 && !out.ends_with([' ', '\\']) && !out.ends_with("\\n") && !out.ends_with("\\t")
}
