//! Reads and validates the arguments of one call. Errors are the same as those that a model receives.

use std::io::Read;

use deftool_lang::schema::{Arguments, ToolEntry, repeated_member};
use deftool_lang::tool::{ToolError, ToolErrorKind, accept_arguments};
use deftool_project::LoadedTool;
use serde_json::Value;

/// Maximum size of an input, in bytes.
pub(super) const MAX_INPUT: u64 = 64 << 20;

/// Returns the text on stdin. `what` describes the text in error messages.
pub(super) fn read_stdin(what: &str) -> Result<String, String> {
    read_limited(std::io::stdin(), MAX_INPUT).map_err(|why| format!("{what} on stdin {why}"))
}

/// Reads at most `limit` bytes of UTF-8 text. The error is a clause without a subject.
pub(super) fn read_limited(from: impl Read, limit: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    // Check the size before decoding: the text may be cut within a character.
    from.take(limit + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > limit {
        return Err(format!("exceeds {} MiB", limit >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("cannot be read: byte {} is not UTF-8", error.utf8_error().valid_up_to() + 1)
    })
}

/// The arguments of a call on the command line.
#[derive(Clone)]
pub(super) enum ArgumentInput {
    /// A JSON object.
    Json(String),
    /// Keys and values.
    Pairs(Vec<(String, String)>),
}

/// Reads the arguments of the tool `name`: KEY=VALUE pairs or one JSON object; `-` reads an object from stdin.
pub(super) fn read_input(name: &str, words: &[String]) -> Result<ArgumentInput, ToolError> {
    match words {
        [] => return Ok(ArgumentInput::Json(String::from("{}"))),
        [word] if word == "-" => {
            let text = read_stdin(&format!("the arguments of `{name}`")).map_err(invalid)?;
            return Ok(ArgumentInput::Json(text));
        }
        [word] if is_json(word) => return Ok(ArgumentInput::Json(word.clone())),
        _ => {}
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(invalid(format!(
                "the arguments of `{name}` must be KEY=VALUE pairs or one JSON object, not `{word}`"
            )));
        };
        if pairs.iter().any(|(known, _)| known == key) {
            return Err(invalid(format!("`{name}`: duplicate argument `{key}`")));
        }
        pairs.push((key.to_owned(), value.to_owned()));
    }
    Ok(ArgumentInput::Pairs(pairs))
}

/// Whether a word is meant as JSON rather than as a pair.
fn is_json(word: &str) -> bool {
    word.trim_start().starts_with(['{', '[', '"']) || serde_json::from_str::<Value>(word).is_ok()
}

/// Parses the arguments and validates them against the schema of the tool.
pub(super) fn parse_input(loaded: &LoadedTool, input: &ArgumentInput) -> Result<Arguments, ToolError> {
    match input {
        ArgumentInput::Json(text) => parse(loaded.entry(), text),
        ArgumentInput::Pairs(pairs) => {
            let value = |key: &str, text: &str| {
                let argument = loaded.tool.arguments.iter().find(|argument| argument.name.value == key);
                let is_text = argument.is_some_and(|argument| argument.type_name() == Some("string"));
                let json = if is_text { None } else { serde_json::from_str(text).ok() };
                json.unwrap_or_else(|| Value::from(text))
            };
            let members = pairs.iter().map(|(key, text)| (key.clone(), value(key, text)));
            accept_arguments(loaded.entry(), Value::Object(members.collect()))
        }
    }
}

/// Parses `text` and validates it against the schema of `entry`.
pub(super) fn parse(entry: &ToolEntry, text: &str) -> Result<Arguments, ToolError> {
    let name = entry.name.as_str();
    let value: Value = serde_json::from_str(text)
        .map_err(|error| invalid(format!("the arguments of `{name}` are not JSON: {error}")))?;
    if !value.is_object() {
        return Err(invalid(format!(
            "the arguments of `{name}` must be a JSON object such as {{\"name\": \"value\"}}"
        )));
    }
    if let Some(member) = repeated_member(text) {
        return Err(invalid(format!("the arguments of `{name}` have a duplicate member `{member}`")));
    }
    accept_arguments(entry, value)
}

fn invalid(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_above_the_limit_is_reported_as_too_long_even_if_a_character_is_cut() {
        let limit = 1 << 20;
        for (text, expected) in [
            ("é".repeat(1 << 19), None),
            ("é".repeat(1 << 19) + "é", Some("exceeds 1 MiB")),
            ("é".repeat(1 << 19) + "x", Some("exceeds 1 MiB")),
        ] {
            let read = read_limited(text.as_bytes(), limit);
            assert_eq!(read.as_ref().err().map(String::as_str), expected);
            assert_eq!(read.unwrap_or_default().len(), if expected.is_none() { text.len() } else { 0 });
        }
        let error = read_limited(&b"ab\xff"[..], limit).unwrap_err();
        assert_eq!(error, "cannot be read: byte 3 is not UTF-8");
    }
}
