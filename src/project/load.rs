//! Spec files → definitions, compiled schemas and findings.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::levels::{self, Allow, Denied};
use super::read::read_source;
use super::scripts::load_scripts;
use super::{Input, ProjectError};
use crate::diagnostic::{Diagnostic, Severity};
use crate::project::rules;
use crate::schema::{ToolEntry, compile_tool};
use crate::script::Script;
use crate::spec::{FileKind, Lint, McpServer, Tool, ToolKind, WorkerSpec, lower};
use crate::syntax::parse;
use crate::text::{Location, SourceId, Sources, Span};
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
    /// Tools and exit tools, in the order of files and of forms in them. Of two of a name both are here, and the
    /// second is not valid.
    pub tools: Vec<LoadedTool>,
    /// Workers, likewise.
    pub workers: Vec<WorkerSpec>,
    /// MCP servers.
    pub mcp_servers: Vec<McpServer>,
    /// What is wrong, in source order.
    pub findings: Vec<Diagnostic>,
    /// The rules that count as errors for `check`.
    pub(super) denied: Denied,
}

/// What is said of findings, until they are all there.
#[derive(Default)]
struct Levels {
    lints: Vec<Lint>,
    allows: Vec<Allow>,
}

/// A tool with its compiled schema.
#[derive(Debug, Clone)]
pub struct LoadedTool {
    /// The spec.
    pub tool: Tool,
    /// Name of the file it stands in; unlike the source's number it means the same in every load.
    pub file: Arc<str>,
    /// What a request holds of it.
    pub entry: Arc<ToolEntry>,
    /// What runs it.
    pub script: ScriptState,
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

/// Reads every spec file of `inputs` and the scripts of their tools.
///
/// # Errors
/// When a spec file cannot be read.
pub fn load(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    let (mut load, levels) = read_specs(inputs, from)?;
    load_scripts(&mut load, &whole_roots(inputs), from);
    levels::apply(&mut load, &levels.lints, levels.allows, true);
    Ok(load)
}

/// Reads every spec file of `inputs`, without the scripts; names in messages are relative to the folder `from`.
///
/// # Errors
/// When a file cannot be read.
pub fn load_specs(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    let (mut load, levels) = read_specs(inputs, from)?;
    levels::apply(&mut load, &levels.lints, levels.allows, false);
    Ok(load)
}

/// The projects of which every file is read.
fn whole_roots(inputs: &[Input]) -> HashSet<&PathBuf> {
    inputs.iter().filter(|input| input.whole_project).filter_map(|input| input.root.as_ref()).collect()
}

fn read_specs(inputs: &[Input], from: &Path) -> Result<(Load, Levels), ProjectError> {
    let mut load = Load { root: inputs.iter().find_map(|input| input.root.clone()), ..Load::default() };
    let mut levels = Levels::default();
    for input in inputs {
        for path in &input.files {
            let text = read_source(path)?;
            let is_text = text.is_text();
            let (source, finding) = text.add_to(&mut load.sources, from);
            load.roots.extend(input.root.clone().map(|root| (source, root)));
            if is_text {
                load_source(&mut load, &mut levels, source, finding.as_ref());
            }
            load.findings.extend(finding);
        }
    }
    tell_duplicates(&mut load);
    let whole = whole_roots(inputs);
    tell_unknown_worker_tools(&mut load, &whole);
    let mut findings = rules::near_name::check(&load);
    findings.extend(rules::unknown_target::check(&load));
    findings.extend(rules::too_many_tools::check(&load, &whole));
    load.findings.append(&mut findings);
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

    /// Makes errors of the findings that the project denies; the tools that they are about stay valid.
    pub fn raise_denied(&mut self) {
        for finding in &mut self.findings {
            let root = self.roots.get(&finding.primary.source).cloned();
            if self.denied.contains(&(root, finding.rule.code)) {
                finding.severity = Severity::Error;
            }
        }
    }

    pub(super) fn sort_findings(&mut self) {
        self.findings
            .sort_by_key(|finding| (finding.primary.source, finding.primary.span, finding.rule.code));
    }
}

/// `damage`: the finding of bytes that were replaced.
fn load_source(load: &mut Load, levels: &mut Levels, source: SourceId, damage: Option<&Diagnostic>) {
    let Some(file) = load.sources.get(source) else { return };
    let start = Location { source, span: Span::default() };
    load.findings.extend(rules::empty_file::check(start, &file.text));
    let (tree, findings) = parse(source, &file.text);
    load.findings.extend(findings);
    let (allows, findings) = levels::read_allows(source, &file.text, &tree);
    levels.allows.extend(allows);
    load.findings.extend(findings);
    let (definitions, findings) = lower(source, &file.text, &tree, FileKind::of_name(&file.name));
    load.findings.extend(findings);
    let is_damaged =
        |span: Span| damage.is_some() && span.of(&file.text).contains(char::REPLACEMENT_CHARACTER);
    levels.lints.extend(definitions.lints);
    load.mcp_servers.extend(definitions.mcp_servers);
    for worker in definitions.workers {
        let valid = worker.valid && !is_damaged(worker.span);
        load.workers.push(WorkerSpec { valid, ..worker });
    }
    let name: Arc<str> = Arc::from(file.name.as_str());
    for tool in definitions.tools {
        let tool = Tool { valid: tool.valid && !is_damaged(tool.span), ..tool };
        let (entry, findings) = compile_tool(&tool);
        // What is wrong with a broken form was told already.
        load.findings.extend(findings.into_iter().filter(|_| tool.valid));
        load.tools.push(LoadedTool {
            tool,
            file: Arc::clone(&name),
            entry: Arc::new(entry),
            script: ScriptState::None,
        });
    }
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
