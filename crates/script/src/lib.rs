//! The sandboxed Luau runtime for tool scripts.
//!
//! ```
//! use std::sync::Arc;
//!
//! use deftool_lang::tool::CallContext;
//! use deftool_script::{LocalVm, Parameter, Script, ScriptSink};
//! use serde_json::json;
//!
//! let mut script = Script::new("count", "scripts/count.lua", "return function(text) return #text end");
//! script.parameters = vec![Parameter::new("text")];
//! let mut vm = LocalVm::new(Arc::new(script), ScriptSink::default())?;
//! let arguments = json!({"text": "abc"});
//! let result = vm.call(arguments.as_object().unwrap(), CallContext::default())?;
//! assert_eq!(result, json!(3));
//! # Ok::<(), deftool_lang::tool::ToolError>(())
//! ```
//!
//! Input: a [`Script`] (source, parameters, limits and granted permissions, resolved by the layer that reads the
//! project) and a validated [`ToolCall`](deftool_lang::tool::ToolCall). Output: the JSON that the script returned, or a
//! [`ToolError`](deftool_lang::tool::ToolError) with the reason, location and traceback. [`ScriptRunner`] runs calls on its
//! own threads or, with [`Isolation::Processes`], in child processes, which run [`serve_isolated`]. [`LocalVm`] runs
//! them on the caller's thread. [`check_script`] compiles and analyses a script without running it. [`run_test`] runs
//! one test of a project's scripts. [`definitions`] generates Luau types for scripts from the specs of tools.
//!
//! Invariants:
//! - A call has exclusive use of a Lua state from start to end, even while it waits, and a fresh environment over
//!   read-only globals. So a script cannot affect the next call or another tool.
//! - Every call ends: at its deadline, at its memory limit or when its future is dropped, whatever the script does.
//!   `pcall` catches none of these. A state that was stopped is not reused.
//! - The engine's threads never run script code and never wait for it.
//! - A script can access only the host tables below and, through them, what its spec allows.
//!
//! In addition to Luau's own libraries, scripts can use the tables of `host`, documented in [`host_tables`], and
//! `require` for their [`Module`]s. Removed are `loadstring`, `getfenv`, `setfenv`, `newproxy` and `debug.info`. The
//! chunk's top level runs once per call, without IO and with at most 250 ms of CPU time. It returns the tool's
//! function, which gets the arguments in `:args` order.
//!
//! Absent on purpose: loading of scripts, modules and specs (`project` reads them; this module opens only the files
//! that scripts access), validation of arguments, trust decisions, a second engine thread pool, native code generation.
//! Luau guarantees memory safety, but not that every library call ends soon. The calls that were found to run long
//! without a safepoint (plain `string.find`, `string.split`, long classes in patterns, `table.move`, `os.date`, and C
//! functions that take callbacks) are replaced or limited in `sandbox.lua`. The run time of the compiler is limited in
//! `compile`.
//!
//! Source: Luau 0.740 through mlua 0.12. The limits are based on the measurements that are noted next to them.

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
pub mod processes;
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
pub use contract::{Contract, LoadError, Returned, check_script};
pub use control::MAX_GRACE;
pub use host::{
    FunctionDoc, LogLevel, ScriptEvent, ScriptSink, TableDoc, ValueDoc, guard_programs, host_tables,
    kill_programs,
};
pub use isolate::{Isolation, ProcessOptions, check_in_processes, serve_isolated};
pub use leftover::create_beside;
pub use leftover::remove_left_test_folders;
pub use libraries::{is_known_global, known_globals};
pub use local::LocalVm;
pub use module::Module;
pub use module::{MAX_MODULES, Require, count_word, find_requires, module_path};
pub use permission::{PathGrant, ScriptPermissions};
pub use permission::{hidden_names, is_hidden};
pub use runner::{RunnerOptions, ScriptRunner};
pub use testing::{
    TestFailure, TestFile, TestLimits, TestName, TestOutcome, TestSubject, TestTools, list_tests,
    remove_test_folders, run_test,
};
pub use types::{TYPE_LIMIT, tool_types};
pub use types::{TypeCheck, TypeJob, TypeProblem, check_types, definitions, serve_type_checks};

/// Default time limit of a call, if neither the caller nor the spec sets one.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Default memory limit of a call, in bytes, if the spec sets none.
pub const DEFAULT_MEMORY: u64 = 64 << 20;
/// Maximum length of a source, in bytes. The compiler's memory is not limited and it cannot be interrupted.
pub const MAX_SOURCE: usize = 1 << 20;
/// CPU time limit of a script's top level. Time while the thread waits for a processor does not count.
pub const TOP_LEVEL_LIMIT: Duration = Duration::from_millis(250);

/// One parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name in the arguments object.
    pub name: String,
    /// Whether the schema's type is `integer`. If so, numbers beyond 2^53 are rejected in any notation.
    pub integer: bool,
}

impl Parameter {
    /// Creates a parameter of any type except integer.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), integer: false }
    }
}

/// A loaded tool script. Immutable and shared: a changed file is loaded as a new `Arc<Script>` with its own Lua states.
#[derive(Clone)]
pub struct Script {
    /// The tool's name.
    pub tool: String,
    /// The file name in messages and tracebacks, as in `scripts/get_weather.lua`.
    pub file: String,
    /// The source.
    pub source: Arc<[u8]>,
    /// The parameters, in `:args` order.
    pub parameters: Vec<Parameter>,
    /// Whether the function's first parameter is a callback that takes the result.
    pub is_async: bool,
    /// The time limit that the spec sets.
    pub timeout: Option<Duration>,
    /// The memory limit that the spec sets, in bytes.
    pub memory: Option<u64>,
    /// The permissions that the spec grants.
    pub permissions: ScriptPermissions,
    /// The absolute path of the project's folder, the base of relative paths. `None`: the current directory.
    pub root: Option<PathBuf>,
    /// The files in `scripts/lib` that it requires directly or indirectly.
    pub modules: Arc<[Arc<Module>]>,
    compiled: Arc<Compiled>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("tool", &self.tool).field("file", &self.file).finish_non_exhaustive()
    }
}

impl Script {
    /// Creates a script without parameters, limits or permissions. Set the fields before sharing it.
    pub fn new(tool: impl Into<String>, file: impl Into<String>, source: impl AsRef<[u8]>) -> Self {
        Self {
            tool: tool.into(),
            file: file.into(),
            source: Arc::from(source.as_ref()),
            parameters: Vec::new(),
            is_async: false,
            timeout: None,
            memory: None,
            permissions: ScriptPermissions::default(),
            root: None,
            modules: Arc::new([]),
            compiled: Arc::default(),
        }
    }

    /// Creates the script of another tool from the same file. Source and bytecode are shared; other fields are not set.
    #[must_use]
    pub fn for_tool(&self, tool: impl Into<String>) -> Self {
        Self {
            source: Arc::clone(&self.source),
            compiled: Arc::clone(&self.compiled),
            ..Self::new(tool, self.file.clone(), [])
        }
    }

    /// Returns the bytecode. The first use compiles the source: usually in [`check_script`], else in the first call.
    fn compiled(&self) -> Result<Arc<[u8]>, LoadError> {
        self.compiled.bytecode(&self.file, &self.source)
    }
}
