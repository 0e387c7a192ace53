//! Fakes: functions of a test that replace host functions for the tool that it calls.
//!
//! A tool runs in its own Lua state, as in production, so arguments and results of a fake are copied from one state to
//! the other: simple values, tables of them, `json.null` and the mark of arrays. A function is replaced by a proxy that
//! calls the original in its own state. A fake may wait. If a fake raises an error, the tool receives it like an error
//! of a host function.
//!
//! A test may fake only some functions of a table. In tables with access outside of the tool, calls of the other
//! functions fail, so that no test uses them by accident. In other tables, the real functions remain.

use std::rc::Rc;

use deftool_lang::tool::{ToolError, ToolErrorKind};
use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue, WeakLua};

use crate::error::{HostError, type_name};
use crate::events::LogLevel;
use crate::host::{Host, Marks};

/// The tables that keep no real function when one of their functions is faked.
const EXTERNAL: [&str; 4] = ["fs", "http", "process", "env"];
/// Maximum depth of a table to copy.
const MAX_DEPTH: usize = 64;
/// Maximum number of values to copy at a time.
const MAX_VALUES: usize = 100_000;
/// Maximum size of the strings and buffers to copy at a time, in bytes. Repeated values count each time.
const MAX_BYTES: usize = 64 << 20;

/// The replacement of a host table.
pub(super) struct Fake {
    /// The table's name.
    pub(super) table: String,
    /// The replaced fields, in the test's state.
    pub(super) fields: Vec<(String, LuaValue)>,
}

/// A Lua state that values are copied to or from.
#[derive(Clone)]
pub(super) struct LuaState {
    lua: WeakLua,
    array: Table,
}

impl LuaState {
    pub(super) fn new(lua: &Lua, marks: &Marks) -> Self {
        Self { lua: lua.weak(), array: marks.array.clone() }
    }

    fn open(&self) -> mlua::Result<Lua> {
        let ended = || HostError::script("the call that this function came from has ended");
        self.lua.try_upgrade().ok_or_else(ended)
    }
}

/// The test's state, which contains the fakes.
#[derive(Clone)]
pub(super) struct FakeOwner {
    pub(super) state: LuaState,
    pub(super) host: Rc<Host>,
    /// Calls a function and stores the error that it raises in `host`.
    pub(super) guard: Function,
}

/// Replaces host tables of `lua`, which is not sealed yet, with `fakes`.
pub(super) fn install(fakes: &[Fake], owner: &FakeOwner, lua: &Lua, marks: &Marks) -> mlua::Result<()> {
    let globals = lua.globals();
    let target = LuaState::new(lua, marks);
    for Fake { table: name, fields } in fakes {
        let real: Table = globals.raw_get(name.as_str())?;
        let table = lua.create_table()?;
        real.for_each(|field: String, value: LuaValue| {
            let is_unfaked = EXTERNAL.contains(&name.as_str()) && value.is_function();
            let value = if is_unfaked { LuaValue::Function(unfaked(lua, name, &field)?) } else { value };
            table.raw_set(field, value)
        })?;
        table.set_metatable(real.metatable())?;
        for (field, value) in fields {
            let value = match value {
                LuaValue::Function(function) => {
                    LuaValue::Function(fake_function(format!("{name}.{field}"), function, owner, &target)?)
                }
                other => Copier::new(&owner.state, &target).copy(other, 0)?,
            };
            if name == "log" && field == "info" {
                globals.raw_set("print", &value)?;
            }
            table.raw_set(field.as_str(), value)?;
        }
        table.set_readonly(true);
        globals.raw_set(name.as_str(), table)?;
    }
    Ok(())
}

fn unfaked(lua: &Lua, table: &str, field: &str) -> mlua::Result<Function> {
    let message = format!("{table}.{field} is not faked: the test fakes `{table}` without `{field}`");
    lua.create_function(move |_, _: MultiValue| Err::<(), _>(HostError::script(message.clone())))
}

/// Creates a function in the state `to` that calls a fake in its `owner`.
fn fake_function(name: String, fake: &Function, owner: &FakeOwner, to: &LuaState) -> mlua::Result<Function> {
    let (name, fake, owner, to) = (Rc::<str>::from(name), fake.clone(), owner.clone(), to.clone());
    let lua = to.open()?;
    lua.create_async_function(move |_, arguments: MultiValue| {
        let (name, fake, owner, to) = (Rc::clone(&name), fake.clone(), owner.clone(), to.clone());
        async move {
            owner.state.open()?;
            let mut passed = copy_all(&arguments, &to, &owner.state)?;
            passed.push_front(LuaValue::Function(fake));
            let mut results = owner.guard.call_async::<MultiValue>(passed).await?;
            if matches!(results.pop_front(), Some(LuaValue::Boolean(true))) {
                return copy_all(&results, &owner.state, &to);
            }
            let raised = owner.host.raised.take().unwrap_or_else(|| {
                ToolError::new(ToolErrorKind::Internal, "the fake failed without an error")
            });
            owner.host.log(LogLevel::Debug, &format!("the fake of {name} raised: {}", raised.message));
            Err(HostError::lua(raised.kind, without_location(&raised.message, &owner.host.files)))
        }
    })
}

/// Creates a function in the state `to` that calls a function in the state `from`, as long as that state exists.
fn proxy(function: &Function, from: &LuaState, to: &LuaState) -> mlua::Result<Function> {
    let (function, from, to) = (function.clone(), from.clone(), to.clone());
    let lua = to.open()?;
    lua.create_async_function(move |_, arguments: MultiValue| {
        let (function, from, to) = (function.clone(), from.clone(), to.clone());
        async move {
            from.open()?;
            let passed = copy_all(&arguments, &to, &from)?;
            let results = function.call_async::<MultiValue>(passed).await?;
            copy_all(&results, &from, &to)
        }
    })
}

fn copy_all(values: &MultiValue, from: &LuaState, to: &LuaState) -> mlua::Result<MultiValue> {
    let mut copier = Copier::new(from, to);
    values.iter().map(|value| copier.copy(value, 0)).collect()
}

struct Copier<'s> {
    from: &'s LuaState,
    to: &'s LuaState,
    count: usize,
    bytes: usize,
}

impl<'s> Copier<'s> {
    fn new(from: &'s LuaState, to: &'s LuaState) -> Self {
        Self { from, to, count: 0, bytes: 0 }
    }

    fn copy(&mut self, value: &LuaValue, depth: usize) -> mlua::Result<LuaValue> {
        self.count += 1;
        if let LuaValue::String(text) = value {
            self.bytes = self.bytes.saturating_add(text.as_bytes().len());
        } else if let LuaValue::Buffer(buffer) = value {
            self.bytes = self.bytes.saturating_add(buffer.len());
        }
        if depth > MAX_DEPTH || self.count > MAX_VALUES || self.bytes > MAX_BYTES {
            let message = "a value passed between a tool and a fake is nested too deeply, contains itself or is too large";
            return Err(HostError::script(message));
        }
        match value {
            LuaValue::Nil
            | LuaValue::Boolean(_)
            | LuaValue::Integer(_)
            | LuaValue::Number(_)
            | LuaValue::Vector(_) => Ok(value.clone()),
            LuaValue::LightUserData(data) if data.0.is_null() => Ok(value.clone()),
            LuaValue::String(text) => Ok(LuaValue::String(self.to.open()?.create_string(text.as_bytes())?)),
            LuaValue::Buffer(buffer) => Ok(LuaValue::Buffer(self.to.open()?.create_buffer(buffer.to_vec())?)),
            LuaValue::Table(table) => self.copy_table(table, depth),
            LuaValue::Function(function) => Ok(LuaValue::Function(proxy(function, self.from, self.to)?)),
            LuaValue::Error(error) => Err((**error).clone()),
            LuaValue::LightUserData(_) | LuaValue::Thread(_) | LuaValue::UserData(_) | LuaValue::Other(_) => {
                let kind = type_name(value);
                Err(HostError::script(format!("cannot pass a {kind} between a tool and a fake")))
            }
        }
    }

    fn copy_table(&mut self, table: &Table, depth: usize) -> mlua::Result<LuaValue> {
        let copy = self.to.open()?.create_table()?;
        let mut members: Vec<(LuaValue, LuaValue)> = Vec::new();
        table.for_each(|key: LuaValue, value: LuaValue| {
            members.push((key, value));
            Ok(())
        })?;
        for (key, value) in &members {
            copy.raw_set(self.copy(key, depth + 1)?, self.copy(value, depth + 1)?)?;
        }
        let is_array = |metatable: Table| metatable.to_pointer() == self.from.array.to_pointer();
        if table.metatable().is_some_and(is_array) {
            copy.set_metatable(Some(self.to.array.clone()))?;
        }
        Ok(LuaValue::Table(copy))
    }
}

/// Removes the prefix `file:line: ` of one of `files` from `message`.
pub(super) fn without_location<'m>(message: &'m str, files: &[String]) -> &'m str {
    let message_in = |file: &String| split_location(message, file).map(|(_, rest)| rest);
    files.iter().find_map(message_in).unwrap_or(message)
}

/// Splits `file:line: message` into the line and the message.
pub(super) fn split_location<'m>(message: &'m str, file: &str) -> Option<(usize, &'m str)> {
    let (line, rest) = message.strip_prefix(file)?.strip_prefix(':')?.split_once(": ")?;
    Some((line.parse().ok()?, rest))
}
