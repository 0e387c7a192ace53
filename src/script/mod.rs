//! The sandboxed Luau runtime that runs tool scripts.
//!
//! In: a [`Script`] (source, parameters, limits and granted permissions, resolved by the layer that reads the
//! project) and a validated [`ToolCall`](crate::tool::ToolCall). Out: the JSON that the script returned, or a
//! [`ToolError`](crate::tool::ToolError) that says what ended it, where, and with which traceback. [`ScriptRunner`]
//! runs calls on threads of its own or, under [`Isolation::Processes`], in child processes, which run
//! [`serve_isolated`]; [`LocalVm`] runs them on the caller's thread; [`check_script`] compiles and looks, but never runs.
//! [`run_test`] runs one of the tests that a project has of its scripts. [`definitions`] writes the Luau types of what
//! scripts are given, from the tools' specs.
//!
//! Invariants:
//! - A call has a Lua state to itself from start to end, waiting included, and a fresh environment over read-only
//!   globals: nothing a script does is seen by the next call or by another tool.
//! - A call ends: at its deadline, at its memory limit or when its future is dropped, whatever the script does.
//!   `pcall` does not catch any of these. A state that was stopped is thrown away.
//! - The engine's threads never run script code and never wait for it.
//! - A script reaches nothing but the host tables below and, through them, what its spec allows.
//!
//! What scripts see beyond Luau's own libraries: the tables of `host`, each documented in [`host_tables`], and
//! `require` for the [`Module`]s that came with them. Taken away: `loadstring`, `getfenv`, `setfenv`, `newproxy`,
//! `debug.info`. The chunk's top level runs once per call, works for at most 250 ms and without IO; it returns the tool's
//! function, which gets the arguments in `:args` order.
//!
//! Absent on purpose: where scripts, modules and specs come from (`project` reads them; here only what a script's own
//! calls touch is opened), validation of arguments, who is trusted, a second engine thread pool, native code
//! generation. Luau promises memory safety, not termination of every library call: the calls found to run long
//! without a safepoint (plain `string.find`, `string.split`, long classes in patterns, `table.move`, `os.date`, and what
//! calls back in C) are replaced or bounded in `sandbox.lua`. The compiler is bounded in `compile`.
//!
//! Source: Luau 0.740 through mlua 0.12; the limits were chosen by the measurements noted where they stand.

mod bytecode;
mod compile;
mod contract;
mod control;
mod convert;
mod error;
mod host;
mod interrupt;
mod io;
mod isolate;
mod leftover;
mod libraries;
mod loader;
mod local;
mod module;
mod permission;
mod pool;
pub(crate) mod processes;
mod runner;
mod sandbox;
mod testing;
mod types;
mod vm;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use bytecode::{GlobalAccess, GlobalUse};
use compile::Compiled;
pub use contract::{Contract, LoadProblem, Returned, check_script};
pub(crate) use control::MAX_GRACE;
pub use host::{
    FunctionDoc, LogLevel, ScriptEvent, ScriptSink, TableDoc, ValueDoc, guard_programs, host_tables,
    kill_programs,
};
pub use isolate::{Isolation, ProcessOptions, check_in_processes, serve_isolated};
pub(crate) use leftover::create_beside;
pub use leftover::remove_left_test_folders;
pub use libraries::{is_known_global, known_globals};
pub use local::LocalVm;
pub use module::Module;
pub(crate) use module::{MAX_MODULES, Require, mentions, module_path, required};
pub use permission::{PathGrant, Permissions};
pub(crate) use permission::{hidden_names, is_hidden};
pub use runner::{RunnerOptions, ScriptRunner};
pub use testing::{
    TestEnd, TestFailure, TestFile, TestLimits, TestName, TestSubject, TestTools, list_tests,
    remove_test_folders, run_test,
};
pub(crate) use types::{TYPE_LIMIT, tool_types};
pub use types::{TypeCheck, TypeJob, TypeProblem, check_types, definitions, serve_type_checks};

/// The time limit of a call when neither the caller nor the spec says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The memory limit of a call, in bytes, when the spec does not say otherwise.
pub const DEFAULT_MEMORY: u64 = 64 << 20;
/// The longest source, in bytes: the compiler allocates outside the memory limit and cannot be interrupted.
pub const MAX_SOURCE: usize = 1 << 20;
/// How long a script's top level may work; while its thread waits for a processor it is not counted.
pub const TOP_LEVEL_LIMIT: Duration = Duration::from_millis(250);

/// One parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the arguments object.
    pub name: String,
    /// Whether its schema says `integer`: then a number beyond 2^53 is refused however it is written.
    pub integer: bool,
}

impl Parameter {
    /// A parameter of any type but integer.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), integer: false }
    }
}

/// One loaded tool script. Immutable and shared: a changed file is a new `Arc<Script>`, whose states are its own.
#[derive(Clone)]
pub struct Script {
    /// The tool's name.
    pub tool: String,
    /// The file as messages and tracebacks name it, as in `scripts/get_weather.lua`.
    pub file: String,
    /// The source.
    pub source: Arc<[u8]>,
    /// The parameters, in `:args` order.
    pub parameters: Vec<Parameter>,
    /// Whether the function's first parameter is the callback that takes the result.
    pub is_async: bool,
    /// The spec's time limit.
    pub timeout: Option<Duration>,
    /// The spec's memory limit, in bytes.
    pub memory: Option<u64>,
    /// What the spec allows.
    pub permissions: Permissions,
    /// The project's folder, absolute; what relative paths of programs and files mean. `None`: the current one.
    pub root: Option<PathBuf>,
    /// The files of `scripts/lib` that it requires, and those that they require.
    pub modules: Arc<[Arc<Module>]>,
    compiled: Arc<Compiled>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("tool", &self.tool).field("file", &self.file).finish_non_exhaustive()
    }
}

impl Script {
    /// A script without parameters, limits of its own or permissions; set the fields before sharing it.
    pub fn new(tool: impl Into<String>, file: impl Into<String>, source: impl AsRef<[u8]>) -> Self {
        Self {
            tool: tool.into(),
            file: file.into(),
            source: Arc::from(source.as_ref()),
            parameters: Vec::new(),
            is_async: false,
            timeout: None,
            memory: None,
            permissions: Permissions::default(),
            root: None,
            modules: Arc::new([]),
            compiled: Arc::default(),
        }
    }

    /// The same file as the script of another tool, with nothing else set; source and bytecode are shared.
    #[must_use]
    pub fn for_tool(&self, tool: impl Into<String>) -> Self {
        Self {
            source: Arc::clone(&self.source),
            compiled: Arc::clone(&self.compiled),
            ..Self::new(tool, self.file.clone(), [])
        }
    }

    /// The bytecode, compiled the first time it is asked for: by [`check_script`] as a rule, else by the first call.
    fn compiled(&self) -> Result<Arc<[u8]>, LoadProblem> {
        self.compiled.bytecode(&self.file, &self.source)
    }
}
