//! The parts of a load that the cache keeps for the next load.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::{DialectSpec, McpServer, Tool, ToolForms, ToolKind, WorkerSpec, Wrapper};
use deftool_lang::text::{SourceFile, SourceId, Spanned};
use deftool_script::{LoadError, Module, Require, Script, TestUses, test_uses};

use super::levels::Levels;
use crate::model::{Load, LoadedTool};

/// The content of one spec file.
#[derive(Clone)]
pub(super) struct SpecFile {
    /// The file's source id.
    pub(super) id: SourceId,
    pub(super) source: SourceFile,
    /// Whether `source` is the exact content: the file was readable, and no bytes were replaced.
    pub(super) is_lossless: bool,
    /// Whether it is a list of tools of another program.
    pub(super) is_list: bool,
    pub(super) tools: Vec<Arc<LoadedTool>>,
    pub(super) workers: Vec<WorkerSpec>,
    pub(super) mcp_servers: Vec<McpServer>,
    pub(super) dialects: Vec<DialectSpec>,
    /// Functions and macros that make tools, and are not declared.
    pub(super) wrappers: Vec<Wrapper>,
    /// The tools that presets of gptel name.
    pub(super) preset_tools: Vec<Spanned<String>>,
    /// The declared heads with which the file was read.
    pub(super) forms: ToolForms,
    /// The tools that were not selected.
    pub(super) skipped: Vec<(ToolKind, String)>,
    pub(super) findings: Vec<Diagnostic>,
    pub(super) levels: Levels,
}

/// The file of a script or module, not yet bound to a tool.
pub(super) struct ScriptFile {
    pub(super) script: Script,
    pub(super) requires: Vec<Require>,
    module: OnceLock<Arc<Module>>,
    test_uses: OnceLock<TestUses>,
}

impl ScriptFile {
    pub(super) fn new(script: Script, requires: Vec<Require>) -> Self {
        Self { script, requires, module: OnceLock::new(), test_uses: OnceLock::new() }
    }

    /// Returns the source text. Invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.script.source).into_owned()
    }

    /// Returns the tools that the file uses as a test script. Analysed once.
    pub(super) fn test_uses(&self) -> &TestUses {
        self.test_uses.get_or_init(|| test_uses(&self.text()))
    }

    /// Returns the file as a module. Compiled once.
    pub(super) fn module(&self) -> &Arc<Module> {
        self.module.get_or_init(|| Arc::new(Module::new(self.script.file.clone(), &self.script.source)))
    }
}

/// The script lookup of a tool, with everything that its result depends on.
pub(super) struct CachedTool {
    pub(super) tool: Arc<Tool>,
    pub(super) root: Arc<Path>,
    /// The paths at which the script may be.
    pub(super) candidates: Vec<PathBuf>,
    pub(super) lookup: ScriptLookup,
    /// The files of the script and its modules.
    pub(super) unit: Unit,
    /// The paths in `candidates` and `unit` that are outside of the scanned folders.
    pub(super) external: Vec<PathBuf>,
    /// Keys of all paths that the result depends on.
    pub(super) keys: Vec<u64>,
    /// Whether the tool has no findings, not even suppressed ones.
    pub(super) is_clean: bool,
}

/// A load that can be the start of the next one.
pub(super) struct LastLoad {
    pub(super) load: Load,
    /// The indices of the tools that depend on a path, by the key of the path.
    pub(super) users: HashMap<u64, Vec<usize>>,
    /// Whether it was made from the load before it.
    pub(super) is_reused: bool,
}

/// The result of looking up the script of a tool.
pub(super) enum ScriptLookup {
    /// No file.
    Missing,
    /// A file that cannot be read, with the reason.
    Unreadable(ScriptLocation, String),
    /// A tool that runs a program.
    Command(Arc<Script>),
    /// A script. It may not compile.
    Read(ScriptLocation, Arc<Script>),
}

/// The location of a tool's script.
#[derive(PartialEq, Eq)]
pub(super) struct ScriptLocation {
    pub(super) path: PathBuf,
    /// A second script of the tool, which is ignored.
    pub(super) twin: Option<PathBuf>,
}

/// The files of a script: the script first, then its modules.
#[derive(Default)]
pub(super) struct Unit {
    pub(super) parts: Vec<Part>,
    /// Missing files that would take precedence over the existing ones.
    pub(super) missing: Vec<PathBuf>,
    /// Problems with `require` calls and modules.
    pub(super) problems: Vec<ModuleProblem>,
}

/// A script or module of a unit.
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) file: Arc<ScriptFile>,
}

/// A problem with a `require` call or a module.
pub(super) struct ModuleProblem {
    /// The file with the problem.
    pub(super) file: Arc<ScriptFile>,
    /// The line, starting at 1.
    pub(super) line: usize,
    pub(super) fault: ModuleFault,
}

/// The kind of a module problem.
pub(super) enum ModuleFault {
    /// The module does not exist or is outside of `scripts/lib`. Holds the path as written and a suggestion.
    Missing { path: String, advice: String },
    /// The module exceeds the maximum number of modules. Holds the path as written.
    TooMany(String),
    /// The module does not compile.
    Broken(LoadError),
    /// The module returns nothing.
    NoValue,
    /// A circular dependency. Holds the file names; each file requires the next, and the last one requires the first.
    Cycle(Vec<String>),
    /// The path is not a literal.
    Computed,
}
