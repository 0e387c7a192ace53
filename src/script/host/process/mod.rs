//! `process`: programs that `:allow (:run …)` grants.
//!
//! `program` says which program is meant and what it is given, `child` holds it and its guard, `output` reads what it
//! writes, `run` puts the three together. There is no shell: a program gets its arguments as they are.
//!
//! A program that was granted does what it likes with files and the network, with the engine's rights. What is promised
//! is which program it is, what it is given, that it has no terminal, that it cannot read the engine's memory, and that
//! neither it nor what it started outlives the call. `docs/isolation.md` says where.

#[cfg(unix)]
mod child;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod program;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod table;

use super::{FunctionDoc, TableDoc};

pub(super) const DOC: TableDoc = TableDoc {
    permissions: &["run"],
    types: "type ProcessOptions = { stdin: string?, cwd: string?, timeout: number?, env: { [string]: string }?, max_output: number? }\n\
            type ProcessResult = { ok: boolean, code: number?, signal: number?, timed_out: boolean, stdout: string, stderr: string, truncated: boolean }",
    functions: &[FunctionDoc::new(
        "run",
        "(argv: { string }, options: ProcessOptions?) -> ProcessResult",
        "Runs a program to its end. `argv[1]` is the program, named exactly as the spec grants it: a bare name is looked up in \
         the engine's `PATH`, a path is relative to the project. There is no shell; arguments arrive as they are.\n\n\
         `stdin`: what it reads, nothing by default. `cwd`: the folder it runs in, by default the project's; any in the project \
         or beneath a granted folder. `timeout`: seconds after which it is killed; the call's time limit ends it anyway. `max_output`: \
         bytes that are kept of each stream, 1 MiB by default, 8 MiB at most; the rest is read and dropped, and `truncated` is \
         true. `env`: variables beside `PATH`, `LANG=C.UTF-8` and those of `:allow (:env …)` that are set; it gets no others.\n\n\
         `ok` is whether it ended with code 0. Another code is no error; `code` is nil where a signal ended it. What it started \
         and left running is killed when it ends. It has no terminal.",
    )
    .needs(&["run"])
    .fails(
        "A program that the spec does not list under `:allow (:run [\"git\"])`, that is not there or does not start; a variable that \
         changes which code a program runs (`LD_PRELOAD`, `PATH`, `PYTHONPATH`, …) and is not under `:env`. At most four run at a \
         time, others wait. Not on Windows.",
    )
    .as_in(
        "local run = process.run({ \"git\", \"status\", \"--short\" }, { timeout = 10 })\n\
         if not run.ok then error(tool.failure(run.stderr)) end",
    )],
    ..TableDoc::new(
        "process",
        "Programs that the spec grants: `:allow (:run [\"git\"])`. A program that was granted may do whatever the engine may; one \
         that runs others (a shell, an interpreter, git with its settings) is as good as all of them.",
    )
};

#[cfg(unix)]
pub use child::{guard_programs, kill_programs};
#[cfg(unix)]
pub(super) use table::table;

/// There are none.
#[cfg(not(unix))]
pub fn kill_programs() {}

/// There are none.
#[cfg(not(unix))]
pub fn guard_programs(_: crate::script::ProcessOptions) {}

#[cfg(not(unix))]
pub(super) fn table(
    lua: &mlua::Lua,
    _: &std::rc::Rc<super::Host>,
    _: &crate::script::Script,
) -> mlua::Result<mlua::Table> {
    let table = lua.create_table()?;
    let missing = "process.run: programs are not run on this system as yet, it has no process groups";
    table.raw_set(
        "run",
        lua.create_function(move |_, ()| -> mlua::Result<()> {
            Err(crate::script::error::HostError::script(missing))
        })?,
    )?;
    Ok(table)
}
