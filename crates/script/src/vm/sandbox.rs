//! Creates sandboxed Lua states: `sandbox.lua` fixes the libraries, host tables are added, and globals are made
//! read-only.
//!
//! The order matters. First, `sandbox.lua` removes functions that let a script leave its environment, and replaces
//! `pcall`, `xpcall`, `coroutine.resume`, `coroutine.wrap` and library functions that can run long without a safepoint.
//! Then the host tables are added. Then `sandbox(true)` makes all libraries, built-in metatables and globals read-only.
//! The environment of a call is a new table over these globals, so a call cannot leave anything behind.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use deftool_lang::tool::{ToolError, ToolErrorKind};
use memchr::memmem;
use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value as LuaValue, VmState};

use super::loader::Loader;
use crate::control::Stop;
use crate::error::{self, Raised};
use crate::ffi::InterruptHook;
use crate::host::{self, Host, Marks};
use crate::script::Script;
use crate::script::contract::LoadError;

/// A state that runs one script, ready for its first call.
pub(crate) struct Sandbox {
    pub(crate) lua: Lua,
    /// The loaded chunk. Every call runs a clone of it.
    pub(crate) template: Function,
    /// The metatable of environments, which gives access to the globals.
    pub(crate) globals_metatable: Table,
    pub(crate) loader: Rc<Loader>,
    pub(crate) marks: Marks,
    pub(crate) interrupt_hook: InterruptHook,
}

/// A function that adds further globals to a state before the state is sealed.
pub(crate) type ExtendGlobals<'e> = &'e dyn Fn(&Lua, &Rc<Host>, &Marks) -> mlua::Result<()>;

/// Number of Lua threads that mlua keeps for reuse in a state.
const SPARE_THREADS: usize = 4;

/// The result of [`compile_prelude`], which a test compares with it: compiling takes 0.5 ms in a new process.
const COMPILED_PRELUDE: &[u8] = include_bytes!("sandbox.bytecode");

/// The version of Luau that compiled [`COMPILED_PRELUDE`]. Other versions compile the prelude themselves, and so do
/// big-endian processors, because bytecode contains numbers as they are in memory.
const COMPILED_BY: &str = "0.740";

static PRELUDE: LazyLock<Result<Cow<'static, [u8]>, String>> = LazyLock::new(|| {
    if cfg!(target_endian = "little") && mlua::ffi::luau_version() == Some(COMPILED_BY) {
        return Ok(Cow::Borrowed(COMPILED_PRELUDE));
    }
    compile_prelude().map(Cow::Owned).map_err(|error| error.to_string())
});

fn compile_prelude() -> mlua::Result<Vec<u8>> {
    Compiler::new().compile(include_str!("sandbox.lua"))
}

/// Creates a state for `script`. Its host functions share `host`.
///
/// # Errors
/// [`ToolErrorKind::Load`] when the source does not compile, [`ToolErrorKind::Internal`] when the state cannot be
/// created.
pub(crate) fn build(
    script: &Script,
    host: &Rc<Host>,
    extend: ExtendGlobals<'_>,
) -> Result<Sandbox, ToolError> {
    let bytecode = script.compiled().map_err(|problem: LoadError| problem.into_tool_error())?;
    seal(script, host, &bytecode, extend).map_err(|error| {
        ToolError::new(
            ToolErrorKind::Internal,
            format!("cannot create a Lua state for {}: {error}", script.file),
        )
    })
}

fn seal(
    script: &Script,
    host: &Rc<Host>,
    bytecode: &Arc<[u8]>,
    extend: ExtendGlobals<'_>,
) -> mlua::Result<Sandbox> {
    let libraries = StdLib::COROUTINE
        | StdLib::TABLE
        | StdLib::OS
        | StdLib::STRING
        | StdLib::UTF8
        | StdLib::BIT
        | StdLib::MATH
        | StdLib::BUFFER
        | StdLib::VECTOR
        | StdLib::DEBUG;
    let lua = Lua::new_with(libraries, LuaOptions::new().thread_pool_size(SPARE_THREADS))?;
    let globals = lua.globals();

    let array = lua.create_table()?;
    array.raw_set("__metatable", "json.array")?;
    array.set_readonly(true);
    let failure = lua.create_table()?;
    failure.raw_set("__metatable", "tool.failure")?;
    failure.raw_set(
        "__tostring",
        lua.create_function(|_, failure: Table| failure.raw_get::<LuaValue>("message"))?,
    )?;
    failure.set_readonly(true);
    let media = lua.create_table()?;
    media.raw_set("__metatable", "tool.image or tool.audio")?;
    media.set_readonly(true);

    let globals_metatable = lua.create_table()?;
    globals_metatable.raw_set("__index", &globals)?;
    globals_metatable.raw_set("__metatable", "the globals")?;
    globals_metatable.set_readonly(true);
    let loader = Rc::new(Loader::new(Arc::clone(&script.modules), globals_metatable.clone()));
    let (guard, cover) = run_prelude(&lua, host, &failure, &loader)?;
    let marks = Marks { array, failure, media, guard, cover };
    host::install(&lua, &globals, host, &marks, script)?;
    extend(&lua, host, &marks)?;
    lua.sandbox(true)?;

    // Loaded after sealing: Luau resolves names like `math.floor` once, at load. Read-only globals make this safe.
    let template = lua
        .load(&**bytecode)
        .set_name(format!("={}", script.file))
        .set_mode(ChunkMode::Binary)
        .into_function()?;
    let shared = Rc::clone(host);
    let interrupt_hook = InterruptHook::install(&lua, move |lua| {
        shared.on_interrupt(lua);
        match stopping(&shared) {
            Some(error) => Err(error),
            None => Ok(VmState::Continue),
        }
    });
    Ok(Sandbox { lua, template, globals_metatable, loader, marks, interrupt_hook })
}

/// Runs the prelude. Returns [`Marks::guard`] and [`Marks::cover`].
fn run_prelude(
    lua: &Lua,
    host: &Rc<Host>,
    failure: &Table,
    loader: &Rc<Loader>,
) -> mlua::Result<(Function, Function)> {
    let bytecode = PRELUDE.as_ref().map_err(mlua::Error::runtime)?;
    let functions = lua.create_table()?;
    functions.raw_set("pending", LuaValue::LightUserData(Lua::poll_pending()))?;
    let (shared, mark) = (Rc::clone(host), failure.clone());
    functions
        .raw_set("caught", lua.create_function(move |lua, raised| caught(lua, &shared, &mark, raised))?)?;
    let (shared, mark) = (Rc::clone(host), failure.clone());
    functions.raw_set(
        "capture",
        lua.create_function(move |lua, raised: LuaValue| {
            let error = raised_error(lua, &shared, &mark, &raised);
            shared.raised.replace(Some(error));
            Ok(())
        })?,
    )?;
    functions.raw_set("find_plain", lua.create_function(find_plain)?)?;
    functions.raw_set("is_quick", lua.create_function(is_quick_to_sort)?)?;
    functions.raw_set("longest_class", lua.create_function(longest_class)?)?;
    functions.raw_set("split_plain", lua.create_function(split_plain)?)?;
    let shared = Rc::clone(host);
    functions.raw_set(
        "mark_dirty",
        lua.create_function(move |_, ()| {
            shared.mark_dirty();
            Ok(())
        })?,
    )?;
    let (begin, finish) = loader.functions(lua, Rc::clone(&host.files))?;
    functions.raw_set("begin_module", begin)?;
    functions.raw_set("finish_module", finish)?;
    lua.load(&**bytecode)
        .set_name(format!("={}", error::PRELUDE_NAME))
        .set_mode(ChunkMode::Binary)
        .call(functions)
}

/// Returns the value that `pcall` returns for `raised`. Converts errors of host functions to text, as for Lua errors.
fn caught(lua: &Lua, host: &Host, failure: &Table, raised: LuaValue) -> mlua::Result<LuaValue> {
    if let Some(error) = stopping(host) {
        return Err(error);
    }
    match &raised {
        LuaValue::String(text) if text.as_bytes() == error::OUT_OF_MEMORY.as_bytes() => {
            Err(out_of_memory(host))
        }
        LuaValue::String(text) if text.as_bytes().starts_with(error::PRELUDE_NAME.as_bytes()) => {
            let text = text.to_string_lossy();
            let Some(message) = error::outside_prelude(&text) else { return Ok(raised) };
            Ok(LuaValue::String(
                lua.create_string(format!("{}{message}", error::location(lua, &host.files)))?,
            ))
        }
        LuaValue::Error(_) => match error::read_raised(&raised, failure) {
            Raised::Memory => Err(out_of_memory(host)),
            Raised::Failure(message) | Raised::Located(message) | Raised::Host(_, message) => {
                let text = format!("{}{}", error::location(lua, &host.files), error::message(&message));
                Ok(LuaValue::String(lua.create_string(text)?))
            }
        },
        _ => Ok(raised),
    }
}

/// Returns the error of a call in which the script raised `raised` and did not catch it.
pub(crate) fn raised_error(lua: &Lua, host: &Host, failure: &Table, raised: &LuaValue) -> ToolError {
    let (kind, text) = match error::read_raised(raised, failure) {
        Raised::Memory => {
            drop(out_of_memory(host));
            return ToolError::new(ToolErrorKind::Memory, error::OUT_OF_MEMORY);
        }
        Raised::Failure(message) => return ToolError::new(ToolErrorKind::Failure, error::message(&message)),
        Raised::Located(message) if host.names_own_file(&message) => (ToolErrorKind::Script, message),
        Raised::Located(message) => {
            (ToolErrorKind::Script, format!("{}{message}", error::location(lua, &host.files)))
        }
        Raised::Host(kind, message) => (kind, format!("{}{message}", error::location(lua, &host.files))),
    };
    let error = ToolError::new(kind, error::message(&text));
    match error::traceback(lua, &host.files) {
        Some(traceback) => error.with_details(traceback),
        None => error,
    }
}

fn stopping(host: &Host) -> Option<mlua::Error> {
    let control = host.control.borrow();
    let reason = control.as_ref()?.stopped()?;
    Some(mlua::Error::runtime(format!("stopped: {reason:?}")))
}

fn out_of_memory(host: &Host) -> mlua::Error {
    if let Some(control) = host.control.borrow().as_ref() {
        control.stop(Stop::Memory);
    }
    mlua::Error::MemoryError(String::from(error::OUT_OF_MEMORY))
}

/// `string.find` for texts without pattern characters. Returns whether it applies, and the first and last byte, from 1.
// Host functions have this signature.
#[allow(clippy::unnecessary_wraps)]
fn find_plain(
    _: &Lua,
    (text, needle, init, plain): (LuaString, LuaString, Option<i64>, LuaValue),
) -> mlua::Result<(bool, Option<usize>, Option<usize>)> {
    let (text, needle) = (text.as_bytes(), needle.as_bytes());
    let plain = !matches!(plain, LuaValue::Nil | LuaValue::Boolean(false));
    if !plain && needle.iter().any(|byte| b"^$*+?.([%-".contains(byte)) {
        return Ok((false, None, None));
    }
    // As in Lua: a negative position counts from the end; positions before the start are clamped.
    let init = init.unwrap_or(1);
    let offset = usize::try_from(init.unsigned_abs()).unwrap_or(usize::MAX);
    let start = if init < 0 { text.len().saturating_sub(offset) } else { offset.saturating_sub(1) };
    let found = text.get(start..).and_then(|rest| memmem::find(rest, &needle)).map(|at| start + at);
    Ok((true, found.map(|at| at + 1), found.map(|at| at + needle.len())))
}

/// Whether Luau sorts a table by its own comparison within a tenth of a second: a list of numbers or of strings, with at
/// most a million steps. A step is a number, or 64 bytes of a string.
#[allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value)]
fn is_quick_to_sort(_: &Lua, sorted: LuaValue) -> mlua::Result<bool> {
    const MOST_STEPS: usize = 1_000_000;
    let LuaValue::Table(list) = &sorted else { return Ok(false) };
    let (mut length, mut steps, mut is_text) = (0, 0, None);
    for value in list.sequence_values() {
        let (kind, cost) = match value? {
            LuaValue::Integer(_) | LuaValue::Number(_) => (false, 1),
            LuaValue::String(text) => (true, 4 + text.as_bytes().len() / 64),
            _ => return Ok(false),
        };
        length += 1;
        steps += cost;
        if *is_text.get_or_insert(kind) != kind || steps > MOST_STEPS {
            return Ok(false);
        }
    }
    Ok(length == list.raw_len())
}

/// Returns an upper bound of the length of a pattern's longest `[class]`, in bytes: from the first bracket to the last.
#[allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value)]
fn longest_class(_: &Lua, pattern: LuaString) -> mlua::Result<usize> {
    let pattern = pattern.as_bytes();
    let (first, last) = (memchr::memchr(b'[', &pattern), memchr::memrchr(b']', &pattern));
    Ok(first.zip(last).map_or(0, |(first, last)| last.saturating_sub(first)))
}

fn split_plain(lua: &Lua, (text, separator): (LuaString, LuaString)) -> mlua::Result<Table> {
    let (text, separator) = (text.as_bytes(), separator.as_bytes());
    let pieces = lua.create_table()?;
    let mut start = 0;
    let ends = memmem::find_iter(&text, &separator).map(|at| (at, at + separator.len()));
    for (end, next) in ends.chain(std::iter::once((text.len(), text.len()))) {
        pieces.raw_push(lua.create_string(text.get(start..end).unwrap_or_default())?)?;
        start = next;
    }
    Ok(pieces)
}

/// Returns the arguments for the guard: the tool's function and its arguments.
pub(crate) fn guarded(function: Function, arguments: Vec<LuaValue>) -> MultiValue {
    std::iter::once(LuaValue::Function(function)).chain(arguments).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::events::ScriptSink;
    use crate::libraries::known_globals;

    /// C functions that scripts can call, except those of libraries whose functions take no tables. Each must satisfy
    /// the third rule in `sandbox.lua`.
    const NATIVE: [&str; 22] = [
        "assert",
        "gcinfo",
        "getmetatable",
        "ipairs",
        "next",
        "pairs",
        "print",
        "rawequal",
        "rawget",
        "rawlen",
        "rawset",
        "select",
        "setmetatable",
        "table.freeze",
        "table.getn",
        "table.insert",
        "table.isfrozen",
        "table.pack",
        "tonumber",
        "tostring",
        "type",
        "typeof",
    ];

    #[test]
    fn the_bytecode_of_the_prelude_is_that_of_its_source() {
        let compiled = compile_prelude().unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/vm/sandbox.bytecode");
            return std::fs::write(file, compiled).unwrap();
        }
        assert_eq!(mlua::ffi::luau_version(), Some(COMPILED_BY), "`COMPILED_BY` is outdated");
        assert!(compiled == COMPILED_PRELUDE, "run UPDATE_EXPECT=1 cargo test -p deftool-script bytecode_of");
    }

    #[test]
    fn slow_c_functions_on_tables_are_behind_a_safepoint() {
        let script = Script::new("t", "t.lua", "return function() end");
        let host = Rc::new(Host::new(&script, ScriptSink::default()));
        let sandbox = build(&script, &host, &|_, _, _| Ok(())).unwrap();
        let is_native = |function: &Function| function.info().what == "C";
        let plain =
            ["bit32.", "buffer.", "coroutine.", "debug.", "math.", "os.", "string.", "utf8.", "vector."];
        let mut found = BTreeSet::new();
        for name in known_globals() {
            let value = name.split('.').fold(LuaValue::Table(sandbox.lua.globals()), |value, field| {
                let LuaValue::Table(table) = value else { return LuaValue::Nil };
                table.get(field).unwrap()
            });
            let is_plain = plain.iter().any(|library| name.starts_with(library));
            if matches!(&value, LuaValue::Function(function) if !is_plain && is_native(function)) {
                found.insert(name);
            }
        }
        let expected: BTreeSet<String> = NATIVE.iter().map(|name| String::from(*name)).collect();
        assert_eq!(found, expected);
    }
}
