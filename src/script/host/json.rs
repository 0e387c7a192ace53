//! `json`: `decode(text [, { big_integers = "string" }])`, `encode(value)`, `array(table)`, `null`.
//!
//! `json.null` is JSON's null, distinct from nil, equal only to itself. `json.array{}` marks a table so that it stays
//! an array when empty; decoded arrays are marked. An integer beyond 2^53 is an error that names its path, unless
//! it is asked for as a string.

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use super::{FunctionDoc, Marks, TableDoc, ValueDoc, misuse};
use crate::script::convert::{self, BigIntegers, Reason, Refusal};
use crate::script::error::HostError;

/// Longest text that is decoded, in bytes; the decoded tree is briefly held outside the script's memory limit.
const MAX_TEXT: usize = 8 << 20;
/// Most commas, braces and brackets in it; a small object takes some hundred times its text.
const MAX_MARKS: usize = 100_000;

pub(super) const DOC: TableDoc = TableDoc {
    values: &[ValueDoc {
        name: "null",
        luau_type: "any",
        about: "JSON's null: distinct from nil, equal only to itself.",
    }],
    functions: &[
        FunctionDoc::new(
            "decode",
            "(text: string, options: { big_integers: \"string\"? }?) -> any",
            "The value of a JSON text. Arrays stay arrays when they are encoded again; null is `json.null`.",
        )
        .fails(
            "A text that is not JSON, is longer than 8 MiB or has more than 100,000 values; an integer beyond 2^53, by its \
             path, unless `big_integers = \"string\"` asks for its digits.",
        )
        .as_in("local body = json.decode('{\"n\": [1, 2]}')\nreturn body.n[1]"),
        FunctionDoc::new("encode", "(value: any) -> string", "A value as JSON, with sorted keys.").fails(
            "What has no honest JSON form, by its path: functions, cycles, NaN and infinities, sparse and mixed tables, \
             strings that are not UTF-8, more than 64 levels, 100,000 values or 1 MiB.",
        ),
        FunctionDoc::new(
            "array",
            "<T>(items: { T }?) -> { T }",
            "Marks a table as an array, so that it is `[]` and not `{}` when it is empty; returns it.",
        ),
    ],
    ..TableDoc::new("json", "JSON texts and Lua values.")
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
            other => Err(misuse("json.array", "a table", Some(&other))),
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
            let value = convert::to_json(&value, &array).map_err(|refusal| refuse("encode", refusal))?;
            lua.create_string(value.to_string())
        })?,
    )?;
    Ok(table)
}

fn decode(lua: &Lua, arguments: &MultiValue, array: &Table) -> mlua::Result<LuaValue> {
    let Some(LuaValue::String(text)) = arguments.front() else {
        return Err(misuse("json.decode", "a string", arguments.front()));
    };
    let big = match arguments.get(1) {
        Some(LuaValue::Table(options)) => match options.raw_get::<LuaValue>("big_integers")? {
            LuaValue::Nil => BigIntegers::Refuse,
            LuaValue::String(choice) if choice.as_bytes() == *b"string" => BigIntegers::String,
            other => return Err(misuse("json.decode", "big_integers = \"string\"", Some(&other))),
        },
        None | Some(LuaValue::Nil) => BigIntegers::Refuse,
        other => return Err(misuse("json.decode", "a table of options", other)),
    };
    let value: Value = {
        let text = text.as_bytes();
        if text.len() > MAX_TEXT {
            return Err(HostError::script(format!(
                "json.decode: the text has {} bytes, more than {MAX_TEXT}",
                text.len()
            )));
        }
        let marks = memchr::memchr3_iter(b',', b'[', b'{', &text).take(MAX_MARKS + 1).count();
        if marks > MAX_MARKS {
            return Err(HostError::script(format!("json.decode: more than {MAX_MARKS} values")));
        }
        serde_json::from_slice(&text).map_err(|error| HostError::script(format!("json.decode: {error}")))?
    };
    convert::to_lua(lua, &value, array, big).map_err(|refusal| refuse("decode", refusal))
}

fn refuse(function: &str, refusal: Refusal) -> mlua::Error {
    let path = refusal.path();
    match refusal.reason {
        Reason::Lua(error) => error,
        reason @ (Reason::Type(_) | Reason::Other(_)) => {
            let place = if path.is_empty() { String::new() } else { format!(" at {path}") };
            HostError::script(format!("json.{function}: cannot {function}{place}: {reason}"))
        }
    }
}
