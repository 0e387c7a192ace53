//! The types that loading, watching and permissions share: inputs, options and results of a load.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::{Target, ToolEntry, compile_tool, compile_tool_for, emit_definition};
use deftool_lang::spec::{
    Api, Ask, DialectSpec, Json, McpServer, ProjectSettings, Tool, ToolForms, ToolSelection, WorkerSpec,
};
use deftool_lang::text::{Location, MoveSpans, SourceFile, SourceId, Sources, Span};
use deftool_lang::tool::ToolError;
use deftool_script::{Module, Script};

use crate::paths::{display_name, is_script};

/// An error in the inputs of a command, found before the command has any effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// No parent folder contains `specs/`.
    #[error(
        "no project found: neither `{}` nor a parent folder contains `specs/`; {}create a project with `deftool init`",
        from.display(), suggest(from, below)
    )]
    NoProject {
        /// The folder where the search started.
        from: PathBuf,
        /// Projects in its subfolders.
        below: Vec<PathBuf>,
    },
    /// The project defines nothing.
    #[error(
        "nothing to check: `{}` contains no tools, workers or MCP servers; {}add a tool with `deftool new`",
        root.join("specs").display(), suggest(root, below)
    )]
    NothingDefined {
        /// The project folder.
        root: PathBuf,
        /// Projects in its subfolders.
        below: Vec<PathBuf>,
    },
    /// A search for projects ended before it examined all folders.
    #[error(
        "`{}` has more than {limit} subfolders, too many to search for projects; name the folders of the projects",
        folder.display()
    )]
    TooManyFolders {
        /// The folder where the search started.
        folder: PathBuf,
        /// Maximum number of folders.
        limit: usize,
    },
    /// A file or folder that the user named does not exist or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The user named a script that no tool of its project uses.
    #[error("no tool of the project uses {}; name a tool after the script, or set the `:script` of a tool", path.display())]
    UnusedScript {
        /// The script.
        path: PathBuf,
    },
}

/// The files that a command reads. They belong to one project or to none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Input {
    /// The project folder, which contains `specs/`, if the files belong to a project.
    pub root: Option<PathBuf>,
    /// The spec files, sorted.
    pub files: Vec<PathBuf>,
    /// Whether `files` are all spec files of the project.
    pub whole_project: bool,
    /// Scripts that the user named. Only they and the tools that use them are checked.
    pub scripts: Vec<PathBuf>,
    /// Spec files and folders that are not read: links out of the project, and the folder of a project that cannot be
    /// read. They are reported.
    pub outside: Vec<OutsideLink>,
    /// Lists of tools that are not files.
    pub offers: Vec<OfferedTools>,
}

/// A list of tools that is not a file: what an MCP server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTools {
    /// The command or URL of the server.
    pub server: String,
    /// The response to `tools/list` as JSON.
    pub text: String,
    /// Why the list is not complete, as a clause: `repeats a cursor …`.
    pub problem: Option<String>,
}

impl Input {
    /// Returns whether no files were named or found.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.scripts.is_empty() && self.outside.is_empty() && self.offers.is_empty()
    }
}

/// A file or folder of a project that is not read, such as a link with a target outside of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideLink {
    /// The link or folder.
    pub path: PathBuf,
    /// The target and a suggestion, or the error.
    pub why: String,
}

/// Options of a load.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Text to use in place of the content of files.
    pub overlay: Overlay,
    /// Whether to load the scripts of the tools, and to check the files with their whole project.
    pub with_scripts: bool,
    /// The tools to load. Unused scripts are reported only if all are loaded.
    pub selection: ToolSelection,
    /// The APIs to check the valid tools against.
    pub targets: Vec<Target>,
    /// The program that checks the types of scripts (`deftool-analyze`).
    pub analyzer: Option<PathBuf>,
    /// Whether JSON files are read as lists of tools of other programs, instead of as spec files.
    pub reads_lists: bool,
    /// Whether rules in `:deny` are raised to errors. The affected tools stay valid.
    pub raises_denied: bool,
    /// The folder that the user works in, if the project is the user's own. Specs and scripts that another user could have
    /// written then count as unreadable.
    pub user: Option<CurrentFolder>,
}

/// The current project or folder, in which tools of the user with `:base project` work, or why they cannot work here.
pub type CurrentFolder = Result<Arc<Path>, Arc<str>>;

/// Replacement texts of files, by the paths under which the files are loaded.
#[derive(Debug, Clone, Default)]
pub struct Overlay {
    texts: HashMap<PathBuf, Arc<str>>,
}

impl Overlay {
    /// Replaces the content of the file at `path` with `text`.
    pub fn set(&mut self, path: &Path, text: impl Into<Arc<str>>) {
        self.texts.insert(path.to_owned(), text.into());
    }

    /// Returns to the content of the file on disk.
    pub fn remove(&mut self, path: &Path) {
        self.texts.remove(path);
    }

    /// Returns the replacement text of the file at `path`.
    pub fn get(&self, path: &Path) -> Option<&Arc<str>> {
        if self.texts.is_empty() { None } else { self.texts.get(path) }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.texts.keys()
    }
}

/// Suggests the projects below a folder.
fn suggest(folder: &Path, below: &[PathBuf]) -> String {
    let names: Vec<String> = below.iter().map(|root| display_name(root, folder)).collect();
    match names.as_slice() {
        [] => String::new(),
        [name] => format!("use the project in `{name}` (-C {name}), or "),
        names => format!("use a project in {} (-C DIR), or ", join_quoted(names)),
    }
}

fn join_quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The result of loading a set of inputs.
///
/// Loads that differ only in the scripts of tools share the large tables.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// The project folder of the first input that belongs to a project.
    pub root: Option<PathBuf>,
    /// The project folder of each source that belongs to a project.
    pub(crate) roots: Arc<HashMap<SourceId, Arc<Path>>>,
    /// The source text of every file.
    pub sources: Arc<Sources>,
    /// The paths of the spec files. Files that are not valid UTF-8 are left out. A byte order mark is allowed.
    pub files: Arc<HashMap<SourceId, PathBuf>>,
    /// The spec files that this load reports on.
    pub checked: Vec<SourceId>,
    /// The lists of tools of other programs. Each stands for itself, like a request.
    pub(crate) lists: HashSet<SourceId>,
    /// Tools and exit tools in file order, then in source order. Tools with a duplicate name are included; all but the
    /// first are marked as not valid. Loads and generations share the tools that did not change.
    pub tools: Vec<Arc<LoadedTool>>,
    /// Workers, in the same order. Duplicates are marked as not valid.
    pub workers: Vec<WorkerSpec>,
    /// MCP servers.
    pub mcp_servers: Vec<McpServer>,
    /// Dialects.
    pub dialects: Vec<DialectSpec>,
    /// The `defask` forms.
    pub(crate) project_asks: Vec<ProjectAsk>,
    /// The declared heads of tool forms in Emacs Lisp.
    pub tool_forms: ToolForms,
    /// The preview features that each project enables.
    pub(crate) previews: HashSet<(Option<Arc<Path>>, String)>,
    /// The `defproject` forms.
    pub(crate) settings: Arc<[ProjectSettings]>,
    /// Findings in source order.
    pub findings: Vec<Diagnostic>,
}

impl Load {
    /// Whether all projects of the checked files enable a preview feature.
    pub fn enables(&self, preview: &str) -> bool {
        let mut roots = self.checked.iter().map(|source| self.roots.get(source).cloned());
        roots.all(|root| self.previews.contains(&(root, preview.to_owned())))
    }

    /// Returns the tools without errors, in order, each name once.
    pub fn valid_tools(&self) -> impl Iterator<Item = &LoadedTool> {
        self.shared_valid_tools().map(AsRef::as_ref)
    }

    pub(crate) fn shared_valid_tools(&self) -> impl Iterator<Item = &Arc<LoadedTool>> {
        self.tools.iter().filter(|loaded| loaded.tool.valid && loaded.shadowed_by.is_none())
    }

    /// Returns the asks of the valid tools and the valid `defask` forms, in source order.
    pub fn asks(&self) -> Vec<&Ask> {
        let of_tools = self.valid_tools().flat_map(|loaded| &loaded.tool.asks);
        let of_project = self.project_asks.iter().filter(|loaded| loaded.valid).map(|loaded| &loaded.ask);
        let mut asks: Vec<&Ask> = of_tools.chain(of_project).collect();
        asks.sort_by_key(|ask| (ask.source, ask.span));
        asks
    }

    /// Returns all asks that could be read, also impossible ones and those of tools with errors, in no order.
    pub fn written_asks(&self) -> impl Iterator<Item = &Ask> {
        let of_tools = self.tools.iter().flat_map(|loaded| &loaded.tool.asks);
        of_tools.chain(self.project_asks.iter().map(|loaded| &loaded.ask))
    }

    /// Returns whether there are no definitions, no scripts that the user named, and no errors that could hide one.
    pub fn is_empty(&self) -> bool {
        let defines = !self.tools.is_empty() || !self.workers.is_empty() || !self.mcp_servers.is_empty();
        let mut checked = self.checked.iter().filter_map(|source| self.sources.get(*source));
        let has_scripts = checked.any(|file| is_script(Path::new(&file.name)));
        !defines && !has_scripts && !self.has_errors()
    }

    /// Returns whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Returns the names of the files that contain an error. A tool missing from such a file may just be unparsable.
    pub(crate) fn broken_files(&self) -> HashSet<&str> {
        let errors = self.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let files = errors.filter_map(|error| self.sources.get(error.primary.source));
        files.map(|file| file.name.as_str()).collect()
    }

    /// Adds a source, which belongs to the project in `root`.
    pub(crate) fn add_source(&mut self, file: SourceFile, root: Option<&Arc<Path>>) -> SourceId {
        let source = Arc::make_mut(&mut self.sources).add(file);
        self.set_root(source, root);
        source
    }

    /// Sets the project of a source, if there is one.
    pub(crate) fn set_root(&mut self, source: SourceId, root: Option<&Arc<Path>>) {
        if let Some(root) = root {
            Arc::make_mut(&mut self.roots).insert(source, Arc::clone(root));
        }
    }

    /// Returns whether one load was made from the other, and they differ only in the scripts of tools.
    pub(crate) fn shares_specs(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.sources, &other.sources)
    }

    /// Returns whether the sources and the findings are the same.
    pub(crate) fn is_equivalent(&self, other: &Self) -> bool {
        let is_same_source = |((_, one), (_, other)): ((_, &SourceFile), (_, &SourceFile))| {
            one.name == other.name && (Arc::ptr_eq(&one.text, &other.text) || one.text == other.text)
        };
        let is_same_finding = |(one, other): (&Diagnostic, &Diagnostic)| {
            one.rule == other.rule && one.primary == other.primary && one.message == other.message
        };
        self.sources.iter().count() == other.sources.iter().count()
            && self.findings.len() == other.findings.len()
            && self.sources.iter().zip(other.sources.iter()).all(is_same_source)
            && self.findings.iter().zip(&other.findings).all(is_same_finding)
    }

    /// Returns the project folder of a source.
    pub fn root_of(&self, source: SourceId) -> Option<&Path> {
        self.roots.get(&source).map(AsRef::as_ref)
    }

    /// Returns the scope of the names in a source.
    pub(crate) fn scope_of(&self, source: SourceId) -> Scope {
        if self.lists.contains(&source) {
            return Scope::List(source);
        }
        self.roots.get(&source).map_or(Scope::Loose, Scope::of_project)
    }

    /// Returns the location of a line, starting at 1, without surrounding whitespace.
    pub(crate) fn line_location(&self, source: SourceId, line: usize) -> Location {
        let text = self.sources.get(source).map_or("", |file| &file.text);
        let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
        let of_line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or("");
        let indent = of_line.len() - of_line.trim_start().len();
        let span = Span::new(start + indent, start + of_line.trim_end().len().max(indent));
        Location { source, span }
    }

    pub(crate) fn sort_findings(&mut self) {
        self.findings
            .sort_by_key(|finding| (finding.primary.source, finding.primary.span, finding.rule.code));
    }
}

/// A `defask` form.
#[derive(Debug, Clone)]
pub(crate) struct ProjectAsk {
    pub(crate) ask: Ask,
    /// Whether a valid reply can meet it.
    pub(crate) valid: bool,
}

/// The sources in which the names of tools must be different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The spec files outside of projects.
    Loose,
    /// A project, by a number: all of its sources share one `Arc`.
    Project(usize),
    /// A list of tools of another program.
    List(SourceId),
}

impl Scope {
    pub(crate) fn of_project(root: &Arc<Path>) -> Self {
        Self::Project(Arc::as_ptr(root).cast::<u8>().addr())
    }
}

/// The compiled schema of a tool, and the identity of its definition: two tools share it only if they were lowered from
/// the same form, at any place in its file.
pub(crate) type Definition = Arc<OnceLock<Arc<ToolEntry>>>;

/// A tool with its compiled schema.
#[derive(Debug, Clone)]
pub struct LoadedTool {
    /// The tool's definition.
    pub tool: Arc<Tool>,
    /// Name of the spec file. Unlike a source id, it is stable across loads.
    pub file: Arc<str>,
    /// The compiled schema. Compiled on first use, because a check does not need it.
    entry: Definition,
    /// The state of the tool's script.
    pub script: ScriptState,
    /// The name of an earlier tool with the same name, if Emacs can hold both. A request can only contain the earlier.
    pub shadowed_by: Option<Location>,
    /// The project that the tool comes from.
    pub origin: ToolOrigin,
}

/// The project that a tool comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolOrigin {
    /// The project of the command.
    #[default]
    Project,
    /// The project of the command, in place of a tool of the user with the same name. This needs trust.
    Replacement,
    /// The user's own project. Its permissions need no trust, except those to change the current project.
    User,
}

impl LoadedTool {
    /// Creates a tool of the spec file `file`, without a script.
    pub(crate) fn new(tool: Arc<Tool>, file: Arc<str>) -> Self {
        let origin = ToolOrigin::default();
        Self { tool, file, entry: Arc::default(), script: ScriptState::None, shadowed_by: None, origin }
    }

    /// Returns the same tool, `by` bytes later in its file.
    pub(crate) fn moved(&self, by: i32) -> Self {
        let mut tool = Tool::clone(&self.tool);
        tool.move_spans(by);
        Self { tool: Arc::new(tool), ..self.clone() }
    }

    /// Returns the identity of the definition.
    pub(crate) fn definition(&self) -> &Definition {
        &self.entry
    }

    /// Returns the same tool with an origin.
    pub(crate) fn with_origin(&self, origin: ToolOrigin) -> Arc<Self> {
        Arc::new(Self { origin, ..self.clone() })
    }

    /// Returns the compiled schema.
    pub fn entry(&self) -> &Arc<ToolEntry> {
        self.entry.get_or_init(|| Arc::new(compile_tool(&self.tool)))
    }

    /// Returns the schema compiled for `api`.
    pub fn entry_for(&self, api: Api) -> Arc<ToolEntry> {
        compile_tool_for(api, &self.tool).map_or_else(|| Arc::clone(self.entry()), Arc::new)
    }

    /// Reuses parts of `before` that are unchanged: compiling a schema is expensive, and cached Lua states belong to
    /// one particular [`Script`].
    pub(crate) fn reuse_from(self: &mut Arc<Self>, before: &Self) {
        if let (ScriptState::Ready(script), ScriptState::Ready(known)) = (&self.script, &before.script)
            && !Arc::ptr_eq(script, known)
            && is_same_script(known, script)
        {
            Arc::make_mut(self).script = before.script.clone();
        }
        if self.entry.get().is_none()
            && let Some(entry) = before.entry.get()
            && self.has_same_definition(before)
            && self.has_same_rules(before)
        {
            // Store it so that later loads of the same spec can reuse it.
            let _ = self.entry.set(Arc::clone(entry));
        }
    }

    /// Returns whether the parts of the compiled tool that are not sent to the model are the same.
    fn has_same_rules(&self, other: &Self) -> bool {
        let rules = |Tool { timeout, confirm, returns, effect, max_result, .. }: &Tool| {
            let conditions: Vec<_> = confirm.conditions().iter().map(Json::to_value).collect();
            let returns = returns.as_ref().map(Json::to_value);
            (*timeout, confirm.is_set(), conditions, returns, *effect, *max_result)
        };
        Arc::ptr_eq(&self.tool, &other.tool) || rules(&self.tool) == rules(&other.tool)
    }

    /// Returns whether the definition sent to the model is the same.
    pub(crate) fn has_same_definition(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.tool, &other.tool) {
            return true;
        }
        if let (Some(one), Some(other)) = (self.entry.get(), other.entry.get())
            && Arc::ptr_eq(one, other)
        {
            return true;
        }
        // Compare as text, because the order of arguments matters.
        let definition = |loaded: &Self| match loaded.entry.get() {
            Some(entry) => entry.definition.to_string(),
            None => emit_definition(&loaded.tool).to_string(),
        };
        self.tool.kind == other.tool.kind && definition(self) == definition(other)
    }
}

/// The state of a tool's script, or of its command, which is always ready.
#[derive(Debug, Clone)]
pub enum ScriptState {
    /// No script: the tool is an exit tool, or scripts were not loaded.
    None,
    /// The script compiles and matches its spec.
    Ready(Arc<Script>),
    /// The script is missing, does not compile or does not match its spec. Holds the error that a call returns.
    Broken(ToolError),
}

/// Returns whether both scripts behave the same.
pub(crate) fn is_same_script(old: &Script, new: &Script) -> bool {
    let is_same_module = |(old, new): (&Arc<Module>, &Arc<Module>)| {
        Arc::ptr_eq(old, new) || (old.file == new.file && old.source == new.source)
    };
    old.source == new.source
        && old.command.is_some() == new.command.is_some()
        && old.file == new.file
        && old.parameters == new.parameters
        && old.is_async == new.is_async
        && old.timeout == new.timeout
        && old.memory == new.memory
        && old.permissions == new.permissions
        && old.root == new.root
        && old.linked == new.linked
        && old.modules.len() == new.modules.len()
        && old.modules.iter().zip(&*new.modules).all(is_same_module)
}
