//! `fs`: files and folders beneath what `:allow (:read …)` and `(:write …)` grant.
//!
//! `grant` finds the granted folder of a path and opens it; `open` opens beneath it and judges what was opened; `read`,
//! `look`, `walk`, `write` and `change` are the functions. All of them block and run on a thread of the engine's, while
//! the script is suspended: [`add`] takes the arguments apart before and makes Lua values of the answer after.
//!
//! Not told from other files: one that is a hard link to something outside. Whoever could make it in a granted folder
//! could read the original.

mod change;
mod doc;
mod grant;
mod ignored;
mod look;
mod open;
mod read;
mod walk;
mod write;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mlua::{IntoLuaMulti, Lua, MultiValue, Table, Value as LuaValue};
use tokio::sync::Semaphore;

pub(super) use doc::DOC;

pub(super) use self::grant::Grants;
use self::grant::Need;
use self::write::Writing;
use super::options::Options;
use super::spent::{MAX_WRITTEN, Spent};
use super::{Host, Marks, misuse, text_argument};
use crate::script::error::{HostError, clean};
use crate::script::io;
use crate::tool::ToolErrorKind;

/// Most functions of this table that a call runs at a time: what they read waits outside the script's memory limit until
/// the script takes it.
const MAX_AT_A_TIME: usize = 4;
/// Longest path, in bytes.
const MAX_PATH: usize = 4_096;
/// Lines of a page when the script does not say.
const USUAL_LINES: u64 = 1_000;
/// Paths that a walk answers when the script does not say.
const USUAL_FOUND: u64 = 1_000;

/// What a function of this table works with.
pub(super) struct Work {
    grants: Arc<Grants>,
    spent: Arc<Spent>,
    /// Nobody waits for it any more.
    canceled: Arc<AtomicBool>,
}

impl Work {
    /// An error once nobody waits for this work.
    fn go_on(&self) -> Result<(), HostError> {
        if self.canceled.load(Ordering::Relaxed) {
            let message = String::from("the call has ended");
            return Err(HostError { kind: ToolErrorKind::Canceled, message });
        }
        Ok(())
    }
}

/// What the functions of a state share.
struct Shared {
    host: Rc<Host>,
    /// The mark of lists, so that an empty one is `[]` in a result.
    array: Table,
    turns: Arc<Semaphore>,
}

pub(super) fn table(lua: &Lua, host: &Rc<Host>, marks: &Marks) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let shared = Rc::new(Shared {
        host: Rc::clone(host),
        array: marks.array.clone(),
        turns: Arc::new(Semaphore::new(MAX_AT_A_TIME)),
    });
    add(lua, &table, &shared, ("read", "fs.read"), path, read::text, |lua, text, _| lua.create_string(text))?;
    add(lua, &table, &shared, ("read_bytes", "fs.read_bytes"), piece, read::bytes, |lua, bytes, _| {
        lua.create_string(bytes)
    })?;
    add(lua, &table, &shared, ("lines", "fs.lines"), page, read::lines, |lua, (lines, more), array| {
        Ok((marked(lua.create_sequence_from(lines)?, array)?, more))
    })?;
    add(lua, &table, &shared, ("list", "fs.list"), path, look::list, |lua, entries, array| {
        let rows = lua.create_table_with_capacity(entries.len(), 0)?;
        for entry in entries {
            let row = lua.create_table_with_capacity(0, 3)?;
            row.raw_set("name", entry.name)?;
            row.raw_set("kind", entry.kind)?;
            row.raw_set("size", entry.size)?;
            rows.raw_push(row)?;
        }
        marked(rows, array)
    })?;
    add(lua, &table, &shared, ("stat", "fs.stat"), path, look::stat, |lua, stat, _| {
        let Some(stat) = stat else { return Ok(None) };
        let row = lua.create_table_with_capacity(0, 4)?;
        row.raw_set("kind", stat.kind)?;
        row.raw_set("size", stat.size)?;
        row.raw_set("modified", stat.modified)?;
        row.raw_set("readonly", stat.readonly)?;
        Ok(Some(row))
    })?;
    add(lua, &table, &shared, ("exists", "fs.exists"), path, look::stat, |_, stat, _| Ok(stat.is_some()))?;
    add(lua, &table, &shared, ("glob", "fs.glob"), query, walk::glob, |lua, (paths, more), array| {
        Ok((marked(lua.create_sequence_from(paths)?, array)?, more))
    })?;
    add(lua, &table, &shared, ("write", "fs.write"), writing, write::write, nothing)?;
    add(lua, &table, &shared, ("append", "fs.append"), writing, write::append, nothing)?;
    let parents = |function, arguments: &_| path_and_flag(function, arguments, "parents");
    add(lua, &table, &shared, ("mkdir", "fs.mkdir"), parents, change::mkdir, nothing)?;
    let recursive = |function, arguments: &_| path_and_flag(function, arguments, "recursive");
    add(lua, &table, &shared, ("remove", "fs.remove"), recursive, change::remove, nothing)?;
    let two = |function, arguments: &_| {
        Ok((path_argument(function, arguments, 0)?, path_argument(function, arguments, 1)?))
    };
    add(lua, &table, &shared, ("rename", "fs.rename"), two, change::rename, nothing)?;
    Ok(table)
}

/// Adds a function: `take` makes what it works on of the arguments, `work` does it on a thread that may block, `give`
/// makes Lua values of the answer.
fn add<In: Send + 'static, Out: Send + 'static, Given: IntoLuaMulti + 'static>(
    lua: &Lua,
    table: &Table,
    shared: &Rc<Shared>,
    (name, function): (&'static str, &'static str),
    take: impl Fn(&'static str, &MultiValue) -> mlua::Result<In> + Copy + 'static,
    work: impl FnOnce(&Work, In) -> Result<Out, HostError> + Copy + Send + 'static,
    give: impl Fn(&Lua, Out, &Table) -> mlua::Result<Given> + Copy + 'static,
) -> mlua::Result<()> {
    let shared = Rc::clone(shared);
    let called = lua.create_async_function(move |lua, arguments: MultiValue| {
        let shared = Rc::clone(&shared);
        async move {
            let _waiting = shared.host.wait(function)?;
            let turn = Arc::clone(&shared.turns).acquire_owned().await.map_err(mlua::Error::external)?;
            // It lasts until the work has ended and its answer was taken, or nobody takes it.
            let turn = Arc::new(turn);
            let works = Arc::clone(&turn);
            // Copied only now: what waits for its turn is within the script's memory limit.
            let taken = take(function, &arguments)?;
            let abandoned = Abandoned::default();
            let with = Work {
                grants: Arc::clone(&shared.host.grants.borrow()),
                spent: Arc::clone(&shared.host.spent),
                canceled: Arc::clone(&abandoned.0),
            };
            let done = io::blocking(move || {
                let _turn = works;
                work(&with, taken)
            });
            let done = done.await;
            give(
                &lua,
                done.map_err(|error| HostError::lua(error.kind, format!("{function}: {}", error.message)))?,
                &shared.array,
            )
        }
    })?;
    table.raw_set(name, called)
}

/// Tells work that nobody waits for it, when it is dropped.
#[derive(Default)]
struct Abandoned(Arc<AtomicBool>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// The signature of what gives an answer.
#[allow(clippy::unnecessary_wraps)]
fn nothing(_: &Lua, (): (), _: &Table) -> mlua::Result<()> {
    Ok(())
}

fn marked(list: Table, array: &Table) -> mlua::Result<Table> {
    list.set_metatable(Some(array.clone()))?;
    Ok(list)
}

fn path(function: &'static str, arguments: &MultiValue) -> mlua::Result<String> {
    path_argument(function, arguments, 0)
}

fn path_argument(function: &'static str, arguments: &MultiValue, index: usize) -> mlua::Result<String> {
    checked(function, text_argument(function, arguments, index)?)
}

fn checked(function: &'static str, path: String) -> mlua::Result<String> {
    if path.len() > MAX_PATH {
        return Err(HostError::script(format!("{function}: the path is longer than {MAX_PATH} bytes")));
    }
    Ok(path)
}

fn path_and_flag(function: &'static str, arguments: &MultiValue, key: &str) -> mlua::Result<(String, bool)> {
    let options = Options::new(function, arguments, 1, &[key])?;
    Ok((path_argument(function, arguments, 0)?, options.flag(key)?.unwrap_or(false)))
}

fn piece(function: &'static str, arguments: &MultiValue) -> mlua::Result<(String, u64, Option<u64>)> {
    let options = Options::new(function, arguments, 1, &["offset", "limit"])?;
    Ok((
        path_argument(function, arguments, 0)?,
        options.whole("offset", 0..=1 << 53)?.unwrap_or(0),
        options.whole("limit", 0..=read::MAX_READ)?,
    ))
}

fn page(function: &'static str, arguments: &MultiValue) -> mlua::Result<(String, u64, u64)> {
    let options = Options::new(function, arguments, 1, &["from", "count"])?;
    Ok((
        path_argument(function, arguments, 0)?,
        options.whole("from", 1..=1 << 53)?.unwrap_or(1),
        options.whole("count", 1..=read::MAX_LINES)?.unwrap_or(USUAL_LINES),
    ))
}

fn writing(function: &'static str, arguments: &MultiValue) -> mlua::Result<Writing> {
    let path = path_argument(function, arguments, 0)?;
    let parents = Options::new(function, arguments, 2, &["parents"])?.flag("parents")?.unwrap_or(false);
    let bytes = match arguments.get(1) {
        // Looked at before it is copied.
        Some(LuaValue::String(text)) if text.as_bytes().len() as u64 > MAX_WRITTEN => {
            let most = MAX_WRITTEN >> 20;
            return Err(HostError::script(format!("{function}: a call writes {most} MiB at most")));
        }
        Some(LuaValue::String(text)) => text.as_bytes().to_vec(),
        _ => text_argument(function, arguments, 1)?.into_bytes(),
    };
    Ok(Writing { path, bytes, parents })
}

fn query(function: &'static str, arguments: &MultiValue) -> mlua::Result<walk::Query> {
    let known = ["root", "kind", "hidden", "gitignore", "limit", "depth"];
    let options = Options::new(function, arguments, 1, &known)?;
    let kind = match options.text("kind")?.as_deref() {
        None | Some("file") => "file",
        Some("directory") => "directory",
        Some("any") => "any",
        Some(_) => {
            let expected = "\"file\", \"directory\" or \"any\"";
            return Err(misuse(function, &format!("kind to be {expected}"), Some(&options.value("kind")?)));
        }
    };
    Ok(walk::Query {
        pattern: text_argument(function, arguments, 0)?,
        root: options.text("root")?.map(|root| checked(function, root)).transpose()?,
        kind,
        hidden: options.flag("hidden")?,
        gitignore: options.flag("gitignore")?.unwrap_or(false),
        limit: options.whole("limit", 1..=walk::MAX_FOUND)?.unwrap_or(USUAL_FOUND),
        depth: options.whole("depth", 1..=walk::MAX_DEPTH)?.unwrap_or(walk::MAX_DEPTH),
    })
}

fn failed(need: Need, path: &str, error: &std::io::Error) -> HostError {
    // What cap-std answers when a path, after its links, would leave the folder.
    if error.kind() == std::io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        let path = shown(path);
        return HostError {
            kind: ToolErrorKind::Permission,
            message: format!(
                "{path} is not allowed: it leads out of the granted folder; to allow its target, add it to \
                 :allow (:{} […]) in the spec",
                need.key()
            ),
        };
    }
    let said = match error.kind() {
        std::io::ErrorKind::NotFound => String::from("No such file or directory"),
        _ => error.to_string(),
    };
    let said = said.split(" (os error").next().unwrap_or_default();
    wrong(format!("{}: {said}", shown(path)))
}

fn wrong(message: String) -> HostError {
    HostError { kind: ToolErrorKind::Script, message }
}

fn shown(path: &str) -> String {
    clean(path, 200)
}
