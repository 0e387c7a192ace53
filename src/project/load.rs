//! Spec files → definitions, compiled schemas and findings.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::discover::identity;
use super::levels::{self, Levels};
use super::read::{SourceText, read_source};
use super::scripts::{find_script, load_scripts};
use super::{Input, Overlay, ProjectError, parallel};
use crate::diagnostic::{Diagnostic, Severity};
use crate::project::rules;
use crate::schema::rules::INVALID_PATTERN;
use crate::schema::{Target, ToolEntry, check_tool, check_tools, compile_tool};
use crate::script::Script;
use crate::spec::rules::lone_backslash;
use crate::spec::{FileKind, McpServer, Tool, ToolKind, WorkerSpec, lower};
use crate::syntax::parse;
use crate::text::{Location, SourceFile, SourceId, Sources, Span};
use crate::tool::ToolError;

/// Everything that some inputs define.
#[derive(Debug, Default)]
pub struct Load {
    /// The project's folder, where the inputs are of one; of several, the first.
    pub root: Option<PathBuf>,
    /// The project of each source that is of one.
    pub(super) roots: HashMap<SourceId, PathBuf>,
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
    pub tool: Tool,
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
    let (mut load, levels) = read_specs(inputs, from, &options.overlay)?;
    if options.with_scripts {
        load_scripts(&mut load, &whole_roots(inputs), from);
    }
    for &target in &options.targets {
        let losses = check_tools(target, load.valid_tools().map(|loaded| &loaded.tool));
        load.findings.extend(losses);
    }
    levels::apply(&mut load, levels, options);
    Ok(load)
}

/// The projects of which every file is read.
fn whole_roots(inputs: &[Input]) -> HashSet<&PathBuf> {
    inputs.iter().filter(|input| input.whole_project).filter_map(|input| input.root.as_ref()).collect()
}

fn read_specs(inputs: &[Input], from: &Path, overlay: &Overlay) -> Result<(Load, Levels), ProjectError> {
    let mut load = Load { root: inputs.iter().find_map(|input| input.root.clone()), ..Load::default() };
    let mut levels = Levels::default();
    let mut files: Vec<(&Input, PathBuf, bool)> = Vec::new();
    for input in inputs {
        files.extend(input.files.iter().map(|path| (input, path.clone(), false)));
        files.extend(input.around_scripts()?.into_iter().map(|path| (input, path, true)));
    }
    let loaded = parallel::map(&files, |index, (_, path, _)| {
        load_file(path, Sources::new().id_ahead(index), from, overlay)
    });
    let mut around: HashSet<SourceId> = HashSet::new();
    for ((input, path, is_around), file) in files.into_iter().zip(loaded) {
        let file = file?;
        let source = load.sources.add(file.source);
        load.checked.push(source);
        load.files.extend(file.is_faithful.then_some((source, path)));
        around.extend(is_around.then_some(source));
        load.roots.extend(input.root.clone().map(|root| (source, root)));
        load.tools.extend(file.tools);
        load.workers.extend(file.workers);
        load.mcp_servers.extend(file.mcp_servers);
        load.findings.extend(file.findings);
        levels.lints.extend(file.levels.lints);
        levels.allows.extend(file.levels.allows);
    }
    tell_duplicates(&mut load);
    let whole = whole_roots(inputs);
    tell_unknown_worker_tools(&mut load, &whole);
    let mut findings = rules::near_name::check(&load);
    findings.extend(rules::unknown_target::check(&load));
    findings.extend(rules::too_many_tools::check(&load, &whole));
    load.findings.append(&mut findings);
    narrow(&mut load, inputs, &around)?;
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

    /// Whether the file called `name` is here and has an error: a tool that is gone from it may only be unreadable.
    pub(super) fn has_broken_file(&self, name: &str) -> bool {
        self.findings.iter().any(|finding| {
            let file = self.sources.get(finding.primary.source);
            finding.severity == Severity::Error && file.is_some_and(|file| file.name == name)
        })
    }

    pub(super) fn sort_findings(&mut self) {
        self.findings
            .sort_by_key(|finding| (finding.primary.source, finding.primary.span, finding.rule.code));
    }
}

/// What one file holds.
struct LoadedFile {
    source: SourceFile,
    /// Whether `source` is what the file holds.
    is_faithful: bool,
    tools: Vec<LoadedTool>,
    workers: Vec<WorkerSpec>,
    mcp_servers: Vec<McpServer>,
    findings: Vec<Diagnostic>,
    levels: Levels,
}

/// Reads the file that will be the source `id`.
fn load_file(path: &Path, id: SourceId, from: &Path, overlay: &Overlay) -> Result<LoadedFile, ProjectError> {
    let text = match overlay.get(path) {
        Some(text) => SourceText::of(path, text),
        None => read_source(path)?,
    };
    let (is_text, is_faithful) = (text.is_text(), text.is_faithful());
    let (source, damage) = text.into_source(id, from);
    let mut load = LoadedFile {
        source,
        is_faithful,
        tools: Vec::new(),
        workers: Vec::new(),
        mcp_servers: Vec::new(),
        findings: Vec::new(),
        levels: Levels::default(),
    };
    if is_text {
        load_text(&mut load, id, damage.as_ref());
    }
    load.findings.extend(damage);
    Ok(load)
}

/// `damage`: the finding of bytes that were replaced.
fn load_text(load: &mut LoadedFile, id: SourceId, damage: Option<&Diagnostic>) {
    let file = &load.source;
    let start = Location { source: id, span: Span::default() };
    load.findings.extend(rules::empty_file::check(start, &file.text));
    let (tree, findings) = parse(id, &file.text);
    load.findings.extend(findings);
    let (allows, findings) = levels::read_allows(id, &file.text, &tree);
    load.levels.allows.extend(allows);
    load.findings.extend(findings);
    let (definitions, findings) = lower(id, &file.text, &tree, FileKind::of_name(&file.name));
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
            tool,
            file: Arc::clone(&name),
            entry: Arc::default(),
            script: ScriptState::None,
        });
    }
}

/// Of the sources `around` named scripts only the tools that use one of these stay, with their findings.
fn narrow(load: &mut Load, inputs: &[Input], around: &HashSet<SourceId>) -> Result<(), ProjectError> {
    let wanted: Vec<(PathBuf, &PathBuf)> =
        inputs.iter().flat_map(|input| &input.scripts).map(|script| (identity(script), script)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut used = HashSet::new();
    let mut kept: HashMap<SourceId, Vec<Span>> = HashMap::new();
    let (roots, checked) = (&load.roots, &mut load.checked);
    load.tools.retain(|LoadedTool { tool, .. }| {
        let script = roots.get(&tool.source).filter(|_| tool.kind == ToolKind::Normal);
        let script = script.and_then(|root| find_script(root, tool)).map(|path| identity(&path));
        let is_wanted = script.is_some_and(|script| {
            let is_wanted = wanted.iter().any(|(identity, _)| *identity == script);
            used.insert(script);
            is_wanted
        });
        if is_wanted {
            kept.entry(tool.source).or_default().push(tool.span);
        }
        is_wanted || !around.contains(&tool.source)
    });
    if let Some((_, path)) = wanted.iter().find(|(identity, _)| !used.contains(identity)) {
        return Err(ProjectError::UnusedScript { path: (*path).clone() });
    }
    load.workers.retain(|worker| worker.source.is_none_or(|source| !around.contains(&source)));
    load.findings.retain(|finding| {
        let Location { source, span } = finding.primary;
        let holds = |tool: &Span| tool.start <= span.start && span.end <= tool.end;
        !around.contains(&source) || kept.get(&source).is_some_and(|tools| tools.iter().any(holds))
    });
    checked.retain(|source| !around.contains(source) || kept.contains_key(source));
    Ok(())
}

/// Names are unique in a project, for tools and for workers.
fn tell_duplicates(load: &mut Load) {
    tell_duplicate_tools(load);
    let mut first: HashMap<(Option<PathBuf>, String), Location> = HashMap::new();
    for worker in &mut load.workers {
        let Some(source) = worker.source else { continue };
        let here = Location { source, span: worker.name.span };
        let name = &worker.name.value;
        match first.entry((load.roots.get(&source).cloned(), name.clone())) {
            Entry::Vacant(vacant) => drop(vacant.insert(here)),
            Entry::Occupied(other) => {
                let other = *other.get();
                load.findings.push(rules::duplicate_name::finding(here, "workers", name, other, None));
                worker.valid = false;
            }
        }
    }
}

/// An Emacs Lisp file is code that is evaluated in order: there the later definition of a name and category replaces
/// the earlier. Everywhere else nothing says which of two is meant, and the first stays.
fn tell_duplicate_tools(load: &mut Load) {
    let mut first: HashMap<(Option<PathBuf>, String), usize> = HashMap::new();
    for index in 0..load.tools.len() {
        let Some(tool) = load.tools.get(index).map(|loaded| &loaded.tool) else { continue };
        let key = (load.roots.get(&tool.source).cloned(), tool.name.value.clone());
        let Some(other_index) = first.get(&key).copied() else {
            first.insert(key, index);
            continue;
        };
        let Some(other) = load.tools.get(other_index).map(|loaded| &loaded.tool) else { continue };
        let place = |tool: &Tool| Location { source: tool.source, span: tool.name.span };
        let category =
            |tool: &Tool| tool.category.as_ref().map_or("misc", |name| name.value.as_str()).to_owned();
        let (here, there, name) = (place(tool), place(other), &tool.name.value);
        let (mine, theirs) = (category(tool), category(other));
        let file = load.sources.get(tool.source).map(|file| FileKind::of_name(&file.name));
        let is_code = file == Some(FileKind::EmacsLisp) && tool.source == other.source;
        let (loser, finding) = if is_code && mine == theirs {
            first.insert(key, index);
            (other_index, rules::replaced_tool::finding(here, name, there))
        } else {
            let categories = (mine != theirs).then_some((theirs.as_str(), mine.as_str()));
            (index, rules::duplicate_name::finding(here, "tools", name, there, categories))
        };
        load.findings.push(finding);
        if let Some(loser) = load.tools.get_mut(loser) {
            loser.tool.valid = false;
        }
    }
}

/// Workers of the projects that were read whole name tools that these have.
fn tell_unknown_worker_tools(load: &mut Load, whole: &HashSet<&PathBuf>) {
    let mut findings = Vec::new();
    for worker in &mut load.workers {
        let Some(source) = worker.source else { continue };
        let Some(root) = load.roots.get(&source).filter(|root| whole.contains(root)) else { continue };
        let names = |kind: ToolKind| -> Vec<&str> {
            let tools = load.tools.iter().map(|loaded| &loaded.tool);
            let of_kind =
                tools.filter(|tool| tool.kind == kind && load.roots.get(&tool.source) == Some(root));
            of_kind.map(|tool| tool.name.value.as_str()).collect()
        };
        let (normal, exit) = (names(ToolKind::Normal), names(ToolKind::Exit));
        let lists = [(&worker.tools, &normal, "tool"), (&worker.exit_tools, &exit, "exit tool")];
        for (wanted, known, what) in lists {
            for name in wanted.iter().flatten().filter(|name| !known.contains(&name.value.as_str())) {
                let location = Location { source, span: name.span };
                let other = if what == "tool" { &exit } else { &normal };
                let is_other = other.contains(&name.value.as_str());
                let finding = rules::unknown_worker_tool::finding(
                    location,
                    &worker.name.value,
                    name,
                    what,
                    known,
                    is_other,
                );
                findings.push(finding);
                worker.valid = false;
            }
        }
    }
    load.findings.append(&mut findings);
}
