//! Writing constants as text. Emacs and the reader read the text back as the same constants.
//!
//! A form has one key per line, and all other values are on one line: the formatter makes the layout. Descriptions contain
//! literal line ends, like docstrings, except where editors may change them, such as after a space. Other strings escape
//! line ends, and all strings escape control characters.

use std::fmt::Write as _;

use super::datum::{Datum, DatumKind};
use super::number::{Number, classify};
use super::rules::odd_blank;
use crate::text::is_readable;

/// Writes a constant, without a line end after it. [`DatumKind::Invalid`] is written as `nil`.
pub fn write(datum: &Datum) -> String {
    let mut out = String::new();
    match &datum.kind {
        DatumKind::List(items) if is_form(items) => {
            out.push('(');
            put_items(items, "\n ", &mut out);
            out.push(')');
        }
        _ => put(datum, &mut out),
    }
    out
}

/// Writes `text` as a string literal on one line.
pub fn quoted(text: &str) -> String {
    write_string(text, false)
}

/// Whether the list is `(head :key value …)`.
fn is_form(items: &[Datum]) -> bool {
    matches!(items, [Datum { kind: DatumKind::Symbol(_), .. }, Datum { kind: DatumKind::Keyword(_), .. }, ..])
}

fn put(datum: &Datum, out: &mut String) {
    match &datum.kind {
        DatumKind::List(items) if items.is_empty() => out.push_str("nil"),
        DatumKind::List(items) => {
            out.push('(');
            put_items(items, " ", out);
            out.push(')');
        }
        DatumKind::Vector(items) => {
            out.push('[');
            put_items(items, " ", out);
            out.push(']');
        }
        DatumKind::Dotted(items, tail) => {
            out.push('(');
            put_items(items, " ", out);
            out.push_str(" . ");
            put(tail, out);
            out.push(')');
        }
        DatumKind::Quoted(inner) => {
            out.push('\'');
            put(inner, out);
        }
        _ => out.push_str(&atom(datum)),
    }
}

/// Writes items, with `before_key` before those at odd positions: the keys of a form.
fn put_items(items: &[Datum], before_key: &str, out: &mut String) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(if index % 2 == 1 { before_key } else { " " });
        }
        let before = index.checked_sub(1).and_then(|before| items.get(before));
        match before.and_then(|key| prose(key, item)) {
            Some(text) => out.push_str(&write_string(text, true)),
            None => put(item, out),
        }
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
