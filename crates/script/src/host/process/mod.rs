//! The `process` host table: runs programs that `:allow (:run …)` grants.
//!
//! `program` finds the program and its environment, and `run` starts it under a guard, feeds its input and collects its
//! output. There is no shell: arguments are passed unchanged. `command` does the same for a tool that is a program.
//!
//! A granted program has the rights of the deftool process, including files and network. The guarantees are: only
//! granted programs run, with a controlled environment and no terminal; they cannot read this process's memory; and
//! neither the program nor the processes that it starts outlive the call. `docs/trust.md` lists the platforms.

pub(crate) mod command;
#[cfg(unix)]
mod program;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod stream;
#[cfg(unix)]
mod table;

use super::docs::{FunctionDoc, TableDoc};

pub(super) const DOC: TableDoc = TableDoc {
    permissions: &["run"],
    types: "type ProcessOptions = { stdin: string?, cwd: string?, timeout: number?, env: { [string]: string }?, max_output: number? }\n\
            type ProcessResult = { ok: boolean, code: number?, signal: number?, timed_out: boolean, stdout: string, stderr: string, truncated: boolean }",
    functions: &[FunctionDoc::new(
        "run",
        "(argv: { string }, options: ProcessOptions?) -> ProcessResult",
        "Runs a program and waits until it exits. `argv[1]` is the program, exactly as granted in the spec: a bare name is looked up \
         in deftool's `PATH`, a path is relative to the project. There is no shell; arguments are passed unchanged.\n\n\
         `stdin`: the input, empty by default. `cwd`: the working directory, by default the project; it must be in the project \
         or in a granted folder. `timeout`: seconds until the program is killed; the call's time limit applies too. `max_output`: \
         the number of bytes to keep of each stream, by default 1 MiB, at most 8 MiB; the rest is discarded and `truncated` is \
         true. `env`: values of environment variables; the spec must list their names under `:allow (:env …)`. The program also gets \
         `PATH`, `LANG=C.UTF-8` and the other listed variables that are set, and no others.\n\n\
         `ok` is true if the exit code is 0. A nonzero exit code is not an error. `code` is nil if a signal ended the program. \
         Processes that it leaves running are killed when it exits. It has no terminal.",
    )
    .with_permissions(&["run"])
    .with_option_permissions(&["env"])
    .with_errors(
        "The spec does not list the program under `:allow (:run [\"git\"])`; the program does not exist or cannot start; `env` contains \
         a variable that the spec does not list under `:allow (:env [\"NAME\"])`. \
         At most four programs run at a time; further calls wait. Not supported on Windows.",
    )
    .with_example(
        "local run = process.run({ \"git\", \"status\", \"--short\" }, { timeout = 10 })\n\
         if not run.ok then error(tool.failure(run.stderr)) end",
    )],
    ..TableDoc::new(
        "process",
        "Runs programs that the spec grants: `:allow (:run [\"git\"])`. A granted program has the same rights as deftool. Granting a \
         program that runs other programs (a shell, an interpreter, git with its configuration) grants all of them.",
    )
};

#[cfg(unix)]
pub use stream::start_program;
#[cfg(unix)]
pub(super) use table::table;

#[cfg(not(unix))]
pub(super) fn table(
    lua: &mlua::Lua,
    _: &std::rc::Rc<super::Host>,
    _: &crate::Script,
) -> mlua::Result<mlua::Table> {
    let table = lua.create_table()?;
    let missing = "process.run: programs are not supported on this platform";
    table.raw_set(
        "run",
        lua.create_function(move |_, ()| -> mlua::Result<()> {
            Err(crate::error::HostError::script(missing))
        })?,
    )?;
    Ok(table)
}
