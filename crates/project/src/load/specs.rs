//! Spec files: reads, parses and lowers them, and collects the definitions of all files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::rules::INVALID_PATTERN;
use deftool_lang::schema::{check_list, check_tool, list_places};
use deftool_lang::spec::rules::{contains_lone_backslash, lone_backslashes};
use deftool_lang::spec::{FileKind, Tool, ToolForms, ToolSelection, WorkerSpec, Wrapper, lower_selected};
use deftool_lang::syntax::parse;
use deftool_lang::syntax::rules::{STRAY_CLOSER, UNCLOSED};
use deftool_lang::text::{Location, SourceFile, SourceId, Sources, Span, one_line};
use deftool_process::files::BYTE_ORDER_MARK;

use super::cache::{Cache, CachedFile};
use super::directives::read_directives;
use super::discover::resolve_inputs;
use super::levels::Levels;
use super::model::SpecFile;
use super::names;
use super::read::{Known, MAX_BYTES, SourceText, read_source};
use super::snapshot::Snapshot;
use super::wrappers::report_wrappers;
use crate::model::{Input, Load, LoadedTool, OfferedTools, OutsideLink, Overlay, ProjectError};
use crate::paths::{display_name, is_code, is_tool_list};
use crate::{parallel, rules};

/// Reads the spec files of all inputs, and the other files of their projects that affect the findings. `whole`: the
/// projects that are read completely.
pub(super) fn read_specs(
    cache: &Cache,
    inputs: &[Input],
    whole: &HashSet<&Path>,
    from: &Path,
) -> Result<(Load, Levels), ProjectError> {
    let mut paths = HashMap::new();
    let mut load = Load { root: inputs.iter().find_map(|input| input.root.clone()), ..Load::default() };
    let mut levels = Levels::default();
    let mut skipped = Vec::new();
    let mut wrappers: Vec<(SourceId, Wrapper)> = Vec::new();
    let mut preset_tools = Vec::new();
    let mut files: Vec<FileToRead> = Vec::new();
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
            let others = other_files(input, &cache.overlay)?.into_iter();
            files.extend(others.map(|(path, reason)| (root.clone(), path, reason)));
        }
    }
    let loaded = read_files(cache, &files, whole, from, &mut load.tool_forms);
    for ((root, path, reason), file) in files.into_iter().zip(loaded) {
        // In a load that is not repeated, this is the only reference.
        let file = Arc::unwrap_or_clone(file?);
        let source = load.add_source(file.source, root.as_ref());
        levels.settings.extend(file.levels.settings);
        if reason != Reason::Checked {
            levels.context_files.insert(source, Vec::new());
        }
        if reason == Reason::Settings {
            continue;
        }
        levels.allows.extend(file.levels.allows);
        load.checked.push(source);
        load.lists.extend(file.is_list.then_some(source));
        paths.extend(file.is_lossless.then_some((source, path)));
        load.tools.extend(file.tools);
        load.workers.extend(file.workers);
        load.mcp_servers.extend(file.mcp_servers);
        load.dialects.extend(file.dialects);
        if let Some(root) = &root {
            skipped.extend(file.skipped.into_iter().map(|(kind, name)| (Arc::clone(root), kind, name)));
        }
        load.findings.extend(file.findings);
        wrappers.extend(file.wrappers.into_iter().map(|wrapper| (source, wrapper)));
        preset_tools.extend(file.preset_tools.into_iter().map(|name| (source, name)));
    }
    for input in inputs {
        for OutsideLink { path, why } in &input.outside {
            let file = SourceText::empty(path).into_source(load.sources.id_ahead(0), from).0;
            let root = input.root.as_deref().and_then(|root| roots.iter().find(|known| ***known == *root));
            let source = load.add_source(file, root);
            load.checked.push(source);
            load.findings.push(unreadable(source, &display_name(path, from), why));
        }
    }
    inputs.iter().flat_map(|input| &input.offers).for_each(|offer| add_offer(&mut load, offer));
    load.files = Arc::new(paths);
    report_wrappers(&mut load, wrappers);
    names::report_duplicates(&mut load);
    names::report_unknown_worker_tools(&mut load, &skipped, whole);
    let mut findings = names::near_names(&load);
    findings.extend(rules::unknown_preset_tool::check(&load, &preset_tools));
    findings.extend(names::unknown_targets(&load));
    findings.extend(rules::long_result::check(&load, whole));
    load.findings.append(&mut findings);
    load.sort_findings();
    Ok((load, levels))
}

/// Adds a list of tools that is not a file.
fn add_offer(load: &mut Load, offer: &OfferedTools) {
    let OfferedTools { server, text, problem } = offer;
    let id = load.sources.id_ahead(0);
    let source =
        SourceFile::new(format!("MCP server {server}"), text.as_str()).with_places(list_places(text));
    let mut file = SpecFile::empty(source, id);
    load_list(&mut file, id);
    let start = Location { source: id, span: Span::default() };
    file.findings.extend(problem.iter().map(|problem| rules::mcp_tool::finding(start, server, problem)));
    load.add_source(file.source, None);
    load.checked.push(id);
    load.lists.insert(id);
    load.tools.extend(file.tools);
    load.findings.extend(file.findings);
}

/// A spec file with its project.
type FileToRead = (Option<Arc<Path>>, PathBuf, Reason);

/// Reads the files, in order. Spec files are read before Emacs Lisp, because the heads of tool forms are declared in
/// them. These heads are added to `all_forms`.
fn read_files(
    cache: &Cache,
    files: &[FileToRead],
    whole: &HashSet<&Path>,
    from: &Path,
    all_forms: &mut ToolForms,
) -> Vec<Result<Arc<SpecFile>, ProjectError>> {
    let mut forms: HashMap<Option<Arc<Path>>, ToolForms> = HashMap::new();
    let none = ToolForms::default();
    let read = |of_code: bool, forms: &HashMap<Option<Arc<Path>>, ToolForms>| {
        parallel::map(files, |index, (root, path, _)| {
            // The specs of a whole project were found by a scan.
            let is_found = root.as_deref().is_some_and(|root| whole.contains(root));
            let known = if is_found { Known::File } else { Known::Nothing };
            let id = Sources::new().id_ahead(index);
            let read = || read_spec(cache, (path, known), id, from, forms.get(root).unwrap_or(&none));
            (is_code(path) == of_code).then(read)
        })
    };
    let mut loaded = read(false, &forms);
    for ((root, ..), file) in files.iter().zip(&loaded) {
        let settings = file.iter().flatten().flat_map(|file| &file.levels.settings);
        for settings in settings.filter(|settings| !settings.tool_forms.is_empty()) {
            forms.entry(root.clone()).or_default().add(settings);
            all_forms.add(settings);
        }
    }
    if files.iter().any(|(_, path, _)| is_code(path)) {
        for (file, code) in loaded.iter_mut().zip(read(true, &forms)) {
            *file = file.take().or(code);
        }
    }
    loaded.into_iter().flatten().collect()
}

/// Reads the heads of tool forms that the project of an input declares, for its files of Emacs Lisp. Unreadable files are
/// skipped.
pub fn read_tool_forms(input: &Input) -> ToolForms {
    let mut forms = ToolForms::default();
    if !input.files.iter().any(|path| is_code(path)) {
        return forms;
    }
    let others = input.other_specs(&mut Snapshot::default()).unwrap_or_default();
    let files: Vec<&PathBuf> = input.files.iter().chain(&others).filter(|path| !is_code(path)).collect();
    let settings = parallel::map(&files, |_, path| {
        let text = read_source(path).ok().filter(|text| text.contains("defproject"))?;
        let selection = (&ToolSelection::none(), &ToolForms::default());
        Some(SpecFile::of(text, Sources::new().id_ahead(0), path, selection).levels.settings)
    });
    settings.iter().flatten().flatten().for_each(|settings| forms.add(settings));
    forms
}

/// Reads the workers of the project at `root` without its tools. Their tools are not checked.
///
/// # Errors
/// If the specs cannot be listed. Unreadable files are skipped.
pub(crate) fn read_workers(root: &Path, from: &Path) -> Result<Vec<WorkerSpec>, ProjectError> {
    let inputs = resolve_inputs(&[], root)?;
    let files: Vec<&PathBuf> = inputs.iter().flat_map(|input| &input.files).collect();
    let workers = parallel::map(&files, |_, path| {
        let text = read_source(path).ok().filter(|text| text.contains("defworker"))?;
        let id = Sources::new().id_ahead(0);
        let selection = (&ToolSelection::none(), &ToolForms::default());
        Some(SpecFile::of(text, id, from, selection).workers)
    });
    Ok(workers.into_iter().flatten().flatten().collect())
}

/// The reason for reading a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The file is one of the inputs.
    Checked,
    /// A tool in the file may use one of the scripts that the user named.
    UsesScript,
    /// The file may contain a `defproject` form, which applies to the whole project.
    Settings,
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
    let settings = parallel::map(&files, |_, path| match overlay.get(path) {
        Some(text) => text.contains("defproject"),
        None => read_source(path).is_ok_and(|text| text.contains("defproject")),
    });
    let settings = files.into_iter().zip(settings).filter(|(_, has_settings)| *has_settings);
    Ok(settings.map(|(path, _)| (path, Reason::Settings)).collect())
}

/// Reads the file and assigns it the source id `id`. In Emacs Lisp, the heads in `forms` are those of tool forms.
fn read_spec(
    cache: &Cache,
    (path, known): (&Path, Known),
    id: SourceId,
    from: &Path,
    forms: &ToolForms,
) -> Result<Arc<SpecFile>, ProjectError> {
    let make = |bytes| {
        let text = SourceText::of_bytes(path.to_owned(), bytes);
        if cache.reads_lists && is_tool_list(path) {
            return SpecFile::of_list(text, id, from);
        }
        SpecFile::of(text, id, from, (&cache.selection, forms))
    };
    let fits = |file: &SpecFile| file.id == id && file.forms == *forms;
    match cache.read(&cache.specs, (path, known), fits, make) {
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

impl CachedFile for SpecFile {
    const MAX_READ: u64 = MAX_BYTES + 1;
    const IS_SHARED: bool = false;

    fn matches_bytes(&self, bytes: &[u8]) -> bool {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        self.is_lossless && self.source.text.as_bytes() == bytes
    }
}

impl SpecFile {
    fn empty(source: SourceFile, id: SourceId) -> Self {
        Self {
            id,
            source,
            is_lossless: false,
            is_list: false,
            tools: Vec::new(),
            workers: Vec::new(),
            mcp_servers: Vec::new(),
            dialects: Vec::new(),
            wrappers: Vec::new(),
            preset_tools: Vec::new(),
            forms: ToolForms::default(),
            skipped: Vec::new(),
            findings: Vec::new(),
            levels: Levels::default(),
        }
    }

    /// Reads a list of tools of another program.
    fn of_list(text: SourceText, id: SourceId, from: &Path) -> Self {
        let (is_text, is_lossless) = (text.is_text(), text.is_lossless());
        let (source, damage) = text.into_source(id, from);
        let mut file = Self { is_lossless, ..Self::empty(source, id) };
        if is_text {
            load_list(&mut file, id);
        }
        file.findings.extend(damage);
        file
    }

    fn of(
        text: SourceText,
        id: SourceId,
        from: &Path,
        (selection, forms): (&ToolSelection, &ToolForms),
    ) -> Self {
        let (is_text, is_lossless) = (text.is_text(), text.is_lossless());
        let (source, damage) = text.into_source(id, from);
        let mut file = Self { is_lossless, forms: forms.clone(), ..Self::empty(source, id) };
        if is_text {
            load_text(&mut file, id, damage.as_ref(), selection);
        }
        // Code without tools may have any encoding.
        let is_spec = !FileKind::of_name(&file.source.name).is_code() || !file.tools.is_empty();
        file.findings.extend(damage.filter(|_| is_spec));
        file
    }
}

/// Reads the text as a list of tools of another program.
fn load_list(file: &mut SpecFile, id: SourceId) {
    let (tools, findings) = check_list(id, &file.source.text);
    let name: Arc<str> = Arc::from(file.source.name.as_str());
    let tools = tools.into_iter().map(|tool| Arc::new(LoadedTool::new(Arc::new(tool), Arc::clone(&name))));
    file.tools.extend(tools);
    file.findings.extend(findings);
    file.is_list = true;
}

/// Parses and lowers the text. `damage` is the finding about invalid UTF-8, if any.
fn load_text(load: &mut SpecFile, id: SourceId, damage: Option<&Diagnostic>, selection: &ToolSelection) {
    let file = &load.source;
    let start = Location { source: id, span: Span::default() };
    load.findings.extend(rules::empty_file::check(start, &file.text));
    let kind = FileKind::of_name(&file.name);
    let code = kind.code_of(&file.text);
    let (tree, syntax_findings) = parse(id, &code);
    let (mut definitions, mut findings) = lower_selected(id, &code, &tree, kind, selection, &load.forms);
    let mut directives = read_directives(id, &code, &tree);
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
    load.levels.settings.extend(definitions.settings);
    load.mcp_servers.extend(definitions.mcp_servers);
    load.dialects.extend(definitions.dialects);
    load.skipped = definitions.skipped;
    load.wrappers = definitions.wrappers;
    load.preset_tools = definitions.preset_tools;
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
        load.tools.push(Arc::new(LoadedTool::new(Arc::new(tool), Arc::clone(&name))));
    }
    for finding in &mut load.findings {
        finding.fix.take_if(|fix| !kind.contains_fix(&file.text, &code, fix));
    }
}

/// Returns the finding that the file `name` cannot be read. `source` is its empty placeholder.
fn unreadable(source: SourceId, name: &str, why: &str) -> Diagnostic {
    let start = Location { source, span: Span::default() };
    rules::unreadable::finding(start, &format!("cannot read {name}: {}", one_line(why.to_owned())))
}
