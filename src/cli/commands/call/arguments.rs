//! Reads and validates the arguments of one call. Errors are the same as those that a model receives.

use deftool_engine::text::quote;
use deftool_lang::schema::{Arguments, ToolEntry, repeated_member};
use deftool_lang::spec::SampleCall;
use deftool_lang::tool::{ToolError, ToolErrorKind, accept_arguments};
use deftool_project::LoadedTool;
use serde_json::{Value, json};

use crate::cli::terminal::stdin::read_stdin;

/// The arguments of a call on the command line.
#[derive(Clone)]
pub(in crate::cli) enum ArgumentInput {
    /// A JSON object.
    Json(String),
    /// Keys and values.
    Pairs(Vec<(String, String)>),
}

/// Reads the arguments of the tool `name`: KEY=VALUE pairs or one JSON object; `-` reads an object from stdin.
pub(in crate::cli) fn read_input(name: &str, words: &[String]) -> Result<ArgumentInput, ToolError> {
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
pub(in crate::cli) fn parse_input(
    loaded: &LoadedTool,
    input: &ArgumentInput,
) -> Result<Arguments, ToolError> {
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
                .map_err(|error| explain_syntax(error, loaded, pairs))
        }
    }
}

/// Maximum length of a value in an example, in characters.
const MAX_EXAMPLE: usize = 60;

/// Adds how lists and objects are written on the command line, if an argument of this type has another value.
fn explain_syntax(mut error: ToolError, loaded: &LoadedTool, pairs: &[(String, String)]) -> ToolError {
    let help = pairs.iter().filter_map(|(key, text)| {
        let argument = loaded.tool.arguments.iter().find(|argument| argument.name.value == *key)?;
        let is_list = match argument.type_name()? {
            "array" => true,
            "object" => false,
            _ => return None,
        };
        match serde_json::from_str(text) {
            Ok(Value::Array(_)) if is_list => return None,
            Ok(Value::Object(_)) if !is_list => return None,
            Err(error) if text.trim_start().starts_with(['[', '{']) => {
                return Some(format!("help: the value of `{key}` is not JSON: {error}"));
            }
            Ok(_) | Err(_) => {}
        }
        let what = if is_list { "a list" } else { "an object" };
        let example = example_of(loaded, key, text, is_list);
        let example = example.map_or_else(String::new, |value| format!(": {key}={}", quote(&value)));
        Some(format!("help: write {what} as JSON{example}"))
    });
    let details: Vec<String> = error.details.take().into_iter().chain(help).collect();
    error.details = (!details.is_empty()).then(|| details.join("\n"));
    error
}

/// Returns a short value that the schema accepts for the argument `key`, as JSON: made from `text`, from an example of the
/// spec, or a placeholder.
fn example_of(loaded: &LoadedTool, key: &str, text: &str, is_list: bool) -> Option<String> {
    let parts = || text.split(',').map(str::trim);
    let parse = |part: &str| serde_json::from_str(part).unwrap_or_else(|_| Value::from(part));
    let given = [
        parts().map(parse).collect(),
        parts().map(Value::from).collect(),
        json!([parse(text)]),
        json!([[parse(text)]]),
    ];
    let value_in = |sample: &SampleCall| sample.arguments.to_value().get_mut(key).map(Value::take);
    let samples = loaded.tool.accepts.iter().filter_map(value_in);
    let placeholders =
        if is_list { [json!(["value"]), json!([1])] } else { [json!({"name": "value"}), json!({})] };
    let mut candidates = given.into_iter().filter(|_| is_list).chain(samples).chain(placeholders);
    let is_usable = |value: &Value| {
        value.to_string().chars().count() <= MAX_EXAMPLE && is_accepted(loaded.entry(), key, value)
    };
    candidates.find(is_usable).map(|value| value.to_string())
}

/// Returns whether the schema accepts a value for the argument `key`, whatever the others are.
fn is_accepted(entry: &ToolEntry, key: &str, value: &Value) -> bool {
    let Ok(arguments) = Arguments::try_from(json!({key: value})) else { return false };
    let Err((_, violations)) = entry.accept(arguments) else { return true };
    let paths = [format!(".{key}"), format!("[{key}]")];
    let is_inside = |path: &str| {
        let rest = paths.iter().find_map(|start| path.strip_prefix(start.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    !violations.iter().any(|violation| is_inside(&violation.path))
}

/// Parses `text` and validates it against the schema of `entry`.
pub(in crate::cli) fn parse(entry: &ToolEntry, text: &str) -> Result<Arguments, ToolError> {
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
