//! Short representations of differing values.

use deftool_lang::text::cut;
use serde_json::Value;

/// Maximum length of a shown value, in characters.
const MAX_SHOWN: usize = 120;
/// Number of common characters shown before the first difference.
const BEFORE: usize = 30;

/// Formats a value as JSON, truncated.
pub(super) fn show(value: &Value) -> String {
    cut(value, MAX_SHOWN)
}

/// Formats two texts, starting shortly before their first difference, because long prompts often share a beginning.
pub(super) fn show_strings(recorded: &str, now: &str) -> (String, String) {
    let common = recorded.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let skipped = common.saturating_sub(BEFORE);
    let from = |text: &str| {
        let rest = cut(&quoted(text.chars().skip(skipped)), MAX_SHOWN);
        if skipped == 0 { rest } else { format!("…{rest}") }
    };
    (from(recorded), from(now))
}

/// Returns `path.key` or `path["odd key"]`.
pub(super) fn join(path: &str, key: &str) -> String {
    let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match (is_plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{}]", Value::from(key)),
    }
}

fn quoted(chars: impl Iterator<Item = char>) -> String {
    Value::String(chars.take(MAX_SHOWN + 1).collect()).to_string()
}
