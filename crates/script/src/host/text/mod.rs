//! The `text` host table: UTF-8 functions, regular expressions and diffs.
//!
//! These functions cannot be interrupted, so the length of texts is limited. Slow ones (regular expressions and diffs
//! of more than a few KiB) run on an IO thread while the script is suspended.

mod diff;
mod doc;
mod pattern;
mod plain;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deftool_lang::tool::ToolErrorKind;
use mlua::{Lua, LuaString, MultiValue, Table, Value as LuaValue};
use tokio::sync::Semaphore;

pub(super) use doc::DOC;

use self::diff::DiffInput;
use self::pattern::{Pattern, PatternCache, Search, SearchResult, Spans, escape};
use self::plain::MAX_TEXT;
use super::arguments::{Options, argument_error, number_argument};
use super::state::{Host, Marks};
use crate::error::HostError;
use crate::io;

/// Maximum length of a text to search on the script's thread, in bytes.
const MAX_INLINE_TEXT: usize = 4 << 10;
/// Maximum number of steps of a slow search there. See [`Pattern::steps`].
const MAX_INLINE_STEPS: usize = 1 << 22;
/// Time limits for a diff of two short texts, and of two long ones.
const SHORT_DIFF: Duration = Duration::from_millis(20);
const LONG_DIFF: Duration = Duration::from_secs(1);
/// Maximum number of searches and diffs of long texts that a call runs at a time.
const MAX_CONCURRENT: usize = 2;
/// Maximum number of matches to return.
const MAX_MATCHES: u64 = 10_000;
/// Maximum length of a replacement, in bytes.
const MAX_REPLACEMENT: usize = 64 << 10;
/// Maximum width of a line, in characters.
const MAX_WIDTH: f64 = 10_000.0;

pub(super) fn table(lua: &Lua, host: &Rc<Host>, marks: &Marks) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    add_characters(lua, &table)?;
    add_parts(lua, &table)?;
    let array = marks.array.clone();
    add(lua, &table, ("lines", "text.lines"), move |lua, function, arguments| {
        let text = string_argument(function, arguments, 0)?;
        let lines = lua.create_table()?;
        for line in plain::lines(&text.as_bytes()) {
            lines.raw_push(lua.create_string(line)?)?;
        }
        lines.set_metatable(Some(array.clone()))?;
        Ok(lines)
    })?;
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
    let background = Rc::new(Background { host: Rc::clone(host), permits });
    add_diff(lua, &table, &background)?;
    add_patterns(lua, &table, &background, marks)?;
    Ok(table)
}

/// Adds the functions that work on characters.
fn add_characters(lua: &Lua, table: &Table) -> mlua::Result<()> {
    add(lua, table, ("length", "text.length"), |_, function, arguments| {
        Ok(utf8(&string_argument(function, arguments, 0)?, function)?.chars().count())
    })?;
    add(lua, table, ("sub", "text.sub"), |lua, function, arguments| {
        let text = string_argument(function, arguments, 0)?;
        let from = integer_argument(function, arguments, 1)?;
        let to = optional(arguments, 2).map_or(Ok(-1), |()| integer_argument(function, arguments, 2))?;
        lua.create_string(plain::sub(&utf8(&text, function)?, from, to))
    })?;
    add(lua, table, ("valid", "text.valid"), |_, function, arguments| {
        Ok(string_argument(function, arguments, 0)?.to_str().is_ok())
    })?;
    add(lua, table, ("trim", "text.trim"), |lua, function, arguments| {
        lua.create_string(utf8(&string_argument(function, arguments, 0)?, function)?.trim())
    })?;
    add(lua, table, ("lower", "text.lower"), |lua, function, arguments| {
        lua.create_string(utf8(&string_argument(function, arguments, 0)?, function)?.to_lowercase())
    })?;
    add(lua, table, ("upper", "text.upper"), |lua, function, arguments| {
        lua.create_string(utf8(&string_argument(function, arguments, 0)?, function)?.to_uppercase())
    })?;
    add(lua, table, ("wrap", "text.wrap"), |lua, function, arguments| {
        let text = string_argument(function, arguments, 0)?;
        let width = number_argument(function, arguments, 1, "a width in characters")?;
        if !(1.0..=MAX_WIDTH).contains(&width) {
            return Err(HostError::script(format!("{function}: the width must be from 1 to {MAX_WIDTH}")));
        }
        // The width is positive.
        #[allow(clippy::cast_sign_loss)]
        lua.create_string(plain::wrap(&utf8(&text, function)?, width as usize))
    })?;
    add(lua, table, ("truncate", "text.truncate"), |lua, function, arguments| {
        let text = string_argument(function, arguments, 0)?;
        let limit = usize::try_from(integer_argument(function, arguments, 1)?).unwrap_or(0);
        let options = Options::new(function, arguments, 2, &["bytes", "mark"])?;
        let mark = options.text("mark")?.unwrap_or_else(|| String::from("…"));
        let in_bytes = options.flag("bytes")?.unwrap_or(false);
        lua.create_string(plain::truncate(&utf8(&text, function)?, limit, in_bytes, &mark))
    })
}

/// Adds the functions that search for literal text.
fn add_parts(lua: &Lua, table: &Table) -> mlua::Result<()> {
    add(lua, table, ("starts_with", "text.starts_with"), |_, function, arguments| {
        Ok(string_argument(function, arguments, 0)?
            .as_bytes()
            .starts_with(&string_argument(function, arguments, 1)?.as_bytes()))
    })?;
    add(lua, table, ("ends_with", "text.ends_with"), |_, function, arguments| {
        Ok(string_argument(function, arguments, 0)?
            .as_bytes()
            .ends_with(&string_argument(function, arguments, 1)?.as_bytes()))
    })?;
    add(lua, table, ("count", "text.count"), |_, function, arguments| {
        let (text, part) =
            (string_argument(function, arguments, 0)?, non_empty_argument(function, arguments, 1)?);
        Ok(memchr::memmem::find_iter(&text.as_bytes(), &part.as_bytes()).count())
    })?;
    add(lua, table, ("replace", "text.replace"), |lua, function, arguments| {
        let (text, old) =
            (string_argument(function, arguments, 0)?, non_empty_argument(function, arguments, 1)?);
        let (new, limit) = (string_argument(function, arguments, 2)?, limit(function, arguments, 3)?);
        let (result, count) = plain::replace(&text.as_bytes(), &old.as_bytes(), &new.as_bytes(), limit)
            .map_err(|error| script_error(function, &error))?;
        Ok((lua.create_string(result)?, count))
    })?;
    add(lua, table, ("escape", "text.escape"), |lua, function, arguments| {
        lua.create_string(escape(&utf8(&string_argument(function, arguments, 0)?, function)?))
    })
}

fn add_diff(lua: &Lua, table: &Table, background: &Rc<Background>) -> mlua::Result<()> {
    const DIFF: &str = "text.diff";
    let background = Rc::clone(background);
    let called = lua.create_async_function(move |lua, arguments: MultiValue| {
        let background = Rc::clone(&background);
        async move {
            let options = Options::new(DIFF, &arguments, 2, &["context", "old_name", "new_name"])?;
            let (old, new) = (string_argument(DIFF, &arguments, 0)?, string_argument(DIFF, &arguments, 1)?);
            for text in [&old, &new] {
                diff::check(&utf8(text, DIFF)?).map_err(|error| script_error(DIFF, &error))?;
            }
            let context = options.integer("context", 0..=10_000)?.unwrap_or(3) as usize;
            let old_name = options.text("old_name")?.unwrap_or_else(|| String::from("old"));
            let new_name = options.text("new_name")?.unwrap_or_else(|| String::from("new"));
            let input = || DiffInput {
                old: old.to_string_lossy(),
                new: new.to_string_lossy(),
                context,
                old_name,
                new_name,
            };
            if old.as_bytes().len() + new.as_bytes().len() <= 2 * MAX_INLINE_TEXT {
                return lua.create_string(input().diff(SHORT_DIFF));
            }
            let work = move |input: DiffInput, _: &AtomicBool| Ok(input.diff(LONG_DIFF));
            lua.create_string(background.run(DIFF, input, work).await?)
        }
    })?;
    table.raw_set("diff", called)
}

/// State that the functions with patterns share.
struct SearchContext {
    background: Rc<Background>,
    patterns: PatternCache,
    array: Table,
}

fn add_patterns(lua: &Lua, table: &Table, background: &Rc<Background>, marks: &Marks) -> mlua::Result<()> {
    let context = Rc::new(SearchContext {
        background: Rc::clone(background),
        patterns: PatternCache::default(),
        array: marks.array.clone(),
    });
    let any = |_: &_, _: &_| Ok(Search::Any);
    add_search(lua, table, &context, ("matches", "text.matches"), any)?;
    add_search(lua, table, &context, ("find", "text.find"), |function, arguments| {
        let from = optional(arguments, 2).map_or(Ok(1), |()| integer_argument(function, arguments, 2))?;
        Ok(Search::First(usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX)))
    })?;
    add_search(lua, table, &context, ("find_all", "text.find_all"), |function, arguments| {
        let options = Options::new(function, arguments, 2, &["limit"])?;
        Ok(Search::All(options.integer("limit", 1..=MAX_MATCHES)?.unwrap_or(MAX_MATCHES) as usize))
    })?;
    add_search(lua, table, &context, ("replace_matches", "text.replace_matches"), |function, arguments| {
        let with = string_argument(function, arguments, 2)?;
        if with.as_bytes().len() > MAX_REPLACEMENT {
            let limit = MAX_REPLACEMENT >> 10;
            return Err(script_error(function, &format!("the replacement is longer than {limit} KiB")));
        }
        Ok(Search::Replace(with.as_bytes().to_vec(), limit(function, arguments, 3)?))
    })
}

/// Adds a function that takes a text and a pattern. `parse` reads the other arguments.
fn add_search(
    lua: &Lua,
    table: &Table,
    context: &Rc<SearchContext>,
    (name, function): (&'static str, &'static str),
    parse: impl Fn(&'static str, &MultiValue) -> mlua::Result<Search> + Copy + 'static,
) -> mlua::Result<()> {
    let context = Rc::clone(context);
    let called = lua.create_async_function(move |lua, arguments: MultiValue| {
        let context = Rc::clone(&context);
        async move {
            let text = string_argument(function, &arguments, 0)?;
            let pattern = utf8(&string_argument(function, &arguments, 1)?, function)?.to_owned();
            let search = parse(function, &arguments)?;
            let pattern = context.patterns.get(&pattern).map_err(|error| script_error(function, &error))?;
            let is_first = matches!(search, Search::First(_));
            let length = text.as_bytes().len();
            let found = if length <= MAX_INLINE_TEXT && pattern.steps(length) <= MAX_INLINE_STEPS {
                let control = context.background.host.control.borrow().clone();
                let should_continue = || control.as_ref().is_none_or(|control| control.stopped().is_none());
                pattern
                    .search(&text.as_bytes(), &search, &should_continue)
                    .map_err(|error| script_error(function, &error))?
            } else {
                let copied = (Arc::clone(&pattern), search);
                let copy = || (copied, text.as_bytes().to_vec());
                let work = |((pattern, search), text): ((Arc<Pattern>, Search), Vec<u8>),
                            stop: &AtomicBool| {
                    pattern.search(&text, &search, &|| !stop.load(Ordering::Relaxed))
                };
                context.background.run(function, copy, work).await?
            };
            match found {
                SearchResult::Any(any) => Ok(MultiValue::from_iter([LuaValue::Boolean(any)])),
                SearchResult::Replaced(result, count) => {
                    let result = LuaValue::String(lua.create_string(result)?);
                    let count = i64::try_from(count).unwrap_or(i64::MAX);
                    Ok(MultiValue::from_iter([result, LuaValue::Integer(count)]))
                }
                SearchResult::Matches(matches) => {
                    let text = text.as_bytes();
                    let mut tables =
                        matches.iter().map(|spans| match_table(&lua, &pattern, &text, spans, &context.array));
                    if is_first {
                        let first = tables.next().transpose()?.map_or(LuaValue::Nil, LuaValue::Table);
                        return Ok(MultiValue::from_iter([first]));
                    }
                    let all = lua.create_table_with_capacity(matches.len(), 0)?;
                    tables.try_for_each(|one| all.raw_push(one?))?;
                    all.set_metatable(Some(context.array.clone()))?;
                    Ok(MultiValue::from_iter([LuaValue::Table(all)]))
                }
            }
        }
    })?;
    table.raw_set(name, called)
}

/// A runner of work on IO threads. Its concurrency is limited, because copies of the texts are held outside of the
/// script's memory limit.
struct Background {
    host: Rc<Host>,
    permits: Arc<Semaphore>,
}

impl Background {
    /// Runs `work` with the result of `copy` when a permit is available. The flag is set when the future is dropped.
    async fn run<Copied: Send + 'static, Output: Send + 'static>(
        &self,
        function: &'static str,
        copy: impl FnOnce() -> Copied,
        work: impl FnOnce(Copied, &AtomicBool) -> Result<Output, String> + Send + 'static,
    ) -> mlua::Result<Output> {
        let _waiting = self.host.wait(function)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(mlua::Error::external)?;
        // Held until the work has ended and the result was received or dropped.
        let permit = Arc::new(permit);
        let work_permit = Arc::clone(&permit);
        let copied = copy();
        let cancel_on_drop = io::CancelOnDrop::default();
        let stop = Arc::clone(&cancel_on_drop.0);
        let output = io::blocking(move || {
            let _permit = work_permit;
            work(copied, &stop).map_err(|message| HostError { kind: ToolErrorKind::Script, message })
        });
        output.await.map_err(|error| HostError::lua(error.kind, format!("{function}: {}", error.message)))
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
    let result = lua.create_table_with_capacity(0, 5)?;
    let groups = lua.create_table_with_capacity(spans.len().saturating_sub(1), 0)?;
    let named = lua.create_table()?;
    for (index, (span, name)) in spans.iter().zip(pattern.group_names()).enumerate() {
        if index == 0 {
            let (start, end) = span.unwrap_or_default();
            result.raw_set("text", part(span)?)?;
            result.raw_set("first", start + 1)?;
            result.raw_set("last", end)?;
            continue;
        }
        groups.raw_push(part(span)?)?;
        if let (Some(name), Some(_)) = (name, span) {
            named.raw_set(name, part(span)?)?;
        }
    }
    groups.set_metatable(Some(array.clone()))?;
    result.raw_set("groups", groups)?;
    result.raw_set("named", named)?;
    Ok(result)
}

/// Adds a function that does not wait.
fn add<Returned: mlua::IntoLuaMulti>(
    lua: &Lua,
    table: &Table,
    (name, function): (&'static str, &'static str),
    called: impl Fn(&Lua, &'static str, &MultiValue) -> mlua::Result<Returned> + 'static,
) -> mlua::Result<()> {
    let called = lua.create_function(move |lua, arguments: MultiValue| called(lua, function, &arguments))?;
    table.raw_set(name, called)
}

/// Returns the string at `index` (from 0).
///
/// # Errors
/// When it is longer than [`MAX_TEXT`].
fn string_argument(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<LuaString> {
    match arguments.get(index) {
        Some(LuaValue::String(text)) if text.as_bytes().len() > MAX_TEXT => {
            Err(script_error(function, &format!("the text is longer than {} MiB", MAX_TEXT >> 20)))
        }
        Some(LuaValue::String(text)) => Ok(text.clone()),
        other => Err(argument_error(function, "a string", other)),
    }
}

/// Returns the string at `index`, which must not be empty.
fn non_empty_argument(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<LuaString> {
    let text = string_argument(function, arguments, index)?;
    if text.as_bytes().is_empty() {
        return Err(script_error(function, "expected a non-empty string"));
    }
    Ok(text)
}

fn utf8(text: &LuaString, function: &str) -> mlua::Result<mlua::BorrowedStr> {
    text.to_str().map_err(|_| script_error(function, "the text is not UTF-8"))
}

fn optional(arguments: &MultiValue, index: usize) -> Option<()> {
    arguments.get(index).filter(|value| !value.is_nil()).map(drop)
}

fn integer_argument(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<i64> {
    let number = number_argument(function, arguments, index, "a whole number")?;
    // Casting a float saturates.
    if number.fract() == 0.0 {
        Ok(number as i64)
    } else {
        Err(argument_error(function, "a whole number", arguments.get(index)))
    }
}

/// Returns the optional limit at `index`, unlimited by default.
fn limit(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<usize> {
    let limit =
        optional(arguments, index).map_or(Ok(i64::MAX), |()| integer_argument(function, arguments, index))?;
    Ok(usize::try_from(limit).unwrap_or(0))
}

fn script_error(function: &str, message: &str) -> mlua::Error {
    HostError::script(format!("{function}: {message}"))
}
