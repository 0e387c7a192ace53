//! The host tables: the global tables that scripts can use in addition to Luau's libraries.
//!
//! The host tables of a Lua state are created once and are read-only. The state of a call (its context, deadline, tasks
//! and log budget) is in [`Host`], which all host functions share and which is reset between calls. Functions that wait
//! or do IO raise an error while the script's top level runs.

mod arguments;
mod docs;
mod env;
mod fs;
mod http;
mod json;
mod log;
mod process;
mod state;
mod task;
mod text;
mod time;
mod tool;

use std::rc::Rc;

use mlua::{Lua, Table};

pub use docs::{FunctionDoc, TableDoc, ValueDoc};
pub use fs::protect_folders;
pub use http::client_builder;
pub(crate) use process::command;
#[cfg(unix)]
pub use process::start_program;
pub(super) use state::{Host, Marks, Phase, ResultMarks, TaskThread};

use super::script::Script;

/// Returns the documentation of all host tables.
pub const fn host_tables() -> &'static [TableDoc] {
    const {
        &[
            json::DOC,
            text::DOC,
            time::DOC,
            task::DOC,
            log::DOC,
            tool::DOC,
            fs::DOC,
            http::DOC,
            process::DOC,
            env::DOC,
        ]
    }
}

/// Adds all host tables to `globals`, read-only.
pub(super) fn install(
    lua: &Lua,
    globals: &Table,
    host: &Rc<Host>,
    marks: &Marks,
    script: &Script,
) -> mlua::Result<()> {
    for (doc, table) in [
        (json::DOC, json::table(lua, marks)?),
        (text::DOC, text::table(lua, host, marks)?),
        (time::DOC, time::table(lua)?),
        (task::DOC, task::table(lua, host, marks)?),
        (log::DOC, log::table(lua, host)?),
        (tool::DOC, tool::table(lua, host, marks)?),
        (fs::DOC, fs::table(lua, host, marks)?),
        (http::DOC, http::table(lua, host, marks, script)?),
        (process::DOC, process::table(lua, host, script)?),
        (env::DOC, env::table(lua, host, script)?),
    ] {
        marks.cover.call::<()>(&table)?;
        table.set_readonly(true);
        globals.raw_set(doc.name, table)?;
    }
    globals.raw_set("print", log::print(lua, host)?)
}
