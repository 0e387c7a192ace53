//! Loads spec files: definitions, compiled schemas and findings.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::rules::{INVALID_PATTERN, repeats};
use deftool_lang::schema::{
    Target, ToolEntry, check_count, check_target, check_tool, compile_tool, compile_tool_for, emit_definition,
};
use deftool_lang::spec::rules::{contains_lone_backslash, lone_backslashes, merge_type_as_string};
use deftool_lang::spec::{Api, FileKind, McpServer, Tool, ToolKind, WorkerSpec, lower};
use deftool_lang::syntax::parse;
use deftool_lang::syntax::rules::{STRAY_CLOSER, UNCLOSED};
use deftool_lang::text::{Location, SourceFile, SourceId, Sources, Span, one_line};
use deftool_lang::tool::ToolError;
use deftool_script::Script;

use super::bios::report_bios;
use super::cache::{Cache, CachedFile};
use super::discover::{identity, is_test_script};
use super::levels::{self, Levels};
use super::read::{BYTE_ORDER_MARK, MAX_BYTES, SourceText, read_source};
use super::scripts::{find_script, is_same_script, load_scripts};
use super::snapshot::Snapshot;
use super::{Input, OutsideLink, Overlay, ProjectError, display_name, names, parallel};
use crate::rules;

/// The result of loading a set of inputs.
#[derive(Debug, Default)]
pub struct Load {
    /// The project folder of the first input that belongs to a project.
    pub root: Option<PathBuf>,
    /// The project folder of each source that belongs to a project.
    pub(super) roots: HashMap<SourceId, Arc<Path>>,
    /// The source text of every file.
    pub sources: Sources,
    /// The paths of the spec files. Files that are not valid UTF-8 are left out. A byte order mark is allowed.
    pub files: HashMap<SourceId, PathBuf>,
    /// The spec files that this load reports on.
    pub checked: Vec<SourceId>,
    /// Tools and exit tools in file order, then in source order. Tools with a duplicate name are included; all but the
    /// first are marked as not valid.
    pub tools: Vec<LoadedTool>,
    /// Workers, in the same order. Duplicates are marked as not valid.
    pub workers: Vec<WorkerSpec>,
    /// MCP servers.
    pub mcp_servers: Vec<McpServer>,
    /// Findings in source order.
    pub findings: Vec<Diagnostic>,
}

/// A tool with its compiled schema.
#[derive(Debug, Clone)]
pub struct LoadedTool {
    /// The tool's definition.
    pub tool: Arc<Tool>,
    /// Name of the spec file. Unlike a source id, it is stable across loads.
    pub file: Arc<str>,
    /// The compiled schema. Compiled on first use, because a check does not need it.
    entry: Arc<OnceLock<Arc<ToolEntry>>>,
    /// The state of the tool's script.
    pub script: ScriptState,
}

impl LoadedTool {
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
    pub(super) fn reuse_from(&mut self, before: &Self) {
        if let (ScriptState::Ready(script), ScriptState::Ready(known)) = (&mut self.script, &before.script)
            && !Arc::ptr_eq(script, known)
            && is_same_script(known, script)
        {
            *script = Arc::clone(known);
        }
        if self.entry.get().is_none()
            && let Some(entry) = before.entry.get()
            && self.has_same_definition(before)
            && self.tool.timeout == before.tool.timeout
        {
            // Store it so that later loads of the same spec can reuse it.
            let _ = self.entry.set(Arc::clone(entry));
        }
    }

    /// Returns whether the definition sent to the model is the same.
    pub(super) fn has_same_definition(&self, other: &Self) -> bool {
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

/// The state of a tool's script.
#[derive(Debug, Clone)]
pub enum ScriptState {
    /// No script: the tool is an exit tool, or scripts were not loaded.
    None,
    /// The script compiles and matches its spec.
    Ready(Arc<Script>),
    /// The script is missing, does not compile or does not match its spec. Holds the error that a call returns.
    Broken(ToolError),
}

/// Options of a load.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Text to use in place of the content of files.
    pub overlay: Overlay,
    /// Whether to load the scripts of the tools.
    pub with_scripts: bool,
    /// The APIs to check the valid tools against.
    pub targets: Vec<Target>,
    /// The program that checks the types of scripts (`deftool-types`).
    pub type_checker: Option<PathBuf>,
    /// Whether rules in `:deny` are raised to errors. The affected tools stay valid.
    pub raises_denied: bool,
}

/// Reads all spec files of `inputs` and the scripts of their tools.
///
/// # Errors
/// If a spec file cannot be read.
pub fn load(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    load_with(inputs, from, &LoadOptions { with_scripts: true, ..LoadOptions::default() })
}

/// Reads all spec files of `inputs` without their scripts.
///
/// # Errors
/// If a file cannot be read.
pub fn load_specs(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    load_with(inputs, from, &LoadOptions::default())
}

/// Reads all spec files of `inputs`. File names in messages are relative to `from`.
///
/// # Errors
/// If a spec file cannot be read.
pub fn load_with(inputs: &[Input], from: &Path, options: &LoadOptions) -> Result<Load, ProjectError> {
    load_through(&mut Cache::default(), inputs, from, options)
}

/// Reads files that changed since the load in `cache`, and reuses the rest.
pub(super) fn load_through(
    cache: &mut Cache,
    inputs: &[Input],
    from: &Path,
    options: &LoadOptions,
) -> Result<Load, ProjectError> {
    let (mut load, levels) = read_specs(cache, inputs, from, &options.overlay)?;
    if options.with_scripts {
        load_scripts(cache, &mut load, &whole_roots(inputs), from);
        report_bios(&mut load);
        if let Some(program) = &options.type_checker {
            super::type_findings::report_types(&mut load, program);
        }
    }
    for &target in &options.targets {
        let mut losses: Vec<_> =
            load.valid_tools().flat_map(|loaded| check_target(target, &loaded.tool)).collect();
        // In a project, the limit applies to each worker.
        let is_loose = |loaded: &&LoadedTool| !load.roots.contains_key(&loaded.tool.source);
        losses.extend(check_count(target, load.valid_tools().filter(is_loose).map(|loaded| &*loaded.tool)));
        load.findings.append(&mut losses);
    }
    levels::apply(&mut load, levels, options);
    if !options.targets.is_empty() {
        drop_repeated(&mut load);
    }
    merge_type_as_string(&mut load.findings);
    Ok(load)
}

/// Removes target findings that repeat a general finding, unless the target finding is more severe.
fn drop_repeated(load: &mut Load) {
    let mut repeated = Vec::new();
    // Findings are sorted by location.
    for here in load.findings.chunk_by(|one, next| one.primary == next.primary) {
        repeated.extend(here.iter().map(|finding| {
            let is_said = |base: &Diagnostic| {
                repeats(finding.rule, base.rule)
                    && (finding.severity != Severity::Error || base.severity == Severity::Error)
            };
            here.iter().any(is_said)
        }));
    }
    let mut repeated = repeated.into_iter();
    load.findings.retain(|_| !repeated.next().unwrap_or_default());
}

/// Returns the roots of the projects that are read completely.
fn whole_roots(inputs: &[Input]) -> HashSet<&Path> {
    inputs.iter().filter(|input| input.whole_project).filter_map(|input| input.root.as_deref()).collect()
}

/// Why a file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The file is one of the inputs.
    Checked,
    /// A tool in the file may use one of the scripts that the user named.
    UsesScript,
    /// The file may contain a `deflint` form, which applies to the whole project.
    Lints,
}

/// Returns the other files of the project that affect the findings. Unreadable files are skipped.
fn other_files(input: &Input, overlay: &Overlay) -> Result<Vec<(PathBuf, Reason)>, ProjectError> {
    if !input.scripts.is_empty() {
        return Ok(input
            .other_specs(&mut Snapshot::default())?
            .into_iter()
            .map(|path| (path, Reason::UsesScript))
            .collect());
    }
    let files = input.other_specs(&mut Snapshot::default()).unwrap_or_default();
    let lints = parallel::map(&files, |_, path| match overlay.get(path) {
        Some(text) => text.contains("deflint"),
        None => read_source(path).is_ok_and(|text| text.contains("deflint")),
    });
    let lints = files.into_iter().zip(lints).filter(|(_, has_lint)| *has_lint);
    Ok(lints.map(|(path, _)| (path, Reason::Lints)).collect())
}

fn read_specs(
    cache: &Cache,
    inputs: &[Input],
    from: &Path,
    overlay: &Overlay,
) -> Result<(Load, Levels), ProjectError> {
    let mut load = Load { root: inputs.iter().find_map(|input| input.root.clone()), ..Load::default() };
    let mut levels = Levels::default();
    let whole = whole_roots(inputs);
    let mut files: Vec<(Option<Arc<Path>>, PathBuf, Reason)> = Vec::new();
    let mut roots: Vec<Arc<Path>> = Vec::new();
    for input in inputs {
        let root = input.root.as_deref().map(|root| {
            let known = roots.iter().find(|known| ***known == *root).map(Arc::clone);
            known.unwrap_or_else(|| {
                let root: Arc<Path> = Arc::from(root);
                roots.push(Arc::clone(&root));
                root
            })
        });
        files.extend(input.files.iter().map(|path| (root.clone(), path.clone(), Reason::Checked)));
        if !input.root.as_deref().is_some_and(|root| whole.contains(root)) {
            let others = other_files(input, overlay)?.into_iter();
            files.extend(others.map(|(path, reason)| (root.clone(), path, reason)));
        }
    }
    let loaded = parallel::map(&files, |index, (_, path, _)| {
        read_spec(cache, path, Sources::new().id_ahead(index), from, overlay)
    });
    for ((root, path, reason), file) in files.into_iter().zip(loaded) {
        // Without a cache this is the only reference.
        let file = Arc::unwrap_or_clone(file?);
        let source = load.sources.add(file.source);
        load.roots.extend(root.map(|root| (source, root)));
        levels.lints.extend(file.levels.lints);
        if reason != Reason::Checked {
            levels.context_files.insert(source, Vec::new());
        }
        if reason == Reason::Lints {
            continue;
        }
        levels.allows.extend(file.levels.allows);
        load.checked.push(source);
        load.files.extend(file.is_lossless.then_some((source, path)));
        load.tools.extend(file.tools);
        load.workers.extend(file.workers);
        load.mcp_servers.extend(file.mcp_servers);
        load.findings.extend(file.findings);
    }
    for input in inputs {
        for OutsideLink { path, why } in &input.outside {
            let source =
                load.sources.add(SourceText::empty(path).into_source(load.sources.id_ahead(0), from).0);
            let root = input.root.as_deref().and_then(|root| roots.iter().find(|known| ***known == *root));
            load.roots.extend(root.map(|root| (source, Arc::clone(root))));
            load.checked.push(source);
            load.findings.push(unreadable(source, &display_name(path, from), why));
        }
    }
    names::report_duplicates(&mut load);
    names::report_unknown_worker_tools(&mut load, &whole);
    let mut findings = rules::near_name::check(&load);
    findings.extend(rules::unknown_target::check(&load));
    findings.extend(rules::too_many_tools::check(&load, &whole));
    load.findings.append(&mut findings);
    narrow(&mut load, inputs, &mut levels)?;
    load.sort_findings();
    Ok((load, levels))
}

impl Load {
    /// Returns the tools without errors, in order.
    pub fn valid_tools(&self) -> impl Iterator<Item = &LoadedTool> {
        self.tools.iter().filter(|loaded| loaded.tool.valid)
    }

    /// Returns whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Returns the names of the files that contain an error. A tool missing from such a file may just be unparsable.
    pub(super) fn broken_files(&self) -> HashSet<&str> {
        let errors = self.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let files = errors.filter_map(|error| self.sources.get(error.primary.source));
        files.map(|file| file.name.as_str()).collect()
    }

    /// Returns whether the sources and the findings are the same.
    pub(super) fn is_equivalent(&self, other: &Self) -> bool {
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

    /// Returns a number that identifies the project of a source. All sources of a project share one `Arc`.
    pub(super) fn project_of(&self, source: SourceId) -> Option<usize> {
        self.roots.get(&source).map(|root| Arc::as_ptr(root).cast::<u8>().addr())
    }

    pub(super) fn sort_findings(&mut self) {
        self.findings
            .sort_by_key(|finding| (finding.primary.source, finding.primary.span, finding.rule.code));
    }
}

/// The content of one spec file.
#[derive(Clone)]
pub(super) struct SpecFile {
    /// The file's source id.
    id: SourceId,
    source: SourceFile,
    /// Whether `source` is the exact content: the file was readable, and no bytes were replaced.
    is_lossless: bool,
    tools: Vec<LoadedTool>,
    workers: Vec<WorkerSpec>,
    mcp_servers: Vec<McpServer>,
    findings: Vec<Diagnostic>,
    levels: Levels,
}

impl CachedFile for SpecFile {
    const MAX_READ: u64 = MAX_BYTES + 1;

    fn matches_bytes(&self, bytes: &[u8]) -> bool {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        self.is_lossless && self.source.text.as_bytes() == bytes
    }
}

/// Reads the file and assigns it the source id `id`.
fn read_spec(
    cache: &Cache,
    path: &Path,
    id: SourceId,
    from: &Path,
    overlay: &Overlay,
) -> Result<Arc<SpecFile>, ProjectError> {
    if let Some(text) = overlay.get(path) {
        return Ok(Arc::new(SpecFile::of(SourceText::of(path, text), id, from)));
    }
    let make = |bytes| SpecFile::of(SourceText::of_bytes(path.to_owned(), bytes), id, from);
    match cache.read(&cache.specs, path, |file| file.id == id, make) {
        Ok(file) => Ok(file),
        // Keep going: the file's tools stay as they were, and the other files are loaded.
        Err(error) if cache.keeps_going => {
            let mut file = SpecFile::empty(SourceText::empty(path).into_source(id, from).0, id);
            file.findings.push(unreadable(id, &file.source.name, &error.to_string()));
            Ok(Arc::new(file))
        }
        Err(source) => Err(ProjectError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Returns the finding that the file `name` cannot be read. `source` is its empty placeholder.
fn unreadable(source: SourceId, name: &str, why: &str) -> Diagnostic {
    let start = Location { source, span: Span::default() };
    rules::unreadable::finding(start, &format!("cannot read {name}: {}", one_line(why.to_owned())))
}

impl SpecFile {
    fn empty(source: SourceFile, id: SourceId) -> Self {
        Self {
            id,
            source,
            is_lossless: false,
            tools: Vec::new(),
            workers: Vec::new(),
            mcp_servers: Vec::new(),
            findings: Vec::new(),
            levels: Levels::default(),
        }
    }

    fn of(text: SourceText, id: SourceId, from: &Path) -> Self {
        let (is_text, is_lossless) = (text.is_text(), text.is_lossless());
        let (source, damage) = text.into_source(id, from);
        let mut file = Self { is_lossless, ..Self::empty(source, id) };
        if is_text {
            load_text(&mut file, id, damage.as_ref());
        }
        file.findings.extend(damage);
        file
    }
}

/// Parses and lowers the text. `damage` is the finding about invalid UTF-8, if any.
fn load_text(load: &mut SpecFile, id: SourceId, damage: Option<&Diagnostic>) {
    let file = &load.source;
    let start = Location { source: id, span: Span::default() };
    load.findings.extend(rules::empty_file::check(start, &file.text));
    let (tree, syntax_findings) = parse(id, &file.text);
    let (mut definitions, mut findings) = lower(id, &file.text, &tree, FileKind::of_name(&file.name));
    let mut directives = levels::read_directives(id, &file.text, &tree);
    directives.keep_whole(id, definitions.spans());
    load.levels.allows.append(&mut directives.allows);
    load.findings.append(&mut directives.findings);
    definitions.retain(|span| !directives.skip(span));
    findings.retain(|finding| !directives.skip(finding.primary.span));
    // An unbalanced form affects everything after it, so these findings are kept.
    let matters = |finding: &Diagnostic| *finding.rule == UNCLOSED || *finding.rule == STRAY_CLOSER;
    load.findings.extend(syntax_findings.into_iter().filter_map(|mut finding| {
        if directives.skip(finding.primary.span) {
            finding.fix = None;
            return matters(&finding).then_some(finding);
        }
        Some(finding)
    }));
    let lone = lone_backslashes(&findings);
    load.findings.extend(findings);
    let is_damaged =
        |span: Span| damage.is_some() && span.of(&file.text).contains(char::REPLACEMENT_CHARACTER);
    load.levels.lints.extend(definitions.lints);
    load.mcp_servers.extend(definitions.mcp_servers);
    for worker in definitions.workers {
        let valid = worker.valid && !is_damaged(worker.span);
        load.workers.push(WorkerSpec { valid, ..worker });
    }
    let name: Arc<str> = Arc::from(file.name.as_str());
    for tool in definitions.tools {
        let mut tool = Tool { valid: tool.valid && !is_damaged(tool.span), ..tool };
        // Errors in the form itself are already reported.
        if tool.valid {
            let mut findings = check_tool(&tool);
            findings.retain(|finding| {
                *finding.rule != INVALID_PATTERN || !contains_lone_backslash(&lone, finding.primary.span)
            });
            tool.valid = !findings.iter().any(|finding| finding.severity == Severity::Error);
            load.findings.extend(findings);
        }
        load.tools.push(LoadedTool {
            tool: Arc::new(tool),
            file: Arc::clone(&name),
            entry: Arc::default(),
            script: ScriptState::None,
        });
    }
}

/// Keeps, of the context files, only the tools that use one of the named scripts, and their findings.
fn narrow(load: &mut Load, inputs: &[Input], levels: &mut Levels) -> Result<(), ProjectError> {
    let wanted: Vec<(PathBuf, &PathBuf)> =
        inputs.iter().flat_map(|input| &input.scripts).map(|script| (identity(script), script)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut used = HashSet::new();
    let roots = &load.roots;
    load.tools.retain(|loaded| {
        let tool = &loaded.tool;
        let script = roots.get(&tool.source).filter(|_| tool.kind == ToolKind::Normal);
        let script = script.and_then(|root| find_script(root, loaded)).map(|path| identity(&path));
        let is_wanted = script.is_some_and(|script| {
            let is_wanted = wanted.iter().any(|(identity, _)| *identity == script);
            used.insert(script);
            is_wanted
        });
        let Some(forms) = levels.context_files.get_mut(&tool.source) else { return true };
        forms.extend(is_wanted.then_some(tool.span));
        is_wanted
    });
    // A test script does not have to belong to a tool.
    let is_lost = |(identity, path): &&(PathBuf, &PathBuf)| !used.contains(identity) && !is_test_script(path);
    if let Some((_, path)) = wanted.iter().find(is_lost) {
        return Err(ProjectError::UnusedScript { path: (*path).clone() });
    }
    let is_context = |source: SourceId| levels.context_files.contains_key(&source);
    load.workers.retain(|worker| worker.source.is_none_or(|source| !is_context(source)));
    load.findings.retain(|finding| levels.is_in_scope(finding.primary));
    load.checked.retain(|source| levels.context_files.get(source).is_none_or(|forms| !forms.is_empty()));
    Ok(())
}
