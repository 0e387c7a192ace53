//! `time`: `now()` (seconds since 1970, a float), `monotonic()` (seconds from an arbitrary start), `iso([t])`
//! (`2026-05-01T12:00:00Z`), `format(pattern [, t [, zone]])` (strftime; `zone` is an IANA name, by default UTC).

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use mlua::{Lua, MultiValue, Table, Value as LuaValue};

use super::arguments::{number_argument, text_argument};
use super::docs::{FunctionDoc, TableDoc};
use crate::control;
use crate::error::HostError;

/// Maximum length of a strftime pattern, in bytes.
const MAX_PATTERN: usize = 200;

pub(super) const DOC: TableDoc = TableDoc {
    functions: &[
        FunctionDoc::new("now", "() -> number", "Returns the seconds since 1970-01-01 UTC, with a fraction."),
        FunctionDoc::new("monotonic", "() -> number", "Returns the seconds since an arbitrary start. Never decreases."),
        FunctionDoc::new(
            "iso",
            "(time: number?) -> string",
            "Formats a time, by default the current time, as `2026-05-01T12:00:00Z`.",
        ),
        FunctionDoc::new(
            "format",
            "(pattern: string, time: number?, zone: string?) -> string",
            "Formats a time, by default the current time, with a strftime pattern. `zone` is an IANA name, by default UTC.",
        )
        .with_errors("The zone or a directive is unknown; the pattern is longer than 200 bytes.")
        .with_example("return time.format(\"%A %H:%M\", nil, \"Europe/Paris\")"),
    ],
    ..TableDoc::new("time", "Clocks and date formatting.")
};

pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("now", lua.create_function(|_, ()| Ok(Timestamp::now().as_duration().as_secs_f64()))?)?;
    table.raw_set(
        "monotonic",
        lua.create_function(|_, ()| Ok(Duration::from_nanos(control::now()).as_secs_f64()))?,
    )?;
    table.raw_set(
        "iso",
        lua.create_function(|_, arguments: MultiValue| {
            let time = timestamp("time.iso", &arguments, 0)?;
            Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        })?,
    )?;
    table.raw_set(
        "format",
        lua.create_function(|_, arguments: MultiValue| {
            let pattern = text_argument("time.format", &arguments, 0)?;
            if pattern.len() > MAX_PATTERN {
                return Err(HostError::script(format!(
                    "time.format: the pattern is longer than {MAX_PATTERN} bytes"
                )));
            }
            let time = timestamp("time.format", &arguments, 1)?;
            let zone = match arguments.get(2) {
                None | Some(LuaValue::Nil) => TimeZone::UTC,
                Some(_) => {
                    let name = text_argument("time.format", &arguments, 2)?;
                    TimeZone::get(&name)
                        .map_err(|error| HostError::script(format!("time.format: {error}")))?
                }
            };
            jiff::fmt::strtime::format(&pattern, &time.to_zoned(zone))
                .map_err(|error| HostError::script(format!("time.format: {error}")))
        })?,
    )?;
    Ok(table)
}

fn timestamp(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<Timestamp> {
    if matches!(arguments.get(index), None | Some(LuaValue::Nil)) {
        return Ok(Timestamp::now());
    }
    let seconds = number_argument(function, arguments, index, "a number of seconds since 1970")?;
    let millis = (seconds * 1e3).round();
    // Casting a float saturates. jiff rejects values that are out of its range.
    Timestamp::from_millisecond(millis as i64)
        .map_err(|_| HostError::script(format!("{function}: time {seconds} is out of range")))
}
