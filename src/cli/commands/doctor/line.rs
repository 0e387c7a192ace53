//! The result lines of the checks, and helpers for their texts.

use deftool_lang::text::{count, one_line};
use serde::Serialize;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Warning,
    Error,
}

/// A result of a check.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) message: String,
    /// The suggested action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

impl Line {
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: one_line(message.into()), advice: None }
    }

    pub(super) fn warning(
        check: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(one_line(advice.into()));
        Self { check, level: Level::Warning, message: one_line(message.into()), advice }
    }

    pub(super) fn error(check: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Error, ..Self::warning(check, message, advice) }
    }
}

/// Maximum number of names in a list.
const MAX_NAMES: usize = 8;

/// Formats names, as in `a, b and 3 more`.
pub(super) fn list(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Formats a number, as in `3 tools` or `no tool`.
pub(super) fn counted(number: usize, word: &str) -> String {
    if number == 0 { format!("no {word}") } else { count(number, word) }
}
