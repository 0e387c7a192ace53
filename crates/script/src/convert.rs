//! Conversion of JSON to Lua values and back, with limits.
//!
//! Input: JSON whose integers a Lua number represents exactly (up to 2^53). Output: JSON with sorted keys, so that
//! equal results have equal text. Values without an exact JSON representation are never dropped or rounded: they are
//! errors with a path (`.items[2]`). These are functions, userdata, cycles, NaN and infinities, sparse and mixed
//! tables, strings that are not UTF-8, and more than [`MAX_DEPTH`] levels, [`MAX_NODES`] values or [`MAX_BYTES`] bytes.
//!
//! Metatables are ignored, except the one that marks a `json.array`. No script code runs here.

use std::fmt::{self, Write as _};

use deftool_lang::schema::Arguments;
use deftool_lang::tool::{Attachment, ToolError, ToolErrorKind, ToolOutput, attach};
use mlua::{Lua, LuaString, Table, Value as LuaValue};
use serde_json::{Number, Value};

use super::error::{Raised, clean, describe, message, read_error, type_name};
use super::host::ResultMarks;

/// Maximum nesting depth of a result.
pub(super) const MAX_DEPTH: usize = 64;
/// Maximum number of values in a result.
pub(super) const MAX_NODES: usize = 100_000;
/// Maximum size of a result: strings, keys and punctuation, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The largest integer up to which a Lua number represents every integer exactly.
pub(super) const MAX_EXACT: i64 = 1 << 53;
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// The treatment of JSON integers beyond 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BigIntegers {
    /// An error.
    Reject,
    /// Converted to a string of their digits.
    String,
}

/// An error for a value that cannot be converted, with its path.
#[derive(Debug)]
pub(super) struct ConversionError {
    /// The reason.
    pub(super) reason: Reason,
    /// The path, innermost step first.
    steps: Vec<Step>,
}

/// The reason why a value cannot be converted.
#[derive(Debug)]
pub(super) enum Reason {
    /// A Lua type without a JSON equivalent.
    Type(&'static str),
    /// Another reason, as one clause.
    Other(String),
    /// The Lua state failed, usually because it is out of memory.
    Lua(mlua::Error),
}

#[derive(Debug)]
enum Step {
    Key(String),
    /// The index, from 0 as in JSON.
    Index(usize),
}

impl ConversionError {
    fn new(reason: Reason) -> Self {
        Self { reason, steps: Vec::new() }
    }

    fn other(reason: impl Into<String>) -> Self {
        Self::new(Reason::Other(reason.into()))
    }

    fn within(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Returns the path, as in `.items[2].name`, or an empty string for the whole value. Truncates long paths and keys.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            if path.len() > 400 {
                path.push('…');
                break;
            }
            match step {
                Step::Key(key) => {
                    path.push('.');
                    path.push_str(&clean(key, 60));
                }
                Step::Index(index) => drop(write!(path, "[{index}]")),
            }
        }
        path
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(name) => f.write_str(name),
            Self::Other(reason) => f.write_str(reason),
            Self::Lua(error) => write!(f, "{error}"),
        }
    }
}

impl From<mlua::Error> for ConversionError {
    fn from(error: mlua::Error) -> Self {
        Self::new(Reason::Lua(error))
    }
}

/// Converts `value` to a Lua value. Arrays get the metatable `array_mark`, so that an empty array is not taken for an
/// object.
///
/// # Errors
/// When `value` contains an integer beyond 2^53 and `big` rejects it, or the state is out of memory.
pub(super) fn to_lua(
    lua: &Lua,
    value: &Value,
    array_mark: &Table,
    big: BigIntegers,
) -> Result<LuaValue, ConversionError> {
    Ok(match value {
        Value::Null => LuaValue::NULL,
        Value::Bool(flag) => LuaValue::Boolean(*flag),
        Value::Number(number) => number_to_lua(lua, number, big)?,
        Value::String(text) => LuaValue::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                let item = to_lua(lua, item, array_mark, big)
                    .map_err(|failure| failure.within(Step::Index(index)))?;
                table.raw_seti(index + 1, item)?;
            }
            table.set_metatable(Some(array_mark.clone()))?;
            LuaValue::Table(table)
        }
        Value::Object(members) => {
            let table = lua.create_table_with_capacity(0, members.len())?;
            for (key, member) in members {
                let member = to_lua(lua, member, array_mark, big)
                    .map_err(|failure| failure.within(Step::Key(key.clone())))?;
                table.raw_set(key.as_str(), member)?;
            }
            LuaValue::Table(table)
        }
    })
}

/// Converts the member `name` of `arguments`, or returns nil if it is missing. `integer`: its schema's type is
/// `integer`.
pub(super) fn argument_to_lua(
    lua: &Lua,
    arguments: &Arguments,
    name: &str,
    integer: bool,
    array_mark: &Table,
) -> Result<LuaValue, ConversionError> {
    let Some(value) = arguments.get(name) else { return Ok(LuaValue::Nil) };
    if integer && value.as_f64().is_some_and(|number| number.abs() > MAX_EXACT_FLOAT) {
        return Err(beyond_exact(value).within(Step::Key(name.to_owned())));
    }
    to_lua(lua, value, array_mark, BigIntegers::Reject)
        .map_err(|failure| failure.within(Step::Key(name.to_owned())))
}

/// Converts `value` to JSON. `array_mark` is the metatable that marks arrays.
///
/// # Errors
/// When the module documentation lists the value as an error.
pub(super) fn to_json(value: &LuaValue, array_mark: &Table) -> Result<Value, ConversionError> {
    let mut writer = Writer { nodes: 0, bytes: 0, open: Vec::new(), array_mark, media: None };
    writer.value(value)
}

/// Converts the result of a call. Each table from `tool.image` and `tool.audio` becomes an attachment, and its line in the
/// value.
///
/// # Errors
/// As [`to_json`].
pub(super) fn to_output(value: &LuaValue, marks: &ResultMarks) -> Result<ToolOutput, ConversionError> {
    let media = Some((&marks.media, Vec::new()));
    let mut writer = Writer { nodes: 0, bytes: 0, open: Vec::new(), array_mark: &marks.array, media };
    let value = writer.value(value)?;
    let attachments = writer.media.map(|(_, attachments)| attachments).unwrap_or_default();
    Ok(ToolOutput { value, attachments })
}

fn number_to_lua(lua: &Lua, number: &Number, big: BigIntegers) -> Result<LuaValue, ConversionError> {
    if let Some(integer) = number.as_i64()
        && (-MAX_EXACT..=MAX_EXACT).contains(&integer)
    {
        return Ok(LuaValue::Integer(integer));
    }
    if number.is_f64() {
        return Ok(LuaValue::Number(number.as_f64().unwrap_or_default()));
    }
    match big {
        BigIntegers::Reject => Err(beyond_exact(number)),
        BigIntegers::String => Ok(LuaValue::String(lua.create_string(number.to_string())?)),
    }
}

fn beyond_exact(number: &impl fmt::Display) -> ConversionError {
    ConversionError::other(format!(
        "the integer {number} is beyond 2^53, where a Lua number is no longer exact"
    ))
}

struct Writer<'m> {
    nodes: usize,
    bytes: usize,
    /// The tables being written, outermost first.
    open: Vec<*const std::ffi::c_void>,
    array_mark: &'m Table,
    /// In a result: the mark of images and audio, and those that were found.
    media: Option<(&'m Table, Vec<Attachment>)>,
}

impl Writer<'_> {
    fn value(&mut self, value: &LuaValue) -> Result<Value, ConversionError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(ConversionError::other(format!("more than {MAX_NODES} values")));
        }
        self.spend(2)?;
        match value {
            LuaValue::Nil => Ok(Value::Null),
            LuaValue::Boolean(flag) => Ok(Value::Bool(*flag)),
            LuaValue::Integer(integer) if integer.unsigned_abs() <= MAX_EXACT as u64 => {
                Ok(Value::from(*integer))
            }
            // A float that mlua represents as an integer; JSON gets the original float.
            #[allow(clippy::cast_precision_loss)]
            LuaValue::Integer(integer) => float(*integer as f64),
            LuaValue::Number(number) => float(*number),
            LuaValue::String(text) => self.text(text).map(Value::String),
            LuaValue::Table(table) => self.table(table),
            LuaValue::LightUserData(data) if data.0.is_null() => Ok(Value::Null),
            _ => Err(ConversionError::new(Reason::Type(type_name(value)))),
        }
    }

    fn text(&mut self, text: &LuaString) -> Result<String, ConversionError> {
        let bytes = text.as_bytes();
        self.spend(bytes.len())?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(ConversionError::other(format!(
                "a string that is not UTF-8 (at byte {})",
                error.valid_up_to() + 1
            ))),
        }
    }

    fn table(&mut self, table: &Table) -> Result<Value, ConversionError> {
        let address = table.to_pointer();
        if self.open.contains(&address) {
            return Err(ConversionError::other("a table that contains itself"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(ConversionError::other(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.open.push(address);
        let length = table.raw_len();
        // Checks for a metatable first: this is cheaper than creating a handle for it.
        let mark = if table.has_metatable() { table.metatable() } else { None };
        let is = |known: &Table| mark.as_ref().is_some_and(|mark| mark.to_pointer() == known.to_pointer());
        if let Some((media, attachments)) = &mut self.media
            && is(media)
        {
            self.open.pop();
            let bytes: LuaString = table.raw_get("bytes")?;
            let line = attach(attachments, Attachment::new(&*bytes.as_bytes(), ""));
            return Ok(Value::String(line));
        }
        let marked = is(self.array_mark);
        let written = if length > 0 || marked { self.array(table, length) } else { self.object(table) };
        self.open.pop();
        written
    }

    fn array(&mut self, table: &Table, length: usize) -> Result<Value, ConversionError> {
        if length > MAX_NODES {
            return Err(ConversionError::other(format!("more than {MAX_NODES} values")));
        }
        let mut items = vec![Value::Null; length];
        let mut seen = 0;
        let mut failure = None;
        let walked = table.for_each(|key: LuaValue, value: LuaValue| {
            let error = match self.item(&key, &value, &mut items) {
                Ok(()) => {
                    seen += 1;
                    return Ok(());
                }
                Err(error) => error,
            };
            failure = Some(error);
            Err(mlua::Error::StackError)
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        walked?;
        if seen == length {
            Ok(Value::Array(items))
        } else {
            Err(ConversionError::other("a sparse table (an array with holes); fill them with json.null"))
        }
    }

    fn item(&mut self, key: &LuaValue, value: &LuaValue, items: &mut [Value]) -> Result<(), ConversionError> {
        let slot = match key {
            LuaValue::Integer(index) => usize::try_from(*index)
                .ok()
                .and_then(|index| index.checked_sub(1))
                .and_then(|index| items.get_mut(index).map(|slot| (index, slot))),
            LuaValue::String(_) => {
                return Err(ConversionError::other(format!(
                    "a mixed table (an array with the key {})",
                    describe(key)
                )));
            }
            _ => None,
        };
        let Some((index, slot)) = slot else {
            return Err(ConversionError::other(format!(
                "a sparse table (an array of {} with the key {})",
                items.len(),
                describe(key)
            )));
        };
        *slot = self.value(value).map_err(|failure| failure.within(Step::Index(index)))?;
        Ok(())
    }

    fn object(&mut self, table: &Table) -> Result<Value, ConversionError> {
        let mut members: Vec<(String, Value)> = Vec::new();
        let mut failure = None;
        let walked = table.for_each(|key: LuaValue, value: LuaValue| {
            match self.member(&key, &value) {
                Ok(member) => members.push(member),
                Err(error) => {
                    failure = Some(error);
                    // Any error ends the iteration; `failure` is the one that is reported.
                    return Err(mlua::Error::StackError);
                }
            }
            Ok(())
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        walked?;
        members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(Value::Object(members.into_iter().collect()))
    }

    fn member(&mut self, key: &LuaValue, value: &LuaValue) -> Result<(String, Value), ConversionError> {
        let LuaValue::String(name) = key else {
            return Err(match key {
                LuaValue::Integer(_) | LuaValue::Number(_) => ConversionError::other(format!(
                    "a sparse table (the key {} and no item 1)",
                    describe(key)
                )),
                _ => ConversionError::other(format!("a key that is a {}", type_name(key))),
            });
        };
        let name = self.text(name)?;
        match self.value(value) {
            Ok(value) => Ok((name, value)),
            Err(failure) => Err(failure.within(Step::Key(name))),
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ConversionError> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            return Err(ConversionError::other(format!("larger than {} KiB", MAX_BYTES / 1024)));
        }
        Ok(())
    }
}

fn float(number: f64) -> Result<Value, ConversionError> {
    match Number::from_f64(number) {
        Some(number) => Ok(Value::Number(number)),
        None if number.is_nan() => Err(ConversionError::other("NaN")),
        None => Err(ConversionError::other("an infinite number")),
    }
}

/// Returns the error for a result that cannot be converted to JSON.
pub(super) fn unserialisable(failure: &ConversionError) -> ToolError {
    let path = failure.path();
    match &failure.reason {
        Reason::Lua(error) => match read_error(error) {
            Raised::Memory => {
                ToolError::new(ToolErrorKind::Memory, "the script was stopped at its memory limit")
            }
            Raised::Failure(message) | Raised::Located(message) | Raised::Host(_, message) => {
                ToolError::new(ToolErrorKind::Internal, self::message(&message))
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

/// Returns the error for an argument that cannot be converted to a Lua value.
pub(super) fn bad_argument(failure: &ConversionError) -> ToolError {
    match &failure.reason {
        Reason::Lua(_) => {
            ToolError::new(ToolErrorKind::Memory, "the arguments do not fit into the script's memory limit")
        }
        reason @ (Reason::Type(_) | Reason::Other(_)) => {
            let path = failure.path();
            ToolError::new(ToolErrorKind::InvalidArguments, format!("{path}: {reason}")).at(path)
        }
    }
}
