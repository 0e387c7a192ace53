//! Short representations of differing values.

use serde_json::Value;

/// Maximum length of a shown value, in characters.
const MAX_SHOWN: usize = 120;
/// Number of common characters shown before the first difference.
const BEFORE: usize = 30;

/// Formats a value as JSON, truncated.
pub(super) fn show(value: &Value) -> String {
    // Avoids serializing a long value completely before truncating it.
    let text = match value {
        Value::String(text) => quoted(text.chars()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            let mut out = Short { text: Vec::new() };
            let _ = serde_json::to_writer(&mut out, value);
            String::from_utf8_lossy(&out.text).trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
        }
    };
    cut(text)
}

/// Formats two texts, starting shortly before their first difference, because long prompts often share a beginning.
pub(super) fn show_strings(recorded: &str, now: &str) -> (String, String) {
    let common = recorded.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let skipped = common.saturating_sub(BEFORE);
    let from = |text: &str| {
        let rest = cut(quoted(text.chars().skip(skipped)));
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

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A writer that fails once it holds more text than is shown.
struct Short {
    text: Vec<u8>,
}

impl std::io::Write for Short {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.text.len() > 4 * (MAX_SHOWN + 1) {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
