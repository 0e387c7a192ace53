//! `tool`: the context of the current call. `name`, `request_id`, `job_name`, `worker` and `idempotency_key` are strings
//! (empty outside of a request); `deadline` is the number of seconds left. `log(level, text)`; `progress(fraction, text)` (fraction from
//! 0 to 1, or nil); `failure(message)` creates an expected failure for `error(tool.failure("…"))`, with a message for
//! the model. `image(bytes)` and `audio(bytes)` create parts of a result beside its JSON.
//!
//! The fields are computed on each read, and are nil while a script loads: Luau may resolve `tool.name` once at load,
//! and would then return the value of the first call to all calls.

use std::rc::Rc;

use deftool_lang::tool::{MAX_ATTACHMENT, MediaType};
use mlua::{Lua, LuaString, MultiValue, Table, Value as LuaValue};

use super::arguments::{argument_error, number_argument, text_argument};
use super::docs::{FunctionDoc, TableDoc, ValueDoc};
use super::state::{Host, Marks, Phase};
use crate::error::HostError;
use crate::events::LogLevel;

pub(super) const DOC: TableDoc = TableDoc {
    types: "type Failure = { message: string }\n\
            type Media = { read bytes: string }",
    values: &[
        ValueDoc { name: "name", luau_type: "string", about: "The name of the tool." },
        ValueDoc { name: "request_id", luau_type: "string", about: "The ID of the request, or empty outside of a request." },
        ValueDoc { name: "job_name", luau_type: "string", about: "The name of the job, or empty." },
        ValueDoc { name: "worker", luau_type: "string", about: "The name of the worker, or empty." },
        ValueDoc {
            name: "idempotency_key",
            luau_type: "string",
            about: "The idempotency key of the call: the same each time this call runs, for a tool with `:effect keyed` that is called again after a crash; `http` sends it as the header `Idempotency-Key`. Empty outside of a request.",
        },
        ValueDoc { name: "deadline", luau_type: "number", about: "Seconds until the call times out." },
    ],
    functions: &[
        FunctionDoc::new(
            "log",
            "(level: \"debug\" | \"info\" | \"warn\" | \"error\", text: string) -> ()",
            "Logs a line; see `log`.",
        ),
        FunctionDoc::new(
            "progress",
            "(fraction: number?, text: string?) -> ()",
            "Reports the progress of the call, from 0 to 1, or nil if unknown.",
        ),
        FunctionDoc::new(
            "failure",
            "(message: string) -> Failure",
            "Creates an expected failure to raise with `error` or to return. The model receives the message without location and traceback.",
        )
        .with_example("error(tool.failure(\"unknown city\"))"),
        FunctionDoc::new(
            "image",
            "(bytes: string) -> Media",
            "Creates an image to return, alone or anywhere in the result. The model receives it if its server takes images, otherwise a line with its type and size. It must be PNG, JPEG, GIF or WebP, with at most 20 MB.",
        ),
        FunctionDoc::new(
            "audio",
            "(bytes: string) -> Media",
            "Creates audio to return, as `tool.image`. It must be WAV or MP3, with at most 20 MB.",
        ),
    ],
    ..TableDoc::new("tool", "The current call. The fields are nil while the script loads.")
};

pub(super) fn table(lua: &Lua, host: &Rc<Host>, marks: &Marks) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let shared = Rc::clone(host);
    table.raw_set(
        "log",
        lua.create_function(move |_, arguments: MultiValue| {
            let level = text_argument("tool.log", &arguments, 0)?;
            let level = match level.as_str() {
                "debug" => LogLevel::Debug,
                "info" => LogLevel::Info,
                "warn" => LogLevel::Warn,
                "error" => LogLevel::Error,
                _ => return Err(argument_error("tool.log", "debug, info, warn or error", arguments.front())),
            };
            shared.log(level, &text_argument("tool.log", &arguments, 1)?);
            Ok(())
        })?,
    )?;
    let shared = Rc::clone(host);
    table.raw_set(
        "progress",
        lua.create_function(move |_, arguments: MultiValue| {
            let fraction = match arguments.front() {
                None | Some(LuaValue::Nil) => None,
                Some(_) => Some(number_argument("tool.progress", &arguments, 0, "a number from 0 to 1")?),
            };
            let text = match arguments.get(1) {
                None | Some(LuaValue::Nil) => String::new(),
                Some(_) => text_argument("tool.progress", &arguments, 1)?,
            };
            shared.progress(fraction.map(|fraction| fraction.clamp(0.0, 1.0)), &text);
            Ok(())
        })?,
    )?;
    let failure = marks.failure.clone();
    table.raw_set(
        "failure",
        lua.create_function(move |lua, arguments: MultiValue| {
            let message = text_argument("tool.failure", &arguments, 0)?;
            let table = lua.create_table()?;
            table.raw_set("message", message)?;
            table.set_metatable(Some(failure.clone()))?;
            Ok(table)
        })?,
    )?;
    for (name, is_image) in [("image", true), ("audio", false)] {
        let media = marks.media.clone();
        let create =
            move |lua: &Lua, arguments: MultiValue| media_table(lua, &arguments, &media, name, is_image);
        table.raw_set(name, lua.create_function(create)?)?;
    }
    let metatable = lua.create_table()?;
    let shared = Rc::clone(host);
    metatable.raw_set(
        "__index",
        lua.create_function(move |lua, (_, key): (LuaValue, LuaValue)| match key {
            LuaValue::String(key) => field(lua, &shared, &key),
            _ => Ok(LuaValue::Nil),
        })?,
    )?;
    metatable.raw_set("__metatable", "the call's context")?;
    metatable.set_readonly(true);
    table.set_metatable(Some(metatable))?;
    Ok(table)
}

/// Creates the table of an image or of audio. It holds the Lua string, which counts towards the memory of the script.
fn media_table(
    lua: &Lua,
    arguments: &MultiValue,
    mark: &Table,
    name: &str,
    is_image: bool,
) -> mlua::Result<Table> {
    let function = format!("tool.{name}");
    let Some(LuaValue::String(bytes)) = arguments.front() else {
        return Err(argument_error(&function, "a string", arguments.front()));
    };
    let fails = |reason: &str| Err(HostError::script(format!("{function}: {reason}")));
    let length = bytes.as_bytes().len();
    if length > MAX_ATTACHMENT {
        return fails(&format!("{length} bytes are more than {MAX_ATTACHMENT}"));
    }
    if MediaType::of(&bytes.as_bytes()).is_none_or(|media_type| media_type.is_image() != is_image) {
        let formats = if is_image { "PNG, JPEG, GIF or WebP" } else { "WAV or MP3" };
        return fails(&format!("the bytes are not {formats}"));
    }
    let table = lua.create_table()?;
    table.raw_set("bytes", bytes)?;
    table.set_metatable(Some(mark.clone()))?;
    table.set_readonly(true);
    Ok(table)
}

fn field(lua: &Lua, host: &Host, key: &LuaString) -> mlua::Result<LuaValue> {
    if host.phase.get() == Phase::Idle {
        return Ok(LuaValue::Nil);
    }
    let context = host.context.borrow();
    let text = match key.as_bytes().as_ref() {
        b"name" => host.tool.as_str(),
        b"request_id" => context.request_id.as_str(),
        b"job_name" => context.job_name.as_str(),
        b"worker" => context.worker.as_str(),
        b"idempotency_key" => context.idempotency_key.as_str(),
        b"deadline" => {
            let left = host.control.borrow().as_ref().map_or(0.0, |control| control.seconds_left());
            return Ok(LuaValue::Number(left));
        }
        _ => return Ok(LuaValue::Nil),
    };
    Ok(LuaValue::String(lua.create_string(text)?))
}
