//! The Lua side of `process`: parses arguments and options, and converts the result.

use std::rc::Rc;
use std::sync::{Arc, Weak};

use deftool_process::KillHandle;
use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use tokio::sync::Semaphore;

use super::super::arguments::{Options, argument_error};
use super::super::state::Host;
use super::program::{ProgramGrants, is_variable};
use super::run::{RunRequest, RunResult, run};
use crate::error::{HostError, clean};
use crate::io;
use crate::script::Script;

const RUN: &str = "process.run";
/// Maximum number of programs that a call runs at a time.
const MAX_CONCURRENT: usize = 4;
/// Maximum number of arguments, and of variables.
pub(super) const MAX_ITEMS: usize = 1_000;
/// Maximum total length of the arguments, and of the variables, in bytes. The operating system may have lower limits.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// Maximum length of the input, and of the output that is kept of each stream, in bytes.
pub(super) const MAX_STREAM: u64 = 8 << 20;
const DEFAULT_OUTPUT: u64 = 1 << 20;

pub(in crate::host) fn table(lua: &Lua, host: &Rc<Host>, script: &Script) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let grants = Arc::new(ProgramGrants::new(script));
    let permits = Rc::new(Semaphore::new(MAX_CONCURRENT));
    let shared = Rc::clone(host);
    let function = lua.create_async_function(move |lua, arguments: MultiValue| {
        let (shared, grants, permits) = (Rc::clone(&shared), Arc::clone(&grants), Rc::clone(&permits));
        async move {
            let _waiting = shared.wait(RUN)?;
            let _permit = permits.acquire().await.map_err(mlua::Error::external)?;
            // Copy only now: until then the arguments count towards the script's memory limit.
            let request = parse_request(&grants, &arguments)?;
            let kill_handle = Arc::new(KillHandle::default());
            if let Some(control) = &*shared.control.borrow() {
                let handle: Weak<KillHandle> = Arc::downgrade(&kill_handle);
                control.abort_on_end(handle);
            }
            result_table(&lua, io::run(run(grants, request, kill_handle)).await.map_err(prefix_error)?)
        }
    })?;
    table.raw_set("run", function)?;
    Ok(table)
}

fn prefix_error(error: HostError) -> mlua::Error {
    HostError::lua(error.kind, format!("{RUN}: {}", error.message))
}

fn parse_request(grants: &ProgramGrants, arguments: &MultiValue) -> mlua::Result<RunRequest> {
    let options = Options::new(RUN, arguments, 1, &["stdin", "cwd", "timeout", "env", "max_output"])?;
    let argv = match arguments.front() {
        Some(LuaValue::Table(argv)) => argv_of(argv)?,
        other => {
            return Err(argument_error(
                RUN,
                "the program and its arguments, as in { \"git\", \"status\" }",
                other,
            ));
        }
    };
    let name = argv.first().map(String::as_str).unwrap_or_default();
    grants.check_program(name).map_err(prefix_error)?;
    let stdin = match options.value("stdin")? {
        LuaValue::Nil => None,
        LuaValue::String(text) if text.as_bytes().len() as u64 > MAX_STREAM => {
            return Err(HostError::script(format!("{RUN}: stdin is longer than {} MiB", MAX_STREAM >> 20)));
        }
        LuaValue::String(text) => Some(text.as_bytes().to_vec()),
        other => return Err(options.option_error("stdin", "a string", &other)),
    };
    let variables = match options.value("env")? {
        LuaValue::Nil => Vec::new(),
        LuaValue::Table(variables) => variables_of(&variables)?,
        other => return Err(options.option_error("env", "a table of names and strings", &other)),
    };
    for (name, _) in &variables {
        grants.check_variable(name).map_err(prefix_error)?;
    }
    Ok(RunRequest {
        argv,
        stdin,
        cwd: options.text("cwd")?,
        variables,
        timeout: options.seconds("timeout")?,
        max_output: options.integer("max_output", 0..=MAX_STREAM)?.unwrap_or(DEFAULT_OUTPUT) as usize,
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
        argv.push(string_argument(&item, &format!("argv[{index}]"), &mut bytes)?);
    }
    Ok(argv)
}

fn variables_of(table: &Table) -> mlua::Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    let mut bytes = 0;
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (name, value) = pair?;
        let name = string_argument(&name, "the names of env", &mut bytes)?;
        if !is_variable(&name) {
            return Err(HostError::script(format!("{RUN}: invalid variable name {:?}", clean(&name, 100))));
        }
        let value = string_argument(&value, &format!("env.{}", clean(&name, 100)), &mut bytes)?;
        variables.push((name, value));
        if variables.len() > MAX_ITEMS {
            return Err(HostError::script(format!("{RUN}: more than {MAX_ITEMS} variables")));
        }
    }
    Ok(variables)
}

/// Converts `value` to a string without NUL. `bytes` is the running total of their lengths.
fn string_argument(value: &LuaValue, what: &str, bytes: &mut usize) -> mlua::Result<String> {
    let LuaValue::String(text) = value else {
        return Err(argument_error(RUN, &format!("{what} to be a string"), Some(value)));
    };
    let text = text
        .to_str()
        .map_err(|_| HostError::script(format!("{RUN}: {what}: the string is not UTF-8")))?
        .to_owned();
    if text.contains('\0') {
        return Err(HostError::script(format!("{RUN}: {what}: the string contains a NUL character")));
    }
    *bytes += text.len();
    if *bytes > MAX_BYTES {
        return Err(HostError::script(format!("{RUN}: more than {} KiB of arguments", MAX_BYTES >> 10)));
    }
    Ok(text)
}

fn result_table(lua: &Lua, finished: RunResult) -> mlua::Result<Table> {
    let RunResult { code, signal, timed_out, stdout, stderr } = finished;
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
