//! The `fs` host table: access to files and folders that `:allow (:read …)` and `(:write …)` grant.
//!
//! `grant` finds and opens the granted folder of a path. `open` opens files in it and checks what was opened; both use
//! `no_follow`. `read`, `metadata`, `walk`, `write` and `change` implement the functions. They block, so they run on an
//! IO thread while the script is suspended. [`add`] parses the arguments and converts the result on the script's
//! thread.
//!
//! A hard link to a file outside of the granted folder is not detected: a user who can create one in a granted folder
//! can also read the original.

mod access;
mod change;
pub(super) mod context;
mod doc;
pub(super) mod grant;
mod ignore_rules;
mod metadata;
mod no_follow;
mod open;
mod protected;
mod read;
mod walk;
mod write;

use std::rc::Rc;
use std::sync::Arc;

use mlua::{IntoLuaMulti, Lua, MultiValue, Table, Value as LuaValue};
use tokio::sync::Semaphore;

pub(super) use doc::DOC;
pub use protected::protect_folders;

use self::context::{FsContext, MAX_WRITTEN};
use self::write::WriteRequest;
use super::arguments::{Options, argument_error, text_argument};
use super::state::{Host, Marks};
use crate::error::HostError;
use crate::io;

/// Maximum number of functions of this table that a call runs at a time. Their results are held outside of the script's
/// memory limit until the script receives them.
const MAX_CONCURRENT: usize = 4;
/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 4_096;
/// Default number of lines of `fs.lines`.
const DEFAULT_LINES: u64 = 1_000;
/// Default number of paths of `fs.glob`.
const DEFAULT_RESULTS: u64 = 1_000;

/// State that the functions of a Lua state share.
struct Shared {
    host: Rc<Host>,
    /// The metatable that marks arrays, so that an empty one is `[]` in a result.
    array: Table,
    permits: Arc<Semaphore>,
}

pub(super) fn table(lua: &Lua, host: &Rc<Host>, marks: &Marks) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let shared = Rc::new(Shared {
        host: Rc::clone(host),
        array: marks.array.clone(),
        permits: Arc::new(Semaphore::new(MAX_CONCURRENT)),
    });
    add(lua, &table, &shared, ("read", "fs.read"), path, read::text, |lua, text, _| lua.create_string(text))?;
    add(
        lua,
        &table,
        &shared,
        ("read_bytes", "fs.read_bytes"),
        range_arguments,
        read::bytes,
        |lua, bytes, _| lua.create_string(bytes),
    )?;
    add(
        lua,
        &table,
        &shared,
        ("lines", "fs.lines"),
        lines_arguments,
        read::lines,
        |lua, (lines, more), array| Ok((mark_as_array(lua.create_sequence_from(lines)?, array)?, more)),
    )?;
    add(lua, &table, &shared, ("list", "fs.list"), path, metadata::list, |lua, entries, array| {
        let rows = lua.create_table_with_capacity(entries.len(), 0)?;
        for entry in entries {
            let row = lua.create_table_with_capacity(0, 3)?;
            row.raw_set("name", entry.name)?;
            row.raw_set("kind", entry.kind)?;
            row.raw_set("size", entry.size)?;
            rows.raw_push(row)?;
        }
        mark_as_array(rows, array)
    })?;
    add(lua, &table, &shared, ("stat", "fs.stat"), path, metadata::stat, |lua, stat, _| {
        let Some(stat) = stat else { return Ok(None) };
        let row = lua.create_table_with_capacity(0, 4)?;
        row.raw_set("kind", stat.kind)?;
        row.raw_set("size", stat.size)?;
        row.raw_set("modified", stat.modified)?;
        row.raw_set("readonly", stat.readonly)?;
        Ok(Some(row))
    })?;
    add(
        lua,
        &table,
        &shared,
        ("exists", "fs.exists"),
        path,
        metadata::stat,
        |_, stat, _| Ok(stat.is_some()),
    )?;
    add(
        lua,
        &table,
        &shared,
        ("glob", "fs.glob"),
        glob_arguments,
        walk::glob,
        |lua, (paths, more), array| Ok((mark_as_array(lua.create_sequence_from(paths)?, array)?, more)),
    )?;
    add(lua, &table, &shared, ("write", "fs.write"), write_arguments, write::write, no_result)?;
    add(lua, &table, &shared, ("append", "fs.append"), write_arguments, write::append, no_result)?;
    let parents = |function, arguments: &_| path_and_flag(function, arguments, "parents");
    add(lua, &table, &shared, ("mkdir", "fs.mkdir"), parents, change::mkdir, no_result)?;
    let recursive = |function, arguments: &_| path_and_flag(function, arguments, "recursive");
    add(lua, &table, &shared, ("remove", "fs.remove"), recursive, change::remove, no_result)?;
    let two = |function, arguments: &_| {
        Ok((path_argument(function, arguments, 0)?, path_argument(function, arguments, 1)?))
    };
    add(lua, &table, &shared, ("rename", "fs.rename"), two, change::rename, no_result)?;
    Ok(table)
}

/// Adds a function. `parse` reads the arguments, `work` runs on an IO thread and may block, and `convert` creates the
/// Lua values of the result.
fn add<In: Send + 'static, Out: Send + 'static, Returned: IntoLuaMulti + 'static>(
    lua: &Lua,
    table: &Table,
    shared: &Rc<Shared>,
    (name, function): (&'static str, &'static str),
    parse: impl Fn(&'static str, &MultiValue) -> mlua::Result<In> + Copy + 'static,
    work: impl FnOnce(&FsContext, In) -> Result<Out, HostError> + Copy + Send + 'static,
    convert: impl Fn(&Lua, Out, &Table) -> mlua::Result<Returned> + Copy + 'static,
) -> mlua::Result<()> {
    let shared = Rc::clone(shared);
    let function_body = lua.create_async_function(move |lua, arguments: MultiValue| {
        let shared = Rc::clone(&shared);
        async move {
            let _waiting = shared.host.wait(function)?;
            let permit = Arc::clone(&shared.permits).acquire_owned().await.map_err(mlua::Error::external)?;
            // Held until the work has ended and the result was received or dropped.
            let permit = Arc::new(permit);
            let work_permit = Arc::clone(&permit);
            // Copy only now: until then the arguments count towards the script's memory limit.
            let input = parse(function, &arguments)?;
            let cancel_on_drop = io::CancelOnDrop::default();
            let context = FsContext {
                grants: Arc::clone(&shared.host.grants.borrow()),
                quota: Arc::clone(&shared.host.quota),
                canceled: Arc::clone(&cancel_on_drop.0),
            };
            let result = io::blocking(move || {
                let _permit = work_permit;
                work(&context, input)
            });
            let result = result.await;
            convert(
                &lua,
                result
                    .map_err(|error| HostError::lua(error.kind, format!("{function}: {}", error.message)))?,
                &shared.array,
            )
        }
    })?;
    table.raw_set(name, function_body)
}

// The signature of a `convert` function.
#[allow(clippy::unnecessary_wraps)]
fn no_result(_: &Lua, (): (), _: &Table) -> mlua::Result<()> {
    Ok(())
}

fn mark_as_array(list: Table, array: &Table) -> mlua::Result<Table> {
    list.set_metatable(Some(array.clone()))?;
    Ok(list)
}

fn path(function: &'static str, arguments: &MultiValue) -> mlua::Result<String> {
    path_argument(function, arguments, 0)
}

fn path_argument(function: &'static str, arguments: &MultiValue, index: usize) -> mlua::Result<String> {
    check_path(function, text_argument(function, arguments, index)?)
}

fn check_path(function: &'static str, path: String) -> mlua::Result<String> {
    if path.len() > MAX_PATH {
        return Err(HostError::script(format!("{function}: the path is longer than {MAX_PATH} bytes")));
    }
    Ok(path)
}

fn path_and_flag(function: &'static str, arguments: &MultiValue, key: &str) -> mlua::Result<(String, bool)> {
    let options = Options::new(function, arguments, 1, &[key])?;
    Ok((path_argument(function, arguments, 0)?, options.flag(key)?.unwrap_or(false)))
}

fn range_arguments(
    function: &'static str,
    arguments: &MultiValue,
) -> mlua::Result<(String, u64, Option<u64>)> {
    let options = Options::new(function, arguments, 1, &["offset", "limit"])?;
    Ok((
        path_argument(function, arguments, 0)?,
        options.integer("offset", 0..=1 << 53)?.unwrap_or(0),
        options.integer("limit", 0..=read::MAX_READ)?,
    ))
}

fn lines_arguments(function: &'static str, arguments: &MultiValue) -> mlua::Result<(String, u64, u64)> {
    let options = Options::new(function, arguments, 1, &["from", "count"])?;
    Ok((
        path_argument(function, arguments, 0)?,
        options.integer("from", 1..=1 << 53)?.unwrap_or(1),
        options.integer("count", 1..=read::MAX_LINES)?.unwrap_or(DEFAULT_LINES),
    ))
}

fn write_arguments(function: &'static str, arguments: &MultiValue) -> mlua::Result<WriteRequest> {
    let path = path_argument(function, arguments, 0)?;
    let parents = Options::new(function, arguments, 2, &["parents"])?.flag("parents")?.unwrap_or(false);
    let bytes = match arguments.get(1) {
        // Checked before the copy.
        Some(LuaValue::String(text)) if text.as_bytes().len() as u64 > MAX_WRITTEN => {
            let limit = MAX_WRITTEN >> 20;
            return Err(HostError::script(format!("{function}: a call may write at most {limit} MiB")));
        }
        Some(LuaValue::String(text)) => text.as_bytes().to_vec(),
        _ => text_argument(function, arguments, 1)?.into_bytes(),
    };
    Ok(WriteRequest { path, bytes, parents })
}

fn glob_arguments(function: &'static str, arguments: &MultiValue) -> mlua::Result<walk::GlobQuery> {
    let known = ["root", "kind", "hidden", "gitignore", "limit", "depth"];
    let options = Options::new(function, arguments, 1, &known)?;
    let kind = match options.text("kind")?.as_deref() {
        None | Some("file") => "file",
        Some("directory") => "directory",
        Some("any") => "any",
        Some(_) => {
            let expected = "\"file\", \"directory\" or \"any\"";
            return Err(argument_error(
                function,
                &format!("kind to be {expected}"),
                Some(&options.value("kind")?),
            ));
        }
    };
    Ok(walk::GlobQuery {
        pattern: text_argument(function, arguments, 0)?,
        root: options.text("root")?.map(|root| check_path(function, root)).transpose()?,
        kind,
        hidden: options.flag("hidden")?,
        gitignore: options.flag("gitignore")?.unwrap_or(false),
        limit: options.integer("limit", 1..=walk::MAX_RESULTS)?.unwrap_or(DEFAULT_RESULTS),
        depth: options.integer("depth", 1..=walk::MAX_DEPTH)?.unwrap_or(walk::MAX_DEPTH),
    })
}
