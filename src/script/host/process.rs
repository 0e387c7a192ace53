//! `process`: programs that the spec grants.

use std::rc::Rc;

use mlua::{Lua, Table};

use super::{Host, TableDoc};
use crate::script::Script;

pub(super) const DOC: TableDoc =
    TableDoc { permissions: &["run"], ..TableDoc::new("process", "Programs that the spec grants.") };

pub(super) fn table(lua: &Lua, _: &Rc<Host>, _: &Script) -> mlua::Result<Table> {
    lua.create_table()
}
