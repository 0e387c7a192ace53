//! Scripts and the modules that they require: loaded, compiled and analysed, but not run.

mod bytecode;
mod compile;
pub(crate) mod contract;
pub(crate) mod module;
mod place;
mod test_uses;
mod tokens;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::spec::ToolCommand;

pub use bytecode::{GlobalAccess, GlobalUse};
pub(crate) use compile::check_elsewhere;
pub use compile::{can_analyse_scripts, is_same_code};
pub use contract::{Contract, LoadError, Returned};
pub use module::{MAX_MODULES, Module, Require, find_requires, module_path};
pub use place::{ScriptPlace, place_at};
pub use test_uses::{ArgumentKey, LoadedName, TestUses, find_mentions, is_variable_name, test_uses};
pub use tokens::{Word, comments, count_word, words};

use self::compile::Compiled;
use crate::permission::ScriptPermissions;

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

/// A loaded tool script, or the command of a tool. Immutable and shared: a changed file is loaded as a new
/// `Arc<Script>` with its own Lua states.
#[derive(Clone)]
pub struct Script {
    /// The tool's name.
    pub tool: String,
    /// The file name in messages and tracebacks, as in `scripts/get_weather.lua`.
    pub file: String,
    /// The source.
    pub source: Arc<[u8]>,
    /// The program that a call runs. The source is then the text of the command, and `file` the program.
    pub command: Option<Arc<ToolCommand>>,
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
    /// The folders outside of the project from which its files come, through links.
    pub linked: Vec<PathBuf>,
    pub(crate) compiled: Arc<Compiled>,
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
            command: None,
            parameters: Vec::new(),
            is_async: false,
            timeout: None,
            memory: None,
            permissions: ScriptPermissions::default(),
            root: None,
            modules: Arc::new([]),
            linked: Vec::new(),
            compiled: Arc::default(),
        }
    }

    /// Creates a tool that runs a program. Set the other fields before sharing it.
    pub fn of_command(tool: impl Into<String>, command: &ToolCommand) -> Self {
        let command_text = command.to_string();
        Self { command: Some(Arc::new(command.clone())), ..Self::new(tool, command.program(), command_text) }
    }

    /// Creates the script of another tool from the same file. Source and bytecode are shared; other fields are not set.
    #[must_use]
    pub fn for_tool(&self, tool: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            file: self.file.clone(),
            source: Arc::clone(&self.source),
            command: self.command.clone(),
            parameters: Vec::new(),
            is_async: false,
            timeout: None,
            memory: None,
            permissions: ScriptPermissions::default(),
            root: None,
            modules: Arc::new([]),
            linked: Vec::new(),
            compiled: Arc::clone(&self.compiled),
        }
    }

    /// Compiles and analyses the script once, without running it.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn contract(&self) -> Result<&Contract, &LoadError> {
        self.compiled.contract(&self.file, &self.source)
    }

    /// Returns the bytecode. The first use compiles the source: usually in [`check_script`], else in the first call.
    pub(crate) fn compiled(&self) -> Result<Arc<[u8]>, LoadError> {
        self.compiled.bytecode(&self.file, &self.source)
    }
}

/// Compiles and analyses `script` without running it.
///
/// # Errors
/// When it does not compile.
pub fn check_script(script: &Script) -> Result<Contract, LoadError> {
    script.contract().cloned().map_err(LoadError::clone)
}
