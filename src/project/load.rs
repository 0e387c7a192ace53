//! Spec files → definitions, compiled schemas and findings.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::bios::tell_bios;
use super::cache::{Cache, OfBytes};
use super::discover::{identity, is_test_script};
use super::levels::{self, Levels};
use super::look::Looks;
use super::read::{BYTE_ORDER_MARK, MAX_BYTES, SourceText, read_source};
use super::scripts::{find_script, is_same_script, load_scripts};
use super::{Input, Outside, Overlay, ProjectError, display_name, names, parallel};
use crate::diagnostic::{Diagnostic, Severity};
use crate::project::rules;
use crate::schema::rules::{INVALID_PATTERN, repeats};
use crate::schema::{
    Target, ToolEntry, check_count, check_target, check_tool, compile_tool, compile_tool_for, emit_definition,
};
use crate::script::Script;
use crate::spec::rules::lone_backslash;
use crate::spec::{Api, FileKind, McpServer, Tool, ToolKind, WorkerSpec, lower};
use crate::syntax::parse;
use crate::syntax::rules::{STRAY_CLOSER, UNCLOSED};
use crate::text::{Location, SourceFile, SourceId, Sources, Span, one_line};
use crate::tool::ToolError;

/// Everything that some inputs define.
#[derive(Debug, Default)]
pub struct Load {
    /// The project's folder, where the inputs are of one; of several, the first.
    pub root: Option<PathBuf>,
    /// The project of each source that is of one.
    pub(super) roots: HashMap<SourceId, Arc<Path>>,
    /// The files that were read.
    pub sources: Sources,
    /// The spec files among the sources, but for those whose bytes are not the source's text (a byte order mark aside).
    pub files: HashMap<SourceId, PathBuf>,
    /// The spec files that this load is about.
    pub checked: Vec<SourceId>,
    /// Tools and exit tools, in the order of files and of forms in them. Of two of a name both are here, and the
    /// second is not valid.
    pub tools: Vec<LoadedTool>,
    /// Workers, likewise.
    pub workers: Vec<WorkerSpec>,
    /// MCP servers.
    pub mcp_servers: Vec<McpServer>,
    /// What is wrong, in source order.
    pub findings: Vec<Diagnostic>,
}

/// A tool with its compiled schema.
#[derive(Debug, Clone)]
pub struct LoadedTool {
    /// The spec.
    pub tool: Arc<Tool>,
    /// Name of the file it stands in; unlike the source's number it means the same in every load.
    pub file: Arc<str>,
    /// What a request holds of it, made when it is asked for: a check needs none.
    entry: Arc<OnceLock<Arc<ToolEntry>>>,
    /// What runs it.
    pub script: ScriptState,
}

impl LoadedTool {
    /// What a request holds of it.
    pub fn entry(&self) -> &Arc<ToolEntry> {
        self.entry.get_or_init(|| Arc::new(compile_tool(&self.tool)))
    }

    /// What a request to `api` holds of it.
    pub fn entry_for(&self, api: Api) -> Arc<ToolEntry> {
        compile_tool_for(api, &self.tool).map_or_else(|| Arc::clone(self.entry()), Arc::new)
    }

    /// Takes over from `before` what would be the same: what a request holds of it is costly to make, and the states
    /// of a script belong to the very script.
    pub(super) fn take_over(&mut self, before: &Self) {
        if let (ScriptState::Ready(script), ScriptState::Ready(known)) = (&mut self.script, &before.script)
            && !Arc::ptr_eq(script, known)
            && is_same_script(known, script)
        {
            *script = Arc::clone(known);
        }
        if self.entry.get().is_none()
            && let Some(entry) = before.entry.get()
            && self.is_defined_as(before)
            && self.tool.timeout == before.tool.timeout
        {
            // For later loads of the same spec, too.
            let _ = self.entry.set(Arc::clone(entry));
        }
    }

    /// Whether a model is told the same of both.
    pub(super) fn is_defined_as(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.tool, &other.tool) {
            return true;
        }
        if let (Some(one), Some(other)) = (self.entry.get(), other.entry.get())
            && Arc::ptr_eq(one, other)
        {
            return true;
        }
        // As text: the order of arguments counts.
        let definition = |loaded: &Self| match loaded.entry.get() {
            Some(entry) => entry.definition.to_string(),
            None => emit_definition(&loaded.tool).to_string(),
        };
        self.tool.kind == other.tool.kind && definition(self) == definition(other)
    }
}

/// The script of a tool.
#[derive(Debug, Clone)]
pub enum ScriptState {
    /// There is none to look for: an exit tool, or no scripts were loaded.
    None,
    /// It compiles and fits its spec.
    Ready(Arc<Script>),
    /// It is missing, does not compile or does not fit; what a call says.
    Broken(ToolError),
}

/// What is looked at beside the specs, and how.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Texts that stand in for what files hold.
    pub overlay: Overlay,
    /// Whether the scripts of the tools are read, too.
    pub with_scripts: bool,
    /// The APIs that the valid tools are held against.
    pub targets: Vec<Target>,
    /// The program that checks the types of the scripts, too: `deftool-types`.
    pub type_checker: Option<PathBuf>,
    /// Whether findings that the project denies become errors. The tools that they are about stay valid.
    pub raises_denied: bool,
}

/// Reads every spec file of `inputs` and the scripts of their tools.
///
/// # Errors
/// When a spec file cannot be read.
pub fn load(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    load_with(inputs, from, &LoadOptions { with_scripts: true, ..LoadOptions::default() })
}

/// Reads every spec file of `inputs`, without the scripts.
///
/// # Errors
/// When a file cannot be read.
pub fn load_specs(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    load_with(inputs, from, &LoadOptions::default())
}

/// Reads every spec file of `inputs`; names in messages are relative to the folder `from`.
///
/// # Errors
/// When a spec file cannot be read.
pub fn load_with(inputs: &[Input], from: &Path, options: &LoadOptions) -> Result<Load, ProjectError> {
    load_through(&mut Cache::default(), inputs, from, options)
}

/// Reads what is another than in `cache` and takes the rest from there.
pub(super) fn load_through(
    cache: &mut Cache,
    inputs: &[Input],
    from: &Path,
    options: &LoadOptions,
) -> Result<Load, ProjectError> {
    let (mut load, levels) = read_specs(cache, inputs, from, &options.overlay)?;
    if options.with_scripts {
        load_scripts(cache, &mut load, &whole_roots(inputs), from);
        tell_bios(&mut load);
        if let Some(program) = &options.type_checker {
            super::type_findings::tell_types(&mut load, program);
        }
    }
    for &target in &options.targets {
        let mut losses: Vec<_> =
            load.valid_tools().flat_map(|loaded| check_target(target, &loaded.tool)).collect();
        // How many a project offers in a request, its workers say.
        let is_loose = |loaded: &&LoadedTool| !load.roots.contains_key(&loaded.tool.source);
        losses.extend(check_count(target, load.valid_tools().filter(is_loose).map(|loaded| &*loaded.tool)));
        load.findings.append(&mut losses);
    }
    levels::apply(&mut load, levels, options);
    if !options.targets.is_empty() {
        drop_repeated(&mut load);
    }
    crate::spec::rules::type_as_string::merge(&mut load.findings);
    Ok(load)
}

/// What is still told of every tool is not told of a target again, unless it weighs more there.
fn drop_repeated(load: &mut Load) {
    let mut repeated = Vec::new();
    // In order of their places.
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

/// The projects of which every file is read.
fn whole_roots(inputs: &[Input]) -> HashSet<&Path> {
    inputs.iter().filter(|input| input.whole_project).filter_map(|input| input.root.as_deref()).collect()
}

/// Why a file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The load is about it.
    Checked,
    /// A tool in it may use a script that was named.
    AroundScripts,
    /// It may say what is allowed in the whole project.
    Lints,
}

/// The other files of the project of `input` that have a say in what is found. What cannot be read says nothing.
fn files_around(input: &Input, overlay: &Overlay) -> Result<Vec<(PathBuf, Reason)>, ProjectError> {
    if !input.scripts.is_empty() {
        return Ok(input
            .around(&mut Looks::default())?
            .into_iter()
            .map(|path| (path, Reason::AroundScripts))
            .collect());
    }
    let files = input.around(&mut Looks::default()).unwrap_or_default();
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
            let around = files_around(input, overlay)?.into_iter();
            files.extend(around.map(|(path, reason)| (root.clone(), path, reason)));
        }
    }
    let loaded = parallel::map(&files, |index, (_, path, _)| {
        read_spec(cache, path, Sources::new().id_ahead(index), from, overlay)
    });
    for ((root, path, reason), file) in files.into_iter().zip(loaded) {
        // In a load that keeps nothing this is the only holder.
        let file = Arc::unwrap_or_clone(file?);
        let source = load.sources.add(file.source);
        load.roots.extend(root.map(|root| (source, root)));
        levels.lints.extend(file.levels.lints);
        if reason != Reason::Checked {
            levels.around.insert(source, Vec::new());
        }
        if reason == Reason::Lints {
            continue;
        }
        levels.allows.extend(file.levels.allows);
        load.checked.push(source);
        load.files.extend(file.is_faithful.then_some((source, path)));
        load.tools.extend(file.tools);
        load.workers.extend(file.workers);
        load.mcp_servers.extend(file.mcp_servers);
        load.findings.extend(file.findings);
    }
    for input in inputs {
        for Outside { path, why } in &input.outside {
            let source =
                load.sources.add(SourceText::none(path).into_source(load.sources.id_ahead(0), from).0);
            let root = input.root.as_deref().and_then(|root| roots.iter().find(|known| ***known == *root));
            load.roots.extend(root.map(|root| (source, Arc::clone(root))));
            load.checked.push(source);
            load.findings.push(unreadable(source, &display_name(path, from), why));
        }
    }
    names::tell_duplicates(&mut load);
    names::tell_unknown_worker_tools(&mut load, &whole);
    let mut findings = rules::near_name::check(&load);
    findings.extend(rules::unknown_target::check(&load));
    findings.extend(rules::too_many_tools::check(&load, &whole));
    load.findings.append(&mut findings);
    narrow(&mut load, inputs, &mut levels)?;
    load.sort_findings();
    Ok((load, levels))
}

impl Load {
    /// The tools without errors, in order.
    pub fn valid_tools(&self) -> impl Iterator<Item = &LoadedTool> {
        self.tools.iter().filter(|loaded| loaded.tool.valid)
    }

    /// Whether there is an error among the findings.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// The names of the files that have an error: a tool that is gone from one may only be unreadable.
    pub(super) fn broken_files(&self) -> HashSet<&str> {
        let errors = self.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let files = errors.filter_map(|error| self.sources.get(error.primary.source));
        files.map(|file| file.name.as_str()).collect()
    }

    /// Whether it reads the same specs and says the same of them.
    pub(super) fn is_as(&self, other: &Self) -> bool {
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

    /// The project that a source is of.
    pub(crate) fn root_of(&self, source: SourceId) -> Option<&Path> {
        self.roots.get(&source).map(AsRef::as_ref)
    }

    /// A number that sources of one project share: there is one root for each.
    pub(super) fn project_of(&self, source: SourceId) -> Option<usize> {
        self.roots.get(&source).map(|root| Arc::as_ptr(root).cast::<u8>().addr())
    }

    pub(super) fn sort_findings(&mut self) {
        self.findings
            .sort_by_key(|finding| (finding.primary.source, finding.primary.span, finding.rule.code));
    }
}

/// What one spec file holds.
#[derive(Clone)]
pub(super) struct SpecFile {
    /// Its number among the sources.
    id: SourceId,
    source: SourceFile,
    /// Whether `source` is what the file holds.
    is_faithful: bool,
    tools: Vec<LoadedTool>,
    workers: Vec<WorkerSpec>,
    mcp_servers: Vec<McpServer>,
    findings: Vec<Diagnostic>,
    levels: Levels,
}

impl OfBytes for SpecFile {
    const MOST: u64 = MAX_BYTES + 1;

    fn holds(&self, bytes: &[u8]) -> bool {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        self.is_faithful && self.source.text.as_bytes() == bytes
    }
}

/// Reads the file that will be the source `id`.
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
        // The tools of the file stay as they were, and the others need not wait for it.
        Err(error) if cache.keeps_going => {
            let mut file = SpecFile::empty(SourceText::none(path).into_source(id, from).0, id);
            file.findings.push(unreadable(id, &file.source.name, &error.to_string()));
            Ok(Arc::new(file))
        }
        Err(source) => Err(ProjectError::Unreadable { path: path.to_owned(), source }),
    }
}

/// That the file called `name`, which stands for nothing as `source`, cannot be read.
fn unreadable(source: SourceId, name: &str, why: &str) -> Diagnostic {
    let start = Location { source, span: Span::default() };
    rules::unreadable::finding(start, &format!("{name} cannot be read: {}", one_line(why.to_owned())))
}

impl SpecFile {
    fn empty(source: SourceFile, id: SourceId) -> Self {
        Self {
            id,
            source,
            is_faithful: false,
            tools: Vec::new(),
            workers: Vec::new(),
            mcp_servers: Vec::new(),
            findings: Vec::new(),
            levels: Levels::default(),
        }
    }

    fn of(text: SourceText, id: SourceId, from: &Path) -> Self {
        let (is_text, is_faithful) = (text.is_text(), text.is_faithful());
        let (source, damage) = text.into_source(id, from);
        let mut file = Self { is_faithful, ..Self::empty(source, id) };
        if is_text {
            load_text(&mut file, id, damage.as_ref());
        }
        file.findings.extend(damage);
        file
    }
}

/// `damage`: the finding of bytes that were replaced.
fn load_text(load: &mut SpecFile, id: SourceId, damage: Option<&Diagnostic>) {
    let file = &load.source;
    let start = Location { source: id, span: Span::default() };
    load.findings.extend(rules::empty_file::check(start, &file.text));
    let (tree, misread) = parse(id, &file.text);
    let (mut definitions, mut findings) = lower(id, &file.text, &tree, FileKind::of_name(&file.name));
    let mut directives = levels::read_directives(id, &file.text, &tree);
    directives.keep_whole(id, definitions.spans());
    load.levels.allows.append(&mut directives.allows);
    load.findings.append(&mut directives.findings);
    definitions.retain(|span| !directives.skip(span));
    findings.retain(|finding| !directives.skip(finding.primary.span));
    // Where a form ends matters to all that follow it.
    let matters = |finding: &Diagnostic| *finding.rule == UNCLOSED || *finding.rule == STRAY_CLOSER;
    load.findings.extend(misread.into_iter().filter_map(|mut finding| {
        if directives.skip(finding.primary.span) {
            finding.fix = None;
            return matters(&finding).then_some(finding);
        }
        Some(finding)
    }));
    let lone = lone_backslash::places(&findings);
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
        // What is wrong with a broken form was told already.
        if tool.valid {
            let mut findings = check_tool(&tool);
            findings.retain(|finding| {
                *finding.rule != INVALID_PATTERN || !lone_backslash::is_in(&lone, finding.primary.span)
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

/// Of the files around named scripts only the tools that use one of these stay, with their findings.
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
        let Some(forms) = levels.around.get_mut(&tool.source) else { return true };
        forms.extend(is_wanted.then_some(tool.span));
        is_wanted
    });
    // A file of tests need not be a tool's.
    let is_lost = |(identity, path): &&(PathBuf, &PathBuf)| !used.contains(identity) && !is_test_script(path);
    if let Some((_, path)) = wanted.iter().find(is_lost) {
        return Err(ProjectError::UnusedScript { path: (*path).clone() });
    }
    let is_around = |source: SourceId| levels.around.contains_key(&source);
    load.workers.retain(|worker| worker.source.is_none_or(|source| !is_around(source)));
    load.findings.retain(|finding| levels.is_about(finding.primary));
    load.checked.retain(|source| levels.around.get(source).is_none_or(|forms| !forms.is_empty()));
    Ok(())
}
