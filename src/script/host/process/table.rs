//! `process` as scripts see it: arguments and options taken apart, the answer made of Lua values.

use std::rc::Rc;
use std::sync::{Arc, Weak};

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use tokio::sync::Semaphore;

use super::super::options::Options;
use super::super::{Host, misuse};
use super::child::Rein;
use super::program::{Grants, is_variable};
use super::run::{Finished, Order, run};
use crate::script::Script;
use crate::script::error::{HostError, clean};
use crate::script::io;

const RUN: &str = "process.run";
/// Most programs that a call runs at a time.
const MAX_AT_A_TIME: usize = 4;
/// Most arguments, and most variables.
const MAX_ITEMS: usize = 1_000;
/// Longest arguments or variables together, in bytes; systems have limits of their own.
const MAX_BYTES: usize = 1 << 20;
/// Longest input, and most that is kept of each stream, in bytes.
const MAX_STREAM: u64 = 8 << 20;
const USUAL_OUTPUT: u64 = 1 << 20;

pub(in crate::script::host) fn table(lua: &Lua, host: &Rc<Host>, script: &Script) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let grants = Arc::new(Grants::new(script));
    let turns = Rc::new(Semaphore::new(MAX_AT_A_TIME));
    let shared = Rc::clone(host);
    let called = lua.create_async_function(move |lua, arguments: MultiValue| {
        let (shared, grants, turns) = (Rc::clone(&shared), Arc::clone(&grants), Rc::clone(&turns));
        async move {
            let _waiting = shared.wait(RUN)?;
            let _turn = turns.acquire().await.map_err(mlua::Error::external)?;
            // Copied only now: what waits for its turn is within the script's memory limit.
            let order = order(&grants, &arguments)?;
            let rein = Arc::new(Rein::default());
            if let Some(control) = &*shared.control.borrow() {
                let leash: Weak<Rein> = Arc::downgrade(&rein);
                control.hold(leash);
            }
            give(&lua, io::run(run(grants, order, rein)).await.map_err(told)?)
        }
    })?;
    table.raw_set("run", called)?;
    Ok(table)
}

fn told(error: HostError) -> mlua::Error {
    HostError::lua(error.kind, format!("{RUN}: {}", error.message))
}

fn order(grants: &Grants, arguments: &MultiValue) -> mlua::Result<Order> {
    let options = Options::new(RUN, arguments, 1, &["stdin", "cwd", "timeout", "env", "max_output"])?;
    let argv = match arguments.front() {
        Some(LuaValue::Table(argv)) => argv_of(argv)?,
        other => {
            return Err(misuse(RUN, "the program and its arguments, as in { \"git\", \"status\" }", other));
        }
    };
    let name = argv.first().map(String::as_str).unwrap_or_default();
    grants.check_program(name).map_err(told)?;
    let stdin = match options.value("stdin")? {
        LuaValue::Nil => None,
        LuaValue::String(text) if text.as_bytes().len() as u64 > MAX_STREAM => {
            return Err(HostError::script(format!("{RUN}: stdin has more than {} MiB", MAX_STREAM >> 20)));
        }
        LuaValue::String(text) => Some(text.as_bytes().to_vec()),
        other => return Err(options.wrong("stdin", "a string", &other)),
    };
    let variables = match options.value("env")? {
        LuaValue::Nil => Vec::new(),
        LuaValue::Table(variables) => variables_of(&variables)?,
        other => return Err(options.wrong("env", "a table of names and strings", &other)),
    };
    for (name, _) in &variables {
        grants.check_variable(name).map_err(told)?;
    }
    Ok(Order {
        argv,
        stdin,
        cwd: options.text("cwd")?,
        variables,
        timeout: options.seconds("timeout")?,
        max_output: options.whole("max_output", 0..=MAX_STREAM)?.unwrap_or(USUAL_OUTPUT) as usize,
    })
}

fn argv_of(table: &Table) -> mlua::Result<Vec<String>> {
    let length = table.raw_len();
    if length == 0 {
        return Err(HostError::script(format!("{RUN}: the list of program and arguments is empty")));
    }
    if length > MAX_ITEMS {
        return Err(HostError::script(format!("{RUN}: more than {MAX_ITEMS} arguments")));
    }
    let mut argv = Vec::with_capacity(length);
    let mut bytes = 0;
    for index in 1..=length {
        let item = table.raw_get::<LuaValue>(index)?;
        argv.push(plain_text(&item, &format!("argv[{index}]"), &mut bytes)?);
    }
    Ok(argv)
}

fn variables_of(table: &Table) -> mlua::Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    let mut bytes = 0;
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (name, value) = pair?;
        let name = plain_text(&name, "the names of env", &mut bytes)?;
        if !is_variable(&name) {
            return Err(HostError::script(format!(
                "{RUN}: {:?} is no name of a variable",
                clean(&name, 100)
            )));
        }
        let value = plain_text(&value, &format!("env.{}", clean(&name, 100)), &mut bytes)?;
        variables.push((name, value));
        if variables.len() > MAX_ITEMS {
            return Err(HostError::script(format!("{RUN}: more than {MAX_ITEMS} variables")));
        }
    }
    Ok(variables)
}

/// `value` as something that a program can be given; `bytes` counts what it has been given.
fn plain_text(value: &LuaValue, what: &str, bytes: &mut usize) -> mlua::Result<String> {
    let LuaValue::String(text) = value else {
        return Err(misuse(RUN, &format!("{what} to be a string"), Some(value)));
    };
    let text = text
        .to_str()
        .map_err(|_| HostError::script(format!("{RUN}: {what}: the string is not UTF-8")))?
        .to_owned();
    if text.contains('\0') {
        return Err(HostError::script(format!("{RUN}: {what}: a NUL character ends no program's argument")));
    }
    *bytes += text.len();
    if *bytes > MAX_BYTES {
        return Err(HostError::script(format!("{RUN}: more than {} KiB of arguments", MAX_BYTES >> 10)));
    }
    Ok(text)
}

fn give(lua: &Lua, finished: Finished) -> mlua::Result<Table> {
    let Finished { code, signal, timed_out, stdout, stderr } = finished;
    let result = lua.create_table_with_capacity(0, 7)?;
    result.raw_set("ok", code == Some(0))?;
    result.raw_set("code", code)?;
    result.raw_set("signal", signal)?;
    result.raw_set("timed_out", timed_out)?;
    result.raw_set("truncated", stdout.truncated || stderr.truncated)?;
    result.raw_set("stdout", lua.create_string(stdout.bytes)?)?;
    result.raw_set("stderr", lua.create_string(stderr.bytes)?)?;
    Ok(result)
}
