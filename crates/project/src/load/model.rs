//! The parts of a load that the cache keeps for the next load.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::{Ask, DialectSpec, McpServer, Tool, ToolForms, ToolKind, WorkerSpec, Wrapper};
use deftool_lang::text::{SourceFile, SourceId, Sources, Span, Spanned};
use deftool_script::{LoadError, Module, Require, Script, TestUses, test_uses};

use super::levels::Levels;
use crate::model::{Definition, LoadedTool};

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
    /// The declared heads with which the file was read.
    pub(super) tool_forms: ToolForms,
    pub(super) tools: Vec<Arc<LoadedTool>>,
    pub(super) parts: FileParts,
    /// The forms that the next version of the file may still have, in order.
    pub(super) known_forms: Vec<KnownForm>,
}

/// The definitions other than tools, and the findings of a spec file.
#[derive(Clone, Default)]
pub(super) struct FileParts {
    pub(super) workers: Vec<WorkerSpec>,
    pub(super) mcp_servers: Vec<McpServer>,
    pub(super) dialects: Vec<DialectSpec>,
    pub(super) asks: Vec<Ask>,
    /// Functions and macros that make tools, and are not declared.
    pub(super) wrappers: Vec<Wrapper>,
    /// The tools that presets of gptel name.
    pub(super) preset_tools: Vec<Spanned<String>>,
    /// The tools that were not selected.
    pub(super) skipped: Vec<(ToolKind, String)>,
    /// The tools whose `:returns` limits the length of strings.
    pub(super) long_results: Vec<Arc<Tool>>,
    pub(super) findings: Vec<Diagnostic>,
    pub(super) levels: Levels,
}

/// A tool form with what follows from its text alone.
#[derive(Clone)]
pub(super) struct KnownForm {
    pub(super) span: Span,
    pub(super) tool: Arc<LoadedTool>,
    pub(super) findings: Vec<Diagnostic>,
}

/// The place of a tool: its spec file, and its position among the tools of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slot {
    pub(super) source: SourceId,
    pub(super) index: usize,
}

/// Returns the tools that use a path, by its key.
pub(super) fn users_of(users: &BTreeSet<(u64, Slot)>, key: u64) -> impl Iterator<Item = Slot> {
    let first = Slot { source: Sources::new().id_ahead(0), index: 0 };
    users.range((key, first)..).take_while(move |(of, _)| *of == key).map(|(_, slot)| *slot)
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
    /// The identity of the definition, which is the key of the entry.
    pub(super) definition: Definition,
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

/// Returns the key of a definition in the cache of scripts. An entry holds its definition, so that the address is not used
/// for another one.
pub(super) fn address(definition: &Definition) -> usize {
    Arc::as_ptr(definition).addr()
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
