//! `log.debug`, `log.info`, `log.warn` and `log.error`. `print` is the same as `log.info`. Nothing is written to
//! stdout.
//!
//! Arguments are joined by tabs. The contents of tables are not printed, and `__tostring` is not called; scripts use
//! `json.encode`.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table};

use super::docs::{FunctionDoc, TableDoc};
use super::state::Host;
use crate::error::describe;
use crate::events::LogLevel;
use crate::limits::MAX_LINE;

pub(super) const DOC: TableDoc = TableDoc {
    functions: &[
        FunctionDoc::new(
            "debug",
            "(...any) -> ()",
            "Logs details for the script's author. The command line does not show them.",
        ),
        FunctionDoc::new("info", "(...any) -> ()", "Logs information. `print` is the same."),
        FunctionDoc::new("warn", "(...any) -> ()", "Logs a warning."),
        FunctionDoc::new("error", "(...any) -> ()", "Logs an error. Does not raise it."),
    ],
    ..TableDoc::new(
        "log",
        "Log output on stderr, never part of the result. Arguments are joined by tabs. The contents of tables are not printed; use \
         `json.encode`. Lines are truncated to 2,000 characters. A call may log at most 1,000 lines.",
    )
};

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
