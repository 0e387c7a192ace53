//! Fakes: functions of a test that stand in for host functions of the tool that it calls.
//!
//! A tool runs in a state of its own, as in production, so that what passes between it and a fake is copied from one
//! state to the other: values, tables of them, `json.null` and the mark of arrays; a function becomes one that calls
//! the original where it lives. A fake may wait. What it raises, the tool sees as it would see a host function's error.
//!
//! What a fake leaves out: in the tables that reach the world it is refused by name, so that no test goes there by
//! accident; in the others the real function stays.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue, WeakLua};

use crate::script::convert::type_name;
use crate::script::error::HostError;
use crate::script::host::{Host, LogLevel, Marks};
use crate::tool::{ToolError, ToolErrorKind};

/// The tables of which nothing real is left when a part of them is faked.
const WORLD: [&str; 4] = ["fs", "http", "process", "env"];
/// Deepest table that is copied.
const MAX_DEPTH: usize = 64;
/// Most values that are copied at a time.
const MAX_VALUES: usize = 100_000;
/// Most bytes of strings and buffers that are, each as often as it is there.
const MAX_BYTES: usize = 64 << 20;

/// What stands in for a host table.
pub(super) struct Fake {
    /// Which.
    pub(super) table: String,
    /// Its fields, in the test's state.
    pub(super) fields: Vec<(String, LuaValue)>,
}

/// A state, as values are copied to and from it.
#[derive(Clone)]
pub(super) struct Side {
    lua: WeakLua,
    array: Table,
}

impl Side {
    pub(super) fn new(lua: &Lua, marks: &Marks) -> Self {
        Self { lua: lua.weak(), array: marks.array.clone() }
    }

    fn open(&self) -> mlua::Result<Lua> {
        let ended = || HostError::script("the call that this function came from has ended");
        self.lua.try_upgrade().ok_or_else(ended)
    }
}

/// The test's state, where fakes live.
#[derive(Clone)]
pub(super) struct Home {
    pub(super) side: Side,
    pub(super) host: Rc<Host>,
    /// Calls a function and keeps what it raises in `host`.
    pub(super) guard: Function,
}

/// Puts `fakes` in the place of host tables of `lua`, which is not sealed yet.
pub(super) fn install(fakes: &[Fake], home: &Home, lua: &Lua, marks: &Marks) -> mlua::Result<()> {
    let globals = lua.globals();
    let here = Side::new(lua, marks);
    for Fake { table: name, fields } in fakes {
        let real: Table = globals.raw_get(name.as_str())?;
        let table = lua.create_table()?;
        real.for_each(|field: String, value: LuaValue| {
            let is_refused = WORLD.contains(&name.as_str()) && value.is_function();
            let value = if is_refused { LuaValue::Function(refusal(lua, name, &field)?) } else { value };
            table.raw_set(field, value)
        })?;
        table.set_metatable(real.metatable())?;
        for (field, value) in fields {
            let value = match value {
                LuaValue::Function(function) => {
                    LuaValue::Function(stand_in(format!("{name}.{field}"), function, home, &here)?)
                }
                other => Copying::new(&home.side, &here).copy(other, 0)?,
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

fn refusal(lua: &Lua, table: &str, field: &str) -> mlua::Result<Function> {
    let message = format!("{table}.{field} is not faked: the test gives `{table}` without `{field}`");
    lua.create_function(move |_, _: MultiValue| Err::<(), _>(HostError::script(message.clone())))
}

/// A function of the state `to` that calls a fake in its `home`.
fn stand_in(name: String, fake: &Function, home: &Home, to: &Side) -> mlua::Result<Function> {
    let (name, fake, home, to) = (Rc::<str>::from(name), fake.clone(), home.clone(), to.clone());
    let lua = to.open()?;
    lua.create_async_function(move |_, arguments: MultiValue| {
        let (name, fake, home, to) = (Rc::clone(&name), fake.clone(), home.clone(), to.clone());
        async move {
            home.side.open()?;
            let mut passed = copy_all(&arguments, &to, &home.side)?;
            passed.push_front(LuaValue::Function(fake));
            let mut results = home.guard.call_async::<MultiValue>(passed).await?;
            if matches!(results.pop_front(), Some(LuaValue::Boolean(true))) {
                return copy_all(&results, &home.side, &to);
            }
            let raised = home.host.raised.take().unwrap_or_else(|| {
                ToolError::new(ToolErrorKind::Internal, "the fake failed and did not say how")
            });
            home.host.log(LogLevel::Debug, &format!("the fake of {name} raised: {}", raised.message));
            Err(HostError::lua(raised.kind, without_place(&raised.message, &home.host.files)))
        }
    })
}

/// A function of the state `to` that calls one of the state `from`, for as long as that lives.
fn mirror(function: &Function, from: &Side, to: &Side) -> mlua::Result<Function> {
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

fn copy_all(values: &MultiValue, from: &Side, to: &Side) -> mlua::Result<MultiValue> {
    let mut copying = Copying::new(from, to);
    values.iter().map(|value| copying.copy(value, 0)).collect()
}

struct Copying<'s> {
    from: &'s Side,
    to: &'s Side,
    count: usize,
    bytes: usize,
}

impl<'s> Copying<'s> {
    fn new(from: &'s Side, to: &'s Side) -> Self {
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
            let message =
                "what passes between a tool and a fake is nested too deeply, contains itself or is too large";
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
            LuaValue::Function(function) => Ok(LuaValue::Function(mirror(function, self.from, self.to)?)),
            LuaValue::Error(error) => Err((**error).clone()),
            LuaValue::LightUserData(_) | LuaValue::Thread(_) | LuaValue::UserData(_) | LuaValue::Other(_) => {
                let kind = type_name(value);
                Err(HostError::script(format!("a {kind} cannot pass between a tool and a fake")))
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

/// `message` without `file:line: ` of one of `files` before it.
pub(super) fn without_place<'m>(message: &'m str, files: &[String]) -> &'m str {
    let place = |file: &String| split_place(message, file).map(|(_, rest)| rest);
    files.iter().find_map(place).unwrap_or(message)
}

/// The line of `file:line: message`, and the message.
pub(super) fn split_place<'m>(message: &'m str, file: &str) -> Option<(usize, &'m str)> {
    let (line, rest) = message.strip_prefix(file)?.strip_prefix(':')?.split_once(": ")?;
    Some((line.parse().ok()?, rest))
}
