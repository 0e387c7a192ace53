//! `log.debug`, `log.info`, `log.warn`, `log.error`, and `print`, which is `log.info`. Never stdout.
//!
//! Arguments are joined by tabs. Tables are named, not printed: no `__tostring` runs here; use `json.encode`.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table};

use super::{FunctionDoc, Host, LogLevel, MAX_LINE, TableDoc};
use crate::script::error::describe;

pub(super) const DOC: TableDoc = TableDoc {
    functions: &[
        FunctionDoc::new(
            "debug",
            "(...any) -> ()",
            "Logs for the script's author: programs get it, the command line leaves it out.",
        ),
        FunctionDoc::new("info", "(...any) -> ()", "Logs what happened; `print` is the same."),
        FunctionDoc::new("warn", "(...any) -> ()", "Logs what is odd, but the call goes on."),
        FunctionDoc::new("error", "(...any) -> ()", "Logs what is wrong; raises nothing."),
    ],
    ..TableDoc::new(
        "log",
        "Lines for people: on stderr, never in the result. Arguments are joined by tabs; tables are named, not printed \
         (`json.encode` prints them). A line is cut at 2,000 characters, a call's lines at 1,000.",
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
