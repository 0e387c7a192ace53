//! `log.debug`, `log.info`, `log.warn`, `log.error`, and `print`, which is `log.info`. Never stdout.
//!
//! Arguments are joined by tabs. Tables are named, not printed: no `__tostring` runs here; use `json.encode`.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table};

use super::{Host, LogLevel, MAX_LINE};
use crate::script::error::describe;

pub(super) fn table(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, level) in [
        ("debug", LogLevel::Debug),
        ("info", LogLevel::Info),
        ("warn", LogLevel::Warn),
        ("error", LogLevel::Error),
    ] {
        table.raw_set(name, logger(lua, host, level)?)?;
    }
    Ok(table)
}

pub(super) fn print(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Function> {
    logger(lua, host, LogLevel::Info)
}

fn logger(lua: &Lua, host: &Rc<Host>, level: LogLevel) -> mlua::Result<Function> {
    let host = Rc::clone(host);
    lua.create_function(move |_, arguments: MultiValue| {
        let mut line = String::new();
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                line.push('\t');
            }
            line.push_str(&describe(argument));
            if line.len() > MAX_LINE * 4 {
                break;
            }
        }
        host.log(level, &line);
        Ok(())
    })
}
