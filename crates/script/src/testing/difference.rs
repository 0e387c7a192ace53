//! Comparison of Lua values: differences by path, and containment.
//!
//! Values are compared by content: tables key by key, ignoring metatables (an empty `json.array` equals `{}`), other
//! values as in Lua, except that NaN equals itself. No script code runs.

use std::fmt::Write as _;

use mlua::{Table, Value as LuaValue};
use similar::TextDiff;

use crate::convert;
use crate::error::{clean, describe, type_name};

/// Maximum number of differences to report.
const MAX_REPORTED: usize = 20;
/// Maximum depth of tables to compare.
const MAX_DEPTH: usize = 100;
/// Maximum number of pairs of values to compare.
const MAX_COMPARED: usize = 1_000_000;
/// Maximum length of a value in a message, in characters.
const MAX_VALUE_LENGTH: usize = 200;
/// Longer texts (in characters) and texts of several lines are compared line by line.
const MAX_INLINE_TEXT: usize = 100;

/// Returns the differences, as in `.items[1].name: expected "a", got nothing`. Empty if the values are equal.
pub(super) fn differences(got: &LuaValue, expected: &LuaValue, array_mark: &Table) -> Vec<String> {
    let mut comparison =
        Comparison { found: Vec::new(), more: 0, compared: 0, path: String::new(), array_mark };
    comparison.compare(got, expected, 0);
    let Comparison { mut found, more, compared, .. } = comparison;
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    if compared > MAX_COMPARED {
        found.push(format!("the values are too large to compare: more than {MAX_COMPARED} parts"));
    }
    found
}

struct Comparison<'m> {
    found: Vec<String>,
    more: usize,
    compared: usize,
    path: String,
    array_mark: &'m Table,
}

impl Comparison<'_> {
    fn compare(&mut self, got: &LuaValue, expected: &LuaValue, depth: usize) {
        self.compared += 1;
        if self.compared > MAX_COMPARED {
            return;
        }
        match (got, expected) {
            (LuaValue::Table(one), LuaValue::Table(other)) => {
                if one.to_pointer() == other.to_pointer() {
                    return;
                }
                if depth >= MAX_DEPTH {
                    return self.report(format!("the tables are nested deeper than {MAX_DEPTH} levels"));
                }
                self.compare_tables(one, other, depth);
            }
            (LuaValue::String(one), LuaValue::String(other)) => {
                let (one, other) = (one.to_string_lossy(), other.to_string_lossy());
                if one != other {
                    self.report_text_difference(&one, &other);
                }
            }
            _ if is_same(got, expected) => {}
            _ => {
                let (expected, got) = (show(expected, self.array_mark), show(got, self.array_mark));
                self.report(format!("expected {expected}, got {got}"));
            }
        }
    }

    fn compare_tables(&mut self, got: &Table, expected: &Table, depth: usize) {
        let path = self.path.len();
        // Fails only when the state is out of memory, which ends the call.
        let mut keys: Vec<LuaValue> = Vec::new();
        let _ = expected.for_each(|key: LuaValue, _: LuaValue| {
            keys.push(key);
            Ok(())
        });
        let _ = got.for_each(|key: LuaValue, _: LuaValue| {
            if expected.raw_get::<LuaValue>(key.clone()).is_ok_and(|value| value.is_nil()) {
                keys.push(key);
            }
            Ok(())
        });
        keys.sort_by_cached_key(sort_key);
        for key in keys {
            push_key(&mut self.path, &key);
            let value = |table: &Table| table.raw_get::<LuaValue>(key.clone()).unwrap_or(LuaValue::Nil);
            self.compare(&value(got), &value(expected), depth + 1);
            self.path.truncate(path);
        }
    }

    fn report(&mut self, message: String) {
        if self.found.len() >= MAX_REPORTED {
            self.more += 1;
            return;
        }
        self.found.push(if self.path.is_empty() { message } else { format!("{}: {message}", self.path) });
    }

    fn report_text_difference(&mut self, got: &str, expected: &str) {
        let is_long = |text: &str| text.contains('\n') || text.chars().nth(MAX_INLINE_TEXT).is_some();
        if !is_long(got) && !is_long(expected) {
            return self.report(format!("expected {}, got {}", quoted(expected), quoted(got)));
        }
        let same = got.chars().zip(expected.chars()).take_while(|(one, other)| one == other);
        let before: String = same.map(|(character, _)| character).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        self.report(format!("the texts differ from line {line}, column {column} (- expected, + actual)"));
        let diff = TextDiff::from_lines(expected, got);
        for line in diff.unified_diff().context_radius(1).to_string().lines().take(MAX_REPORTED) {
            self.found.push(clean(line, MAX_VALUE_LENGTH));
        }
    }
}

/// Returns whether `value` contains `part`: a text contains a substring, a list an item, and a table the given members,
/// at any depth. `None`: the values are too large to compare.
pub(super) fn contains(value: &LuaValue, part: &LuaValue) -> Option<bool> {
    let mut left = MAX_COMPARED;
    let found = match (value, part) {
        (LuaValue::String(text), LuaValue::String(piece)) => {
            memchr::memmem::find(&text.as_bytes(), &piece.as_bytes()).is_some()
        }
        (LuaValue::Table(list), _) if list.raw_len() > 0 => {
            let mut is = |item: LuaValue| has(&item, part, 0, &mut left);
            (1..=list.raw_len()).any(|index| list.raw_get(index).is_ok_and(&mut is))
        }
        (LuaValue::Table(_), LuaValue::Table(_)) => has(value, part, 0, &mut left),
        _ => false,
    };
    (found || left > 0).then_some(found)
}

/// Returns whether `value` equals `part` or has all of its members. `left` is the remaining number of comparisons.
fn has(value: &LuaValue, part: &LuaValue, depth: usize, left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    match (value, part) {
        _ if *left == 0 => false,
        (LuaValue::Table(value), LuaValue::Table(part)) if depth < MAX_DEPTH => {
            let mut all = true;
            let walked = part.for_each(|key: LuaValue, wanted: LuaValue| {
                all = all && has(&value.raw_get::<LuaValue>(key)?, &wanted, depth + 1, left);
                // Any error ends the iteration.
                if all { Ok(()) } else { Err(mlua::Error::StackError) }
            });
            // Lists must have the same length.
            walked.is_ok() && all && (part.raw_len() == 0 || part.raw_len() == value.raw_len())
        }
        _ => is_same(value, part),
    }
}

#[allow(clippy::float_cmp)] // Lua compares floats exactly
fn is_same(one: &LuaValue, other: &LuaValue) -> bool {
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other || (one.is_nan() && other.is_nan()),
        (None, None) => one == other,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

#[allow(clippy::cast_precision_loss)] // mlua converted it from a float
fn number(value: &LuaValue) -> Option<f64> {
    match value {
        LuaValue::Integer(integer) => Some(*integer as f64),
        LuaValue::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns a key that sorts numbers by value, and after them other keys by text.
fn sort_key(key: &LuaValue) -> (bool, i64, String) {
    match number(key) {
        Some(number) => (false, number.clamp(-1e15, 1e15) as i64, String::new()),
        None => (true, 0, describe(key)),
    }
}

/// Appends `key` to `path`, as in `.name`, `[1]` or `["two words"]`.
fn push_key(path: &mut String, key: &LuaValue) {
    match key {
        LuaValue::String(name) => {
            let name = clean(&name.to_string_lossy(), 60);
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !name.bytes().next().is_none_or(|byte| byte.is_ascii_digit());
            if is_name {
                path.extend([".", &name]);
            } else {
                let _ = write!(path, "[{}]", quoted(&name));
            }
        }
        other => _ = write!(path, "[{}]", describe(other)),
    }
}

/// Formats a value for messages: as JSON if possible, else by its type.
pub(super) fn show(value: &LuaValue, array_mark: &Table) -> String {
    match value {
        LuaValue::Nil => String::from("nothing"),
        LuaValue::String(text) => quoted(&text.to_string_lossy()),
        LuaValue::Integer(_) | LuaValue::Number(_) | LuaValue::Boolean(_) => describe(value),
        LuaValue::Table(_) => match convert::to_json(value, array_mark) {
            Ok(json) => clean(&json.to_string(), MAX_VALUE_LENGTH),
            Err(_) => String::from("a table"),
        },
        LuaValue::LightUserData(_) => type_name(value).to_owned(),
        _ => format!("a {}", type_name(value)),
    }
}

fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(MAX_VALUE_LENGTH).collect();
    let rest = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{rest}", serde_json::Value::String(cut))
}
