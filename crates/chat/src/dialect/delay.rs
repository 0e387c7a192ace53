//! How long a server asks to wait, in the body of an error.

use std::time::Duration;

use serde_json::Value;

use super::known::{Dialect, Dialects};
use super::rows::{DelayRow, Rows};

/// Maximum nesting of a body that is searched.
const MAX_DEPTH: usize = 16;

impl Dialect {
    /// Returns the delay that the body of an error names. `message`: its message.
    pub(crate) fn delay(self, body: &Value, message: &str) -> Option<Duration> {
        let others = Dialects::built_in().layers().flat_map(Rows::delays);
        let rows = self.layers().flat_map(Rows::delays).chain(others);
        rows.into_iter().find_map(|row| row.delay(body, message))
    }
}

impl DelayRow {
    pub(super) fn delay(&self, body: &Value, message: &str) -> Option<Duration> {
        let of_member = || member(body, self.member.as_deref()?, 0).and_then(of_value);
        let of_text = || {
            let text = message.to_ascii_lowercase();
            let (_, rest) = text.split_once(&self.says.as_deref()?.to_ascii_lowercase())?;
            of_words(rest)
        };
        of_member().or_else(of_text)
    }
}

/// Returns the first member with this name.
fn member<'v>(value: &'v Value, name: &str, depth: usize) -> Option<&'v Value> {
    let inner = |value: &'v Value| member(value, name, depth + 1);
    match value {
        _ if depth > MAX_DEPTH => None,
        Value::Object(members) => members.get(name).or_else(|| members.values().find_map(inner)),
        Value::Array(items) => items.iter().find_map(inner),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Reads a number of seconds, or a text such as `7s`.
fn of_value(value: &Value) -> Option<Duration> {
    match value {
        Value::Number(seconds) => Duration::try_from_secs_f64(seconds.as_f64()?).ok(),
        Value::String(text) => of_words(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads the numbers with their units at the start of a text: `1.898s`, `12h0m0s`, `20 seconds`, `500ms`.
fn of_words(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start_matches([' ', ':', '"']);
    let mut total = None;
    loop {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { return total };
        let after = after.trim_start();
        let end = after.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "h" | "hour" | "hours" => 3600.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "ms" | "millisecond" | "milliseconds" => 0.001,
            _ => return total,
        };
        let part = Duration::try_from_secs_f64(number * unit).ok()?;
        total = Some(total.unwrap_or(Duration::ZERO).saturating_add(part));
        rest = after;
    }
}
