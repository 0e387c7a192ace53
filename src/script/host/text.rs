//! `text`: UTF-8 helpers, regular expressions, differences.

use mlua::{Lua, Table};

use super::TableDoc;

pub(super) const DOC: TableDoc = TableDoc::new("text", "Texts.");

pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    lua.create_table()
}
