//! Conversion of Lua errors to [`ToolError`]s: message, location and traceback, safe to print.
//!
//! A script may raise any value: tables, functions, a megabyte of escape codes. Nothing here runs script code (no
//! `__tostring`). Texts are truncated and control characters are replaced, so that a message can be sent to a terminal
//! or a model. Tracebacks list only the script's own frames.

use std::fmt::Write as _;
use std::sync::Arc;

use deftool_lang::text::is_readable;
use deftool_lang::tool::{ToolError, ToolErrorKind};
use mlua::{Error as LuaError, Lua, LuaString, Table, Value as LuaValue};

/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 2_000;
/// Maximum number of frames in a traceback.
const MAX_FRAMES: usize = 20;
/// Maximum number of stack levels to search for these frames.
const MAX_LEVELS: usize = 250;

/// Luau's message for an allocation beyond the limit. It has no location. The prelude prevents scripts from raising the
/// same text.
pub(super) const OUT_OF_MEMORY: &str = "not enough memory";

/// An error of a host function. If the script does not catch it, the call ends with this kind.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(super) struct HostError {
    pub(super) kind: ToolErrorKind,
    pub(super) message: String,
}

impl HostError {
    /// Creates a Lua error of `kind`.
    pub(super) fn lua(kind: ToolErrorKind, message: impl Into<String>) -> LuaError {
        LuaError::external(Self { kind, message: message.into() })
    }

    /// Creates a Lua error for a mistake in the script.
    pub(super) fn script(message: impl Into<String>) -> LuaError {
        Self::lua(ToolErrorKind::Script, message)
    }
}

/// A classified raised value, without the location that the caller adds.
pub(super) enum Raised {
    /// An expected failure, from `tool.failure`.
    Failure(String),
    /// The state is out of memory.
    Memory,
    /// A message that includes its location, or needs none.
    Located(String),
    /// An error of a host function. Its location is the call in the script.
    Host(ToolErrorKind, String),
}

/// Classifies a raised value. `failure_mark` is the metatable of the tables that `tool.failure` returns.
pub(super) fn read_raised(value: &LuaValue, failure_mark: &Table) -> Raised {
    match value {
        LuaValue::String(text) if text.as_bytes() == OUT_OF_MEMORY.as_bytes() => Raised::Memory,
        LuaValue::String(text) => Raised::Located(friendly(&beginning(text))),
        LuaValue::Error(error) => read_error(error),
        LuaValue::Table(table) if is_marked(table, failure_mark) => {
            Raised::Failure(message_of(table).unwrap_or_else(|| String::from("the tool failed")))
        }
        LuaValue::Table(table) => Raised::Located(message_of(table).unwrap_or_else(|| describe(value))),
        _ => Raised::Located(describe(value)),
    }
}

/// Classifies an error of mlua or of a host function.
pub(super) fn read_error(error: &LuaError) -> Raised {
    if let Some(host) = error.downcast_ref::<HostError>() {
        return Raised::Host(host.kind, host.message.clone());
    }
    match root(error) {
        LuaError::MemoryError(_) => Raised::Memory,
        LuaError::RuntimeError(message) if message.starts_with(OUT_OF_MEMORY) => Raised::Memory,
        LuaError::RuntimeError(message) => {
            let message = message.split("\nstack traceback:").next().unwrap_or_default();
            Raised::Host(ToolErrorKind::Script, friendly(message))
        }
        other => Raised::Host(ToolErrorKind::Script, friendly(&other.to_string())),
    }
}

/// Returns `file:line: ` of the innermost frame in the script's `files`, or an empty string.
pub(super) fn location(lua: &Lua, files: &[String]) -> String {
    frames(lua, files, 1)
        .pop()
        .map(|frame| format!("{}: ", frame.split(' ').next().unwrap_or_default()))
        .unwrap_or_default()
}

/// Returns the script's frames, innermost first, as lines `file:line in name`.
pub(super) fn traceback(lua: &Lua, files: &[String]) -> Option<String> {
    let frames = frames(lua, files, MAX_FRAMES);
    if frames.is_empty() { None } else { Some(frames.join("\n")) }
}

fn frames(lua: &Lua, files: &[String], max: usize) -> Vec<String> {
    let mut frames = Vec::new();
    for level in 0..MAX_LEVELS {
        let seen = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let file = source.source.as_deref().and_then(|source| source.strip_prefix('='))?;
            if !files.iter().any(|own| own == file) {
                return None;
            }
            let mut text = format!("{file}:{}", frame.current_line().unwrap_or_default());
            match frame.names().name {
                Some(name) => drop(write!(text, " in {}", clean(&name, 60))),
                // The top level, the tool's function or an anonymous function: Luau does not distinguish them.
                None => text.push_str(" in the script"),
            }
            Some(text)
        });
        match seen {
            None => break,
            Some(Some(frame)) => frames.push(frame),
            Some(None) => {}
        }
        if frames.len() >= max {
            break;
        }
    }
    frames
}

/// Completes the error of a call for its caller: adds the file if the message has no location, and advice on raising an
/// exceeded limit. `memory`: the call's limit in bytes.
pub(super) fn with_location(error: ToolError, file: &str, memory: u64) -> ToolError {
    let advice = match error.kind {
        ToolErrorKind::Timeout => String::from("; if it needs longer, raise :timeout in the spec"),
        ToolErrorKind::Memory => {
            format!(" of {} KiB; if it needs more, raise :memory in the spec", memory.div_ceil(1024))
        }
        ToolErrorKind::Load | ToolErrorKind::Script | ToolErrorKind::Unserialisable => String::new(),
        // These messages are written for the model, or are about the call and not the script.
        ToolErrorKind::Failure
        | ToolErrorKind::ErrorResult
        | ToolErrorKind::UnknownTool
        | ToolErrorKind::InvalidArguments
        | ToolErrorKind::InvalidResult
        | ToolErrorKind::Permission
        | ToolErrorKind::Canceled
        | ToolErrorKind::Interrupted
        | ToolErrorKind::Internal => return error,
    };
    let innermost = error.details.as_deref().and_then(|details| details.lines().next()?.split(" in ").next());
    let location = match innermost {
        Some(location) if error.message.starts_with(location) => String::new(),
        _ if error.message.starts_with(file) => String::new(),
        Some(location) => format!("{location}: "),
        None => format!("{file}: "),
    };
    ToolError { message: format!("{location}{}{advice}", error.message), ..error }
}

/// Cleans `text` and truncates it to the maximum length of a message.
pub(super) fn message(text: &str) -> String {
    clean(text, MAX_MESSAGE)
}

/// Replaces hidden characters in `text` and truncates it to `max` characters.
pub(super) fn clean(text: &str, max: usize) -> String {
    let mut cleaned = String::with_capacity(text.len().min(max * 4));
    for (index, character) in text.chars().enumerate() {
        if index >= max {
            cleaned.push('…');
            break;
        }
        cleaned.push(match character {
            _ if is_readable(character) => character,
            _ => '\u{FFFD}',
        });
    }
    cleaned
}

/// Returns a short description of any value, without running script code.
pub(super) fn describe(value: &LuaValue) -> String {
    match value {
        LuaValue::Nil => String::from("nil"),
        LuaValue::Boolean(flag) => flag.to_string(),
        LuaValue::Integer(integer) => integer.to_string(),
        LuaValue::Number(number) => number.to_string(),
        LuaValue::String(text) => clean(&beginning(text), MAX_MESSAGE),
        LuaValue::Error(error) => clean(&root(error).to_string(), MAX_MESSAGE),
        _ => match type_name(value) {
            "json.null" => String::from("null"),
            name => format!("a {name}"),
        },
    }
}

fn is_marked(table: &Table, mark: &Table) -> bool {
    table.metatable().is_some_and(|metatable| metatable.to_pointer() == mark.to_pointer())
}

fn message_of(table: &Table) -> Option<String> {
    match table.raw_get::<LuaValue>("message") {
        Ok(LuaValue::String(text)) => Some(beginning(&text)),
        _ => None,
    }
}

/// Returns at least as much of the start of `text` as fits into a message: a script may raise a text as large as its
/// memory limit.
fn beginning(text: &LuaString) -> String {
    let bytes = text.as_bytes();
    String::from_utf8_lossy(bytes.get(..bytes.len().min(MAX_MESSAGE * 4 + 4)).unwrap_or_default())
        .into_owned()
}

/// Returns the root cause of `error`.
fn root(error: &LuaError) -> &LuaError {
    match error {
        LuaError::CallbackError { cause, .. } | LuaError::WithContext { cause, .. } => {
            root(Arc::as_ref(cause))
        }
        other => other,
    }
}

/// The chunk name of the prelude. Users do not see it.
pub(super) const PRELUDE_NAME: &str = "deftool";

/// Removes the prelude's location from `message`, the error of a library function that the prelude called.
pub(super) fn outside_prelude(message: &str) -> Option<&str> {
    let (line, rest) = message.strip_prefix(PRELUDE_NAME)?.strip_prefix(':')?.split_once(": ")?;
    line.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
}

const YIELD_ACROSS_C_CALL: &str = "attempt to yield across metamethod/C-call boundary";

/// Rewrites messages of Luau that do not help a script's author.
fn friendly(message: &str) -> String {
    let message = outside_prelude(message).unwrap_or(message);
    if message.contains(YIELD_ACROSS_C_CALL) {
        return message.replace(
            YIELD_ACROSS_C_CALL,
            "cannot wait here: a script cannot wait inside a sort comparator, a gsub callback or a metamethod",
        );
    }
    message.to_owned()
}

/// Returns the name of a value's type, as script authors know it.
pub(super) fn type_name(value: &LuaValue) -> &'static str {
    match value {
        LuaValue::LightUserData(data) if data.0.is_null() => "json.null",
        LuaValue::LightUserData(_) | LuaValue::UserData(_) | LuaValue::Other(_) => "userdata",
        LuaValue::Integer(_) | LuaValue::Number(_) => "number",
        _ => value.type_name(),
    }
}
