//! Lua errors as [`ToolError`]s: message, place and traceback, safe to print.
//!
//! A script may raise anything: tables, functions, a megabyte of escape codes. Nothing here runs script code (no
//! `__tostring`), every text is cut, and control characters are replaced, so that a message can go to a terminal and
//! to a model. Tracebacks list the script's own frames only.

use std::fmt::Write as _;
use std::sync::Arc;

use mlua::{Error as LuaError, Lua, LuaString, Table, Value as LuaValue};

use super::convert::{Reason, Refusal, type_name};
use crate::text::is_control;
use crate::tool::{ToolError, ToolErrorKind};

/// Longest message, in characters.
const MAX_MESSAGE: usize = 2_000;
/// Most frames that a traceback lists.
const MAX_FRAMES: usize = 20;
/// Deepest frame that is looked at for one.
const MAX_LEVELS: usize = 250;

/// Luau's message for an allocation beyond the limit; it has no position, and the prelude sees to it that no script
/// raises a text of its own that is the same.
pub(super) const OUT_OF_MEMORY: &str = "not enough memory";

/// A failure of a host function, with the kind that the call ends with unless the script catches it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(super) struct HostError {
    pub(super) kind: ToolErrorKind,
    pub(super) message: String,
}

impl HostError {
    /// An error for Lua, of `kind`.
    pub(super) fn lua(kind: ToolErrorKind, message: impl Into<String>) -> LuaError {
        LuaError::external(Self { kind, message: message.into() })
    }

    /// An error that is the script's mistake.
    pub(super) fn script(message: impl Into<String>) -> LuaError {
        Self::lua(ToolErrorKind::Script, message)
    }
}

/// What a raised value says, before places are added.
pub(super) enum Raised {
    /// An expected failure, from `tool.failure`.
    Failure(String),
    /// The state is out of memory.
    Memory,
    /// A message that already names its place, or needs none.
    Placed(String),
    /// A host function's failure, whose place is where the script called it.
    Host(ToolErrorKind, String),
}

/// Reads a raised value. `failure_mark` is the metatable of `tool.failure`'s tables.
pub(super) fn read_raised(value: &LuaValue, failure_mark: &Table) -> Raised {
    match value {
        LuaValue::String(text) if text.as_bytes() == OUT_OF_MEMORY.as_bytes() => Raised::Memory,
        LuaValue::String(text) => Raised::Placed(friendly(&beginning(text))),
        LuaValue::Error(error) => read_error(error),
        LuaValue::Table(table) if is_marked(table, failure_mark) => {
            Raised::Failure(message_of(table).unwrap_or_else(|| String::from("the tool failed")))
        }
        LuaValue::Table(table) => Raised::Placed(message_of(table).unwrap_or_else(|| describe(value))),
        _ => Raised::Placed(describe(value)),
    }
}

/// Reads an error of mlua's own or of a host function.
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

/// `file:line: ` of the innermost frame of the script's own `files`, or nothing.
pub(super) fn place(lua: &Lua, files: &[String]) -> String {
    frames(lua, files, 1)
        .pop()
        .map(|frame| format!("{}: ", frame.split(' ').next().unwrap_or_default()))
        .unwrap_or_default()
}

/// The script's frames, innermost first, as lines `file:line in name`.
pub(super) fn traceback(lua: &Lua, files: &[String]) -> Option<String> {
    let frames = frames(lua, files, MAX_FRAMES);
    if frames.is_empty() { None } else { Some(frames.join("\n")) }
}

fn frames(lua: &Lua, files: &[String], most: usize) -> Vec<String> {
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
                // The top level, the tool's function, or one without a name: Luau tells them apart by nothing.
                None => text.push_str(" in the script"),
            }
            Some(text)
        });
        match seen {
            None => break,
            Some(Some(frame)) => frames.push(frame),
            Some(None) => {}
        }
        if frames.len() >= most {
            break;
        }
    }
    frames
}

/// The error of a call as its caller gets it: which file, where the place is not told yet, and what to do about a
/// limit. `memory`: the call's limit in bytes.
pub(super) fn placed(error: ToolError, file: &str, memory: u64) -> ToolError {
    let advice = match error.kind {
        ToolErrorKind::Timeout => String::from("; if it needs longer, raise :timeout in the spec"),
        ToolErrorKind::Memory => {
            format!(" of {} KiB; if it needs more, raise :memory in the spec", memory.div_ceil(1024))
        }
        ToolErrorKind::Load | ToolErrorKind::Script | ToolErrorKind::Unserialisable => String::new(),
        // Worded for the model, or about the call rather than the script.
        ToolErrorKind::Failure
        | ToolErrorKind::UnknownTool
        | ToolErrorKind::InvalidArguments
        | ToolErrorKind::Permission
        | ToolErrorKind::Canceled
        | ToolErrorKind::Internal => return error,
    };
    let innermost = error.details.as_deref().and_then(|details| details.lines().next()?.split(" in ").next());
    let place = match innermost {
        Some(place) if error.message.starts_with(place) => String::new(),
        _ if error.message.starts_with(file) => String::new(),
        Some(place) => format!("{place}: "),
        None => format!("{file}: "),
    };
    ToolError { message: format!("{place}{}{advice}", error.message), ..error }
}

/// A result that is not JSON.
pub(super) fn unserialisable(refusal: &Refusal) -> ToolError {
    let path = refusal.path();
    match &refusal.reason {
        Reason::Lua(error) => match read_error(error) {
            Raised::Memory => {
                ToolError::new(ToolErrorKind::Memory, "the script was stopped at its memory limit")
            }
            Raised::Failure(message) | Raised::Placed(message) | Raised::Host(_, message) => {
                ToolError::new(ToolErrorKind::Internal, clean(&message, MAX_MESSAGE))
            }
        },
        reason @ (Reason::Type(_) | Reason::Other(_)) => {
            let place = if path.is_empty() { String::new() } else { format!(" at {path}") };
            let error = ToolError::new(
                ToolErrorKind::Unserialisable,
                format!("unserialisable result{place}: {reason}"),
            );
            if path.is_empty() { error } else { error.at(path) }
        }
    }
}

/// An argument that Lua cannot hold.
pub(super) fn bad_argument(refusal: &Refusal) -> ToolError {
    match &refusal.reason {
        Reason::Lua(_) => {
            ToolError::new(ToolErrorKind::Memory, "the arguments do not fit into the script's memory limit")
        }
        reason @ (Reason::Type(_) | Reason::Other(_)) => {
            let path = refusal.path();
            ToolError::new(ToolErrorKind::InvalidArguments, format!("{path}: {reason}")).at(path)
        }
    }
}

/// `text` as a message: cut and without control characters.
pub(super) fn message(text: &str) -> String {
    clean(text, MAX_MESSAGE)
}

/// `text` without control, escape and direction-changing characters, cut to `most` characters.
pub(super) fn clean(text: &str, most: usize) -> String {
    let mut cleaned = String::with_capacity(text.len().min(most * 4));
    for (index, character) in text.chars().enumerate() {
        if index >= most {
            cleaned.push('…');
            break;
        }
        cleaned.push(match character {
            '\n' | '\t' => character,
            _ if is_control(character) => '\u{FFFD}',
            _ => character,
        });
    }
    cleaned
}

/// A short text for any value; runs no script code.
pub(super) fn describe(value: &LuaValue) -> String {
    match value {
        LuaValue::Nil => String::from("nil"),
        LuaValue::Boolean(flag) => flag.to_string(),
        LuaValue::Integer(integer) => integer.to_string(),
        LuaValue::Number(number) => number.to_string(),
        LuaValue::String(text) => clean(&beginning(text), MAX_MESSAGE),
        LuaValue::Error(error) => clean(&root(error).to_string(), MAX_MESSAGE),
        LuaValue::LightUserData(_)
        | LuaValue::Vector(_)
        | LuaValue::Table(_)
        | LuaValue::Function(_)
        | LuaValue::Thread(_)
        | LuaValue::UserData(_)
        | LuaValue::Buffer(_)
        | LuaValue::Other(_) => match type_name(value) {
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

/// As much of `text` as a message may have: what a script raises may be as long as its memory.
fn beginning(text: &LuaString) -> String {
    let bytes = text.as_bytes();
    String::from_utf8_lossy(bytes.get(..bytes.len().min(MAX_MESSAGE * 4 + 4)).unwrap_or_default())
        .into_owned()
}

/// The first cause of `error`.
fn root(error: &LuaError) -> &LuaError {
    match error {
        LuaError::CallbackError { cause, .. } | LuaError::WithContext { cause, .. } => {
            root(Arc::as_ref(cause))
        }
        other => other,
    }
}

/// The name of the prelude's chunk, which a script's author need not know.
pub(super) const PRELUDE_NAME: &str = "deftool";

/// `message` without the prelude's place, when a library function raised it that the prelude called.
pub(super) fn outside_prelude(message: &str) -> Option<&str> {
    let (line, rest) = message.strip_prefix(PRELUDE_NAME)?.strip_prefix(':')?.split_once(": ")?;
    line.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
}

const ACROSS: &str = "attempt to yield across metamethod/C-call boundary";

/// Luau's own messages, where they do not say what a script's author needs.
fn friendly(message: &str) -> String {
    let message = outside_prelude(message).unwrap_or(message);
    if message.contains(ACROSS) {
        return message.replace(
            ACROSS,
            "cannot wait here: a script cannot wait inside a sort comparator, a gsub callback or a metamethod",
        );
    }
    message.to_owned()
}
