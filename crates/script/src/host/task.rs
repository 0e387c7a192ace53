//! `task`: `wait([seconds])` suspends the script and returns the seconds waited. `spawn(function, …)` runs a function
//! concurrently; it starts when the current function waits or ends. `delay(seconds, function, …)` does the same after a
//! delay.
//!
//! A call ends when the tool's function returns (for an `:async` tool: when its callback is called). The remaining
//! tasks are stopped. An error in a task ends the call unless the result is already known. At most [`MAX_TASKS`] run at
//! a time.

use std::rc::Rc;
use std::time::{Duration, Instant};

use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

use super::arguments::{argument_error, number_argument};
use super::docs::{FunctionDoc, TableDoc};
use super::state::{Host, Marks, TaskThread};
use crate::error::HostError;

/// Maximum number of tasks of a call at a time.
pub(super) const MAX_TASKS: usize = 1_000;
/// Maximum wait, in seconds. The deadline of a call is always earlier.
const MAX_WAIT: f64 = 86_400.0;

pub(super) const DOC: TableDoc = TableDoc {
    functions: &[
        FunctionDoc::new(
            "wait",
            "(seconds: number?) -> number",
            "Suspends the current task for a number of seconds, by default only until other tasks have run. Returns the seconds waited.",
        )
        .with_errors("Not available while the script loads, in a sort comparator, in a `gsub` callback and in a metamethod."),
        FunctionDoc::new(
            "spawn",
            "(called: (...any) -> ...any, ...any) -> ()",
            "Runs a function concurrently. It starts when the current function waits or ends.",
        )
        .with_errors("More than 1,000 tasks run at a time."),
        FunctionDoc::new(
            "delay",
            "(seconds: number, called: (...any) -> ...any, ...any) -> ()",
            "Runs a function concurrently after a number of seconds.",
        ),
    ],
    ..TableDoc::new(
        "task",
        "Waiting and concurrent functions. A call ends when the tool's function returns (for an `:async` tool: when its callback is \
         called); the remaining tasks are stopped. An error in a task ends the call unless the result is already known.",
    )
};

pub(super) fn table(lua: &Lua, host: &Rc<Host>, marks: &Marks) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let shared = Rc::clone(host);
    table.raw_set(
        "wait",
        lua.create_async_function(move |_, arguments: MultiValue| {
            let shared = Rc::clone(&shared);
            async move {
                let _waiting = shared.wait("task.wait")?;
                let pause = match arguments.front() {
                    None | Some(LuaValue::Nil) => Duration::ZERO,
                    Some(_) => pause("task.wait", &arguments)?,
                };
                let start = Instant::now();
                if pause.is_zero() {
                    // A timer would round up to a millisecond.
                    tokio::task::yield_now().await;
                } else {
                    tokio::time::sleep(pause).await;
                }
                Ok(start.elapsed().as_secs_f64())
            }
        })?,
    )?;
    let shared = Rc::clone(host);
    let guard = marks.guard.clone();
    table.raw_set(
        "spawn",
        lua.create_function(move |lua, arguments: MultiValue| {
            shared.only_in_function("task.spawn")?;
            start(lua, &shared, &guard, "task.spawn", None, arguments)
        })?,
    )?;
    let shared = Rc::clone(host);
    let guard = marks.guard.clone();
    table.raw_set(
        "delay",
        lua.create_function(move |lua, mut arguments: MultiValue| {
            shared.only_in_function("task.delay")?;
            let pause = pause("task.delay", &arguments)?;
            arguments.pop_front();
            start(lua, &shared, &guard, "task.delay", Some(pause), arguments)
        })?,
    )?;
    Ok(table)
}

fn pause(function: &str, arguments: &MultiValue) -> mlua::Result<Duration> {
    let seconds = number_argument(function, arguments, 0, "a number of seconds")?;
    Ok(Duration::from_secs_f64(seconds.clamp(0.0, MAX_WAIT)))
}

fn start(
    lua: &Lua,
    host: &Host,
    guard: &Function,
    name: &str,
    delay: Option<Duration>,
    arguments: MultiValue,
) -> mlua::Result<()> {
    if !matches!(arguments.front(), Some(LuaValue::Function(_))) {
        return Err(argument_error(name, "a function", arguments.front()));
    }
    if host.tasks.get() >= MAX_TASKS {
        return Err(HostError::script(format!("{name}: more than {MAX_TASKS} tasks at a time")));
    }
    let thread = lua.create_thread(guard.clone())?.into_async(arguments)?;
    host.tasks.set(host.tasks.get() + 1);
    host.started.borrow_mut().push(TaskThread {
        delay: delay.map(|delay| Box::pin(tokio::time::sleep(delay))),
        thread: Box::pin(thread),
    });
    Ok(())
}
