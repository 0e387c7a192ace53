//! Reads and validates the arguments of one call. Errors are the same as those that a model receives.

use std::io::Read;

use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::schema::{ToolEntry, repeated_member};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_project::{Generation, LoadedTool, unknown_tool};
use serde_json::{Map, Value};

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
pub(super) fn parse_input(
    loaded: &LoadedTool,
    input: &ArgumentInput,
) -> Result<Map<String, Value>, ToolError> {
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
            validate(loaded.entry(), Value::Object(members.collect()))
        }
    }
}

/// Parses `text` and validates it against the schema of `entry`.
pub(super) fn parse(entry: &ToolEntry, text: &str) -> Result<Map<String, Value>, ToolError> {
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
    validate(entry, value)
}

/// Validates `value` against the schema of `entry` and returns it as an object.
pub(super) fn validate(entry: &ToolEntry, value: Value) -> Result<Map<String, Value>, ToolError> {
    let name = entry.name.as_str();
    if let Err(violations) = entry.validator.validate(&value) {
        let mut messages = violations.iter().map(ToString::to_string);
        let first = messages.next().unwrap_or_default();
        let rest: Vec<String> = messages.collect();
        let mut error = invalid(format!("`{name}`: {first}"));
        if let Some(path) =
            violations.first().map(|violation| violation.path.clone()).filter(|path| !path.is_empty())
        {
            error = error.at(path);
        }
        return Err(if rest.is_empty() { error } else { error.with_details(rest.join("\n")) });
    }
    match value {
        Value::Object(arguments) => Ok(arguments),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(invalid(format!("the arguments of `{name}` must be a JSON object")))
        }
    }
}

/// Returns the tool named `name`.
///
/// # Errors
/// If the tool does not exist, or if its spec has errors; the error then contains them.
pub(super) fn find_tool<'g>(name: &str, generation: &'g Generation) -> Result<&'g LoadedTool, ToolError> {
    if let Some(loaded) = generation.tool(name) {
        return Ok(loaded);
    }
    let load = &generation.load;
    let broken = load.tools.iter().find(|loaded| loaded.tool.name.value == name && !loaded.tool.valid);
    let Some(broken) = broken else { return Err(unknown_tool(name, generation.tool_names())) };
    let (source, span) = (broken.tool.source, broken.tool.span);
    let errors: Vec<String> = load
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error && finding.primary.source == source)
        .filter(|finding| finding.primary.span.start >= span.start && finding.primary.span.end <= span.end)
        .map(|finding| render_concise(finding, &load.sources))
        .collect();
    let first = errors.first().cloned().unwrap_or_default();
    let error = ToolError::new(ToolErrorKind::Load, format!("the spec of `{name}` has errors: {first}"));
    Err(if errors.len() > 1 {
        error.with_details(errors.get(1..).unwrap_or_default().join("\n"))
    } else {
        error
    })
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
