//! `text`: UTF-8 helpers, regular expressions, differences.
//!
//! None of it can be interrupted, so each text is bounded; what may take longer than a moment (regular expressions and
//! differences of more than a few KiB) is done on a thread of the engine's while the script is suspended.

mod difference;
mod doc;
mod pattern;
mod plain;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mlua::{Lua, LuaString, MultiValue, Table, Value as LuaValue};
use tokio::sync::Semaphore;

pub(super) use doc::DOC;

use self::difference::Compared;
use self::pattern::{Found, Pattern, Patterns, Search, Spans, escape};
use self::plain::MAX_TEXT;
use super::options::Options;
use super::{Host, Marks, misuse, number_argument};
use crate::script::error::HostError;
use crate::script::io;
use crate::tool::ToolErrorKind;

/// Longest text that is searched on the script's thread, in bytes.
const AT_ONCE: usize = 4 << 10;
/// Most steps of a slow search there; see [`Pattern::steps`].
const FEW_STEPS: usize = 1 << 22;
/// How long two short texts, and two long ones, are compared.
const SHORT_DIFF: Duration = Duration::from_millis(20);
const LONG_DIFF: Duration = Duration::from_secs(1);
/// Most long texts of a call that are searched and compared at a time.
const MAX_AT_A_TIME: usize = 2;
/// Most matches that are answered.
const MAX_MATCHES: u64 = 10_000;
/// Longest replacement, in bytes.
const MAX_REPLACEMENT: usize = 64 << 10;
/// Widest line, in characters.
const MAX_WIDTH: f64 = 10_000.0;

pub(super) fn table(lua: &Lua, host: &Rc<Host>, marks: &Marks) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    add_characters(lua, &table)?;
    add_parts(lua, &table)?;
    let array = marks.array.clone();
    add(lua, &table, ("lines", "text.lines"), move |lua, function, arguments| {
        let text = bytes(function, arguments, 0)?;
        let lines = lua.create_table()?;
        for line in plain::lines(&text.as_bytes()) {
            lines.raw_push(lua.create_string(line)?)?;
        }
        lines.set_metatable(Some(array.clone()))?;
        Ok(lines)
    })?;
    let turns = Arc::new(Semaphore::new(MAX_AT_A_TIME));
    let elsewhere = Rc::new(Elsewhere { host: Rc::clone(host), turns });
    add_diff(lua, &table, &elsewhere)?;
    add_patterns(lua, &table, &elsewhere, marks)?;
    Ok(table)
}

/// What counts characters.
fn add_characters(lua: &Lua, table: &Table) -> mlua::Result<()> {
    add(lua, table, ("length", "text.length"), |_, function, arguments| {
        Ok(utf8(&bytes(function, arguments, 0)?, function)?.chars().count())
    })?;
    add(lua, table, ("sub", "text.sub"), |lua, function, arguments| {
        let text = bytes(function, arguments, 0)?;
        let from = whole(function, arguments, 1)?;
        let to = optional(arguments, 2).map_or(Ok(-1), |()| whole(function, arguments, 2))?;
        lua.create_string(plain::sub(&utf8(&text, function)?, from, to))
    })?;
    add(lua, table, ("valid", "text.valid"), |_, function, arguments| {
        Ok(bytes(function, arguments, 0)?.to_str().is_ok())
    })?;
    add(lua, table, ("trim", "text.trim"), |lua, function, arguments| {
        lua.create_string(utf8(&bytes(function, arguments, 0)?, function)?.trim())
    })?;
    add(lua, table, ("lower", "text.lower"), |lua, function, arguments| {
        lua.create_string(utf8(&bytes(function, arguments, 0)?, function)?.to_lowercase())
    })?;
    add(lua, table, ("upper", "text.upper"), |lua, function, arguments| {
        lua.create_string(utf8(&bytes(function, arguments, 0)?, function)?.to_uppercase())
    })?;
    add(lua, table, ("wrap", "text.wrap"), |lua, function, arguments| {
        let text = bytes(function, arguments, 0)?;
        let width = number_argument(function, arguments, 1, "a width in characters")?;
        if !(1.0..=MAX_WIDTH).contains(&width) {
            return Err(HostError::script(format!("{function}: the width must be from 1 to {MAX_WIDTH}")));
        }
        // It is positive.
        #[allow(clippy::cast_sign_loss)]
        lua.create_string(plain::wrap(&utf8(&text, function)?, width as usize))
    })?;
    add(lua, table, ("truncate", "text.truncate"), |lua, function, arguments| {
        let text = bytes(function, arguments, 0)?;
        let most = usize::try_from(whole(function, arguments, 1)?).unwrap_or(0);
        let options = Options::new(function, arguments, 2, &["bytes", "mark"])?;
        let mark = options.text("mark")?.unwrap_or_else(|| String::from("…"));
        let in_bytes = options.flag("bytes")?.unwrap_or(false);
        lua.create_string(plain::truncate(&utf8(&text, function)?, most, in_bytes, &mark))
    })
}

/// What looks for a part of a text as it is.
fn add_parts(lua: &Lua, table: &Table) -> mlua::Result<()> {
    add(lua, table, ("starts_with", "text.starts_with"), |_, function, arguments| {
        Ok(bytes(function, arguments, 0)?.as_bytes().starts_with(&bytes(function, arguments, 1)?.as_bytes()))
    })?;
    add(lua, table, ("ends_with", "text.ends_with"), |_, function, arguments| {
        Ok(bytes(function, arguments, 0)?.as_bytes().ends_with(&bytes(function, arguments, 1)?.as_bytes()))
    })?;
    add(lua, table, ("count", "text.count"), |_, function, arguments| {
        let (text, part) = (bytes(function, arguments, 0)?, some(function, arguments, 1)?);
        Ok(memchr::memmem::find_iter(&text.as_bytes(), &part.as_bytes()).count())
    })?;
    add(lua, table, ("replace", "text.replace"), |lua, function, arguments| {
        let (text, old) = (bytes(function, arguments, 0)?, some(function, arguments, 1)?);
        let (new, limit) = (bytes(function, arguments, 2)?, limit(function, arguments, 3)?);
        let (made, count) = plain::replace(&text.as_bytes(), &old.as_bytes(), &new.as_bytes(), limit)
            .map_err(|error| wrong(function, &error))?;
        Ok((lua.create_string(made)?, count))
    })?;
    add(lua, table, ("escape", "text.escape"), |lua, function, arguments| {
        lua.create_string(escape(&utf8(&bytes(function, arguments, 0)?, function)?))
    })
}

fn add_diff(lua: &Lua, table: &Table, elsewhere: &Rc<Elsewhere>) -> mlua::Result<()> {
    const DIFF: &str = "text.diff";
    let elsewhere = Rc::clone(elsewhere);
    let called = lua.create_async_function(move |lua, arguments: MultiValue| {
        let elsewhere = Rc::clone(&elsewhere);
        async move {
            let options = Options::new(DIFF, &arguments, 2, &["context", "old_name", "new_name"])?;
            let (old, new) = (bytes(DIFF, &arguments, 0)?, bytes(DIFF, &arguments, 1)?);
            for text in [&old, &new] {
                difference::check(&utf8(text, DIFF)?).map_err(|error| wrong(DIFF, &error))?;
            }
            let context = options.whole("context", 0..=10_000)?.unwrap_or(3) as usize;
            let old_name = options.text("old_name")?.unwrap_or_else(|| String::from("old"));
            let new_name = options.text("new_name")?.unwrap_or_else(|| String::from("new"));
            let compared = || Compared {
                old: old.to_string_lossy(),
                new: new.to_string_lossy(),
                context,
                old_name,
                new_name,
            };
            if old.as_bytes().len() + new.as_bytes().len() <= 2 * AT_ONCE {
                return lua.create_string(compared().diff(SHORT_DIFF));
            }
            let work = move |compared: Compared, _: &AtomicBool| Ok(compared.diff(LONG_DIFF));
            lua.create_string(elsewhere.run(DIFF, compared, work).await?)
        }
    })?;
    table.raw_set("diff", called)
}

/// What the functions with patterns share.
struct Searching {
    elsewhere: Rc<Elsewhere>,
    patterns: Patterns,
    array: Table,
}

fn add_patterns(lua: &Lua, table: &Table, elsewhere: &Rc<Elsewhere>, marks: &Marks) -> mlua::Result<()> {
    let searching = Rc::new(Searching {
        elsewhere: Rc::clone(elsewhere),
        patterns: Patterns::default(),
        array: marks.array.clone(),
    });
    let any = |_: &_, _: &_| Ok(Search::Any);
    add_search(lua, table, &searching, ("matches", "text.matches"), any)?;
    add_search(lua, table, &searching, ("find", "text.find"), |function, arguments| {
        let from = optional(arguments, 2).map_or(Ok(1), |()| whole(function, arguments, 2))?;
        Ok(Search::First(usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX)))
    })?;
    add_search(lua, table, &searching, ("find_all", "text.find_all"), |function, arguments| {
        let options = Options::new(function, arguments, 2, &["limit"])?;
        Ok(Search::All(options.whole("limit", 1..=MAX_MATCHES)?.unwrap_or(MAX_MATCHES) as usize))
    })?;
    add_search(lua, table, &searching, ("replace_matches", "text.replace_matches"), |function, arguments| {
        let with = bytes(function, arguments, 2)?;
        if with.as_bytes().len() > MAX_REPLACEMENT {
            let most = MAX_REPLACEMENT >> 10;
            return Err(wrong(function, &format!("the replacement is longer than {most} KiB")));
        }
        Ok(Search::Replace(with.as_bytes().to_vec(), limit(function, arguments, 3)?))
    })
}

/// Adds a function of a text and a pattern; `take` reads the other arguments.
fn add_search(
    lua: &Lua,
    table: &Table,
    searching: &Rc<Searching>,
    (name, function): (&'static str, &'static str),
    take: impl Fn(&'static str, &MultiValue) -> mlua::Result<Search> + Copy + 'static,
) -> mlua::Result<()> {
    let searching = Rc::clone(searching);
    let called = lua.create_async_function(move |lua, arguments: MultiValue| {
        let searching = Rc::clone(&searching);
        async move {
            let text = bytes(function, &arguments, 0)?;
            let pattern = utf8(&bytes(function, &arguments, 1)?, function)?.to_owned();
            let wanted = take(function, &arguments)?;
            let pattern = searching.patterns.get(&pattern).map_err(|error| wrong(function, &error))?;
            let is_first = matches!(wanted, Search::First(_));
            let length = text.as_bytes().len();
            let found = if length <= AT_ONCE && pattern.steps(length) <= FEW_STEPS {
                let control = searching.elsewhere.host.control.borrow().clone();
                let go_on = || control.as_ref().is_none_or(|control| control.stopped().is_none());
                pattern.search(&text.as_bytes(), &wanted, &go_on).map_err(|error| wrong(function, &error))?
            } else {
                let copied = (Arc::clone(&pattern), wanted);
                let copy = || (copied, text.as_bytes().to_vec());
                let work = |((pattern, wanted), text): ((Arc<Pattern>, Search), Vec<u8>),
                            stop: &AtomicBool| {
                    pattern.search(&text, &wanted, &|| !stop.load(Ordering::Relaxed))
                };
                searching.elsewhere.run(function, copy, work).await?
            };
            match found {
                Found::Any(any) => Ok(MultiValue::from_iter([LuaValue::Boolean(any)])),
                Found::Replaced(made, count) => {
                    let made = LuaValue::String(lua.create_string(made)?);
                    let count = i64::try_from(count).unwrap_or(i64::MAX);
                    Ok(MultiValue::from_iter([made, LuaValue::Integer(count)]))
                }
                Found::Matches(matches) => {
                    let text = text.as_bytes();
                    let mut made = matches
                        .iter()
                        .map(|spans| match_table(&lua, &pattern, &text, spans, &searching.array));
                    if is_first {
                        let first = made.next().transpose()?.map_or(LuaValue::Nil, LuaValue::Table);
                        return Ok(MultiValue::from_iter([first]));
                    }
                    let all = lua.create_table_with_capacity(matches.len(), 0)?;
                    made.try_for_each(|one| all.raw_push(one?))?;
                    all.set_metatable(Some(searching.array.clone()))?;
                    Ok(MultiValue::from_iter([LuaValue::Table(all)]))
                }
            }
        }
    })?;
    table.raw_set(name, called)
}

/// What is done on threads of the engine's, a little at a time: copies of the texts lie outside the script's memory
/// limit.
struct Elsewhere {
    host: Rc<Host>,
    turns: Arc<Semaphore>,
}

impl Elsewhere {
    /// Does `work` on what `copy` makes once it is this function's turn. It is told when nobody waits for it any more.
    async fn run<Copied: Send + 'static, Done: Send + 'static>(
        &self,
        function: &'static str,
        copy: impl FnOnce() -> Copied,
        work: impl FnOnce(Copied, &AtomicBool) -> Result<Done, String> + Send + 'static,
    ) -> mlua::Result<Done> {
        let _waiting = self.host.wait(function)?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(mlua::Error::external)?;
        let copied = copy();
        let abandoned = Abandoned(Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&abandoned.0);
        let done = io::blocking(move || {
            let _turn = turn;
            work(copied, &stop).map_err(|message| HostError { kind: ToolErrorKind::Script, message })
        });
        done.await.map_err(|error| HostError::lua(error.kind, format!("{function}: {}", error.message)))
    }
}

/// Tells a search that nobody waits for it, when it is dropped.
struct Abandoned(Arc<AtomicBool>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn match_table(
    lua: &Lua,
    pattern: &Pattern,
    text: &[u8],
    spans: &Spans,
    array: &Table,
) -> mlua::Result<Table> {
    let part = |span: &Option<(usize, usize)>| {
        let part = span.and_then(|(start, end)| text.get(start..end)).unwrap_or_default();
        lua.create_string(part)
    };
    let made = lua.create_table_with_capacity(0, 5)?;
    let groups = lua.create_table_with_capacity(spans.len().saturating_sub(1), 0)?;
    let named = lua.create_table()?;
    for (index, (span, name)) in spans.iter().zip(pattern.group_names()).enumerate() {
        if index == 0 {
            let (start, end) = span.unwrap_or_default();
            made.raw_set("text", part(span)?)?;
            made.raw_set("first", start + 1)?;
            made.raw_set("last", end)?;
            continue;
        }
        groups.raw_push(part(span)?)?;
        if let (Some(name), Some(_)) = (name, span) {
            named.raw_set(name, part(span)?)?;
        }
    }
    groups.set_metatable(Some(array.clone()))?;
    made.raw_set("groups", groups)?;
    made.raw_set("named", named)?;
    Ok(made)
}

/// Adds a function that does not wait.
fn add<Given: mlua::IntoLuaMulti>(
    lua: &Lua,
    table: &Table,
    (name, function): (&'static str, &'static str),
    called: impl Fn(&Lua, &'static str, &MultiValue) -> mlua::Result<Given> + 'static,
) -> mlua::Result<()> {
    let called = lua.create_function(move |lua, arguments: MultiValue| called(lua, function, &arguments))?;
    table.raw_set(name, called)
}

/// The string at `index` (from 0), if it is not too long.
fn bytes(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<LuaString> {
    match arguments.get(index) {
        Some(LuaValue::String(text)) if text.as_bytes().len() > MAX_TEXT => {
            Err(wrong(function, &format!("the text is longer than {} MiB", MAX_TEXT >> 20)))
        }
        Some(LuaValue::String(text)) => Ok(text.clone()),
        other => Err(misuse(function, "a string", other)),
    }
}

/// The string at `index`, which must not be empty.
fn some(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<LuaString> {
    let text = bytes(function, arguments, index)?;
    if text.as_bytes().is_empty() {
        return Err(wrong(function, "an empty string is everywhere; say what to look for"));
    }
    Ok(text)
}

fn utf8(text: &LuaString, function: &str) -> mlua::Result<mlua::BorrowedStr> {
    text.to_str().map_err(|_| wrong(function, "the text is not UTF-8"))
}

fn optional(arguments: &MultiValue, index: usize) -> Option<()> {
    arguments.get(index).filter(|value| !value.is_nil()).map(drop)
}

fn whole(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<i64> {
    let number = number_argument(function, arguments, index, "a whole number")?;
    // A cast of a float saturates.
    if number.fract() == 0.0 {
        Ok(number as i64)
    } else {
        Err(misuse(function, "a whole number", arguments.get(index)))
    }
}

/// How often something is done, without end by default.
fn limit(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<usize> {
    let limit = optional(arguments, index).map_or(Ok(i64::MAX), |()| whole(function, arguments, index))?;
    Ok(usize::try_from(limit).unwrap_or(0))
}

fn wrong(function: &str, message: &str) -> mlua::Error {
    HostError::script(format!("{function}: {message}"))
}
