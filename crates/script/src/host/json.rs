//! `json`: `decode(text [, { big_integers = "string" }])`, `encode(value)`, `array(table)`, `null`.
//!
//! `json.null` represents JSON's null. It is not nil and equals only itself. `json.array{}` marks a table as an array,
//! so that it is encoded as `[]` when empty; decoded arrays are marked. An integer beyond 2^53 is an error that
//! contains its path, unless the script requests big integers as strings.

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use super::arguments::argument_error;
use super::docs::{FunctionDoc, TableDoc, ValueDoc};
use super::state::Marks;
use crate::convert::{self, BigIntegers, ConversionError, Reason};
use crate::error::HostError;

/// Maximum length of a text to decode, in bytes. The decoded tree is briefly held outside of the script's memory limit.
const MAX_TEXT: usize = 8 << 20;
/// Maximum number of commas, braces and brackets in such a text. A small object takes about a hundred times the size of
/// its text.
const MAX_SEPARATORS: usize = 100_000;

pub(super) const DOC: TableDoc = TableDoc {
    values: &[ValueDoc {
        name: "null",
        luau_type: "any",
        about: "JSON's null. It is not nil, and equals only itself.",
    }],
    functions: &[
        FunctionDoc::new(
            "decode",
            "(text: string, options: { big_integers: \"string\"? }?) -> any",
            "Decodes a JSON text. Decoded arrays are encoded as arrays again, even when empty. JSON's null becomes `json.null`.",
        )
        .with_errors(
            "The text is not JSON, is longer than 8 MiB or has more than 100,000 values; an integer is beyond 2^53. With \
             `big_integers = \"string\"` such integers become strings.",
        )
        .with_example("local body = json.decode('{\"n\": [1, 2]}')\nreturn body.n[1]"),
        FunctionDoc::new("encode", "(value: any) -> string", "Encodes a value as JSON with sorted keys.").with_errors(
            "The value cannot be represented in JSON: functions, cycles, NaN, infinities, sparse or mixed tables, strings that are not \
             UTF-8, more than 64 levels, 100,000 values or 1 MiB. The message contains the path.",
        ),
        FunctionDoc::new(
            "array",
            "<T>(items: { T }?) -> { T }",
            "Marks a table as an array and returns it. An empty array is encoded as `[]` instead of `{}`.",
        ),
    ],
    ..TableDoc::new("json", "JSON encoding and decoding.")
};

pub(super) fn table(lua: &Lua, marks: &Marks) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("null", LuaValue::NULL)?;
    let array = marks.array.clone();
    table.raw_set(
        "array",
        lua.create_function(move |lua, value: LuaValue| match value {
            LuaValue::Nil => {
                let table = lua.create_table()?;
                table.set_metatable(Some(array.clone()))?;
                Ok(table)
            }
            LuaValue::Table(table) if table.is_readonly() => {
                Err(HostError::script("json.array: the table is read-only"))
            }
            LuaValue::Table(table) => {
                table.set_metatable(Some(array.clone()))?;
                Ok(table)
            }
            other => Err(argument_error("json.array", "a table", Some(&other))),
        })?,
    )?;
    let array = marks.array.clone();
    table.raw_set(
        "decode",
        lua.create_function(move |lua, arguments: MultiValue| decode(lua, &arguments, &array))?,
    )?;
    let array = marks.array.clone();
    table.raw_set(
        "encode",
        lua.create_function(move |lua, value: LuaValue| {
            let value =
                convert::to_json(&value, &array).map_err(|error| conversion_error("encode", error))?;
            lua.create_string(value.to_string())
        })?,
    )?;
    Ok(table)
}

fn decode(lua: &Lua, arguments: &MultiValue, array: &Table) -> mlua::Result<LuaValue> {
    let Some(LuaValue::String(text)) = arguments.front() else {
        return Err(argument_error("json.decode", "a string", arguments.front()));
    };
    let big_integers = match arguments.get(1) {
        Some(LuaValue::Table(options)) => match options.raw_get::<LuaValue>("big_integers")? {
            LuaValue::Nil => BigIntegers::Reject,
            LuaValue::String(choice) if choice.as_bytes() == *b"string" => BigIntegers::String,
            other => return Err(argument_error("json.decode", "big_integers = \"string\"", Some(&other))),
        },
        None | Some(LuaValue::Nil) => BigIntegers::Reject,
        other => return Err(argument_error("json.decode", "a table of options", other)),
    };
    let value: Value = {
        let text = text.as_bytes();
        if text.len() > MAX_TEXT {
            return Err(HostError::script(format!(
                "json.decode: the text has {} bytes, more than {MAX_TEXT}",
                text.len()
            )));
        }
        let separators = memchr::memchr3_iter(b',', b'[', b'{', &text).take(MAX_SEPARATORS + 1).count();
        if separators > MAX_SEPARATORS {
            return Err(HostError::script(format!("json.decode: more than {MAX_SEPARATORS} values")));
        }
        serde_json::from_slice(&text).map_err(|error| HostError::script(format!("json.decode: {error}")))?
    };
    convert::to_lua(lua, &value, array, big_integers).map_err(|error| conversion_error("decode", error))
}

fn conversion_error(function: &str, error: ConversionError) -> mlua::Error {
    let path = error.path();
    match error.reason {
        Reason::Lua(error) => error,
        reason @ (Reason::Type(_) | Reason::Other(_)) => {
            let location = if path.is_empty() { String::new() } else { format!(" at {path}") };
            HostError::script(format!("json.{function}: cannot {function}{location}: {reason}"))
        }
    }
}
