//! Spec files → definitions, compiled schemas and findings.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::discover::identity;
use super::read::{SourceText, read_source};
use super::scripts::{find_script, load_scripts};
use super::{Input, Overlay, ProjectError, parallel};
use crate::diagnostic::{Diagnostic, Severity};
use crate::project::rules;
use crate::schema::{Target, ToolEntry, check_tools, compile_tool};
use crate::script::Script;
use crate::spec::{FileKind, Tool, ToolKind, WorkerSpec, lower, nearest};
use crate::syntax::parse;
use crate::text::{Location, SourceFile, SourceId, Sources, Span, Spanned};
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
    load_with(inputs, from, &Overlay::default())
}

/// Like [`load`], with some texts in the place of files.
///
/// # Errors
/// When a spec file cannot be read.
pub fn load_with(inputs: &[Input], from: &Path, overlay: &Overlay) -> Result<Load, ProjectError> {
    let mut load = load_specs_with(inputs, from, overlay)?;
    load_scripts(&mut load, from);
    Ok(load)
}

/// Reads every spec file of `inputs`, without the scripts; names in messages are relative to the folder `from`.
///
/// # Errors
/// When a file cannot be read.
pub fn load_specs(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    load_specs_with(inputs, from, &Overlay::default())
}

fn load_specs_with(inputs: &[Input], from: &Path, overlay: &Overlay) -> Result<Load, ProjectError> {
    let mut load = Load { root: inputs.iter().find_map(|input| input.root.clone()), ..Load::default() };
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
        load.findings.extend(file.findings);
    }
    tell_duplicates(&mut load);
    let whole: HashSet<&PathBuf> =
        inputs.iter().filter(|input| input.whole_project).filter_map(|input| input.root.as_ref()).collect();
    tell_unknown_worker_tools(&mut load, &whole);
    narrow(&mut load, inputs, &around)?;
    load.sort_findings();
    Ok(load)
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

    /// Adds what `targets` make of the valid tools.
    pub fn check_targets(&mut self, targets: &[Target]) {
        for &target in targets {
            self.findings.extend(check_tools(
                target,
                self.tools.iter().map(|loaded| &loaded.tool).filter(|tool| tool.valid),
            ));
        }
        if !targets.is_empty() {
            self.sort_findings();
        }
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
    findings: Vec<Diagnostic>,
}

/// Reads the file that will be the source `id`.
fn load_file(path: &Path, id: SourceId, from: &Path, overlay: &Overlay) -> Result<LoadedFile, ProjectError> {
    let text = match overlay.get(path) {
        Some(text) => SourceText::of(path, text),
        None => read_source(path)?,
    };
    let (is_text, is_faithful) = (text.is_text(), text.is_faithful());
    let (source, damage) = text.into_source(id, from);
    let mut load =
        LoadedFile { source, is_faithful, tools: Vec::new(), workers: Vec::new(), findings: Vec::new() };
    if is_text {
        load_text(&mut load, id, damage.as_ref());
    }
    load.findings.extend(damage);
    Ok(load)
}

/// `damage`: the finding of bytes that were replaced.
fn load_text(load: &mut LoadedFile, id: SourceId, damage: Option<&Diagnostic>) {
    let file = &load.source;
    let (tree, findings) = parse(id, &file.text);
    load.findings.extend(findings);
    let (definitions, findings) = lower(id, &file.text, &tree, FileKind::of_name(&file.name));
    load.findings.extend(findings);
    let is_damaged =
        |span: Span| damage.is_some() && span.of(&file.text).contains(char::REPLACEMENT_CHARACTER);
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

/// The first definition of each name in each project.
type Names = HashMap<(Option<PathBuf>, String), Location>;

/// Names are unique in a project, for tools and for workers.
fn tell_duplicates(load: &mut Load) {
    let mut first = Names::new();
    for LoadedTool { tool, .. } in &mut load.tools {
        let here = Location { source: tool.source, span: tool.name.span };
        let root = load.roots.get(&tool.source);
        if let Some(finding) = duplicate(&mut first, root, &tool.name, here, "tools") {
            tool.valid = false;
            load.findings.push(finding);
        }
    }
    let mut first = Names::new();
    for worker in &mut load.workers {
        let Some(source) = worker.source else { continue };
        let here = Location { source, span: worker.name.span };
        let root = load.roots.get(&source);
        if let Some(finding) = duplicate(&mut first, root, &worker.name, here, "workers") {
            worker.valid = false;
            load.findings.push(finding);
        }
    }
}

fn duplicate(
    first: &mut Names,
    root: Option<&PathBuf>,
    name: &Spanned<String>,
    here: Location,
    what: &str,
) -> Option<Diagnostic> {
    let key = (root.cloned(), name.value.clone());
    let Some(&other) = first.get(&key) else {
        first.insert(key, here);
        return None;
    };
    let mut finding =
        Diagnostic::new(&rules::DUPLICATE_NAME, here, format!("two {what} called `{}`", name.value));
    finding
        .labels
        .push(crate::diagnostic::Label { location: other, message: String::from("first defined here") });
    Some(finding)
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
                let message = format!(
                    "worker `{}` names the {what} `{}`, and the project has no {what} of that name",
                    worker.name.value, name.value
                );
                let mut finding = Diagnostic::new(&rules::UNKNOWN_WORKER_TOOL, location, message);
                let other = if what == "tool" { &exit } else { &normal };
                if other.contains(&name.value.as_str()) {
                    let list = if what == "tool" { ":exit-tools" } else { ":tools" };
                    finding = finding.labelled(format!("it stands in `{list}`"));
                } else if let Some(near) = nearest(&name.value, known.iter().copied()) {
                    finding = finding.labelled(format!("did you mean \"{near}\"?")).maybe_fixed_by(
                        format!("write \"{near}\""),
                        name.span,
                        format!("\"{near}\""),
                    );
                }
                findings.push(finding);
                worker.valid = false;
            }
        }
    }
    load.findings.append(&mut findings);
}
