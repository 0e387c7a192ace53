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
//! let arguments = json!({"text": "abc"}).try_into().unwrap();
//! let result = vm.call(&arguments, CallContext::default())?;
//! assert_eq!(result.value, json!(3));
//! # Ok::<(), deftool_lang::tool::ToolError>(())
//! ```
//!
//! Input: a [`Script`] (source, parameters, limits and granted permissions, resolved by the layer that reads the
//! project) and a validated [`ToolCall`](deftool_lang::tool::ToolCall). Output: the JSON that the script returned, or a
//! [`ToolError`](deftool_lang::tool::ToolError) with the reason, location and traceback. [`ScriptRunner`] runs calls on
//! its own threads or, with [`Isolation::Processes`], in child processes, which run [`serve_isolated`]. [`LocalVm`]
//! runs them on the caller's thread. [`check_script`] compiles and analyses a script without running it. [`run_test`]
//! runs one test of a script test file. [`definitions`] generates Luau types for scripts from the specs of tools, and a
//! [`ScriptAnalyzer`] analyses scripts with them.
//!
//! Invariants:
//! - A call has exclusive use of a Lua state from start to end, even while it waits, and a fresh environment over
//!   read-only globals. So a script cannot affect the next call or another tool.
//! - Every call ends, whatever the script does: at the latest at its deadline, at its memory limit or when its future
//!   is dropped. `pcall` catches none of these. A state that was stopped is not reused.
//! - The engine's threads never run script code and never wait for it.
//! - A script can access only the host tables below and, through them, what its spec allows.
//!
//! In addition to Luau's own libraries, scripts can use the tables of `host`, documented in [`host_tables`], and
//! `require` for their [`Module`]s. `loadstring`, `getfenv`, `setfenv`, `newproxy` and `debug.info` are removed. The
//! chunk's top level runs once per call, without IO and with at most 250 ms of CPU time. It returns the tool's
//! function, which receives the arguments in `:args` order.
//!
//! Out of scope: loading of scripts, modules and specs (`deftool_project` reads them; this crate opens only the
//! files that scripts access), validation of arguments, trust decisions, a second engine thread pool, native code
//! generation. Luau guarantees memory safety, but not that every library call ends soon. The calls that were found to
//! run long without a safepoint (plain `string.find`, `string.split`, long classes in patterns, `table.move`,
//! `os.date`, and C functions that take callbacks) are replaced or limited in `sandbox.lua`. The run time of the
//! compiler is limited in `script::compile`.
//!
//! Source: Luau 0.740 through mlua 0.12. The limits are based on the measurements that are noted next to them.

mod analysis;
mod control;
mod convert;
mod error;
mod events;
mod ffi;
mod host;
mod io;
mod isolate;
mod libraries;
mod limits;
mod path;
mod permission;
mod runner;
mod scaffold;
mod script;
mod testing;
mod types;
mod vm;

pub use analysis::{
    Analysed, AnalyzerProcess, Definitions, Description, Inlay, ModuleText, NameToken, NameUses, OutlineItem,
    OutlineKind, Place, ScriptAnalyzer, ScriptUnit, SignatureLabel, Signatures, Suggestion, SuggestionKind,
    Suggestions, TYPE_LIMIT, TokenMeaning, TypeProblem, check_types, serve_analyzer,
};
pub use control::MAX_GRACE;
pub use events::{LogLevel, ScriptEvent, ScriptSink};
pub use ffi::{prefetch, return_large_blocks};
pub use host::{FunctionDoc, TableDoc, ValueDoc, client_builder, host_tables};
#[cfg(unix)]
pub use host::{protect_folders, start_program};
pub use isolate::{Isolation, check_in_processes, serve_isolated};
pub use libraries::{is_known_global, is_known_test_global, known_globals, known_test_globals};
pub use limits::{DEFAULT_MEMORY, DEFAULT_TIMEOUT, MAX_SOURCE, TOP_LEVEL_LIMIT};
pub use path::resolve_path;
pub use permission::{PathGrant, ScriptPermissions};
pub use permission::{hidden_names, is_hidden};
pub use runner::{LocalVm, RunnerOptions, ScriptRunner};
pub use scaffold::scaffold;
pub use script::{
    ArgumentKey, Contract, GlobalAccess, GlobalUse, LoadError, LoadedName, MAX_MODULES, Module, Parameter,
    Require, Returned, Script, ScriptPlace, TestUses, Word, can_analyse_scripts, check_script, comments,
    count_word, find_mentions, find_requires, is_same_code, is_variable_name, module_path, place_at,
    test_uses, words,
};
pub use testing::{
    TestFailure, TestFile, TestName, TestOutcome, TestSubject, TestTools, list_tests, remove_test_folders,
    run_test,
};
pub use types::{ToolTypes, definitions, test_definitions, tool_types};
