//! Spec files: reads those of a load, and collects their definitions.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::{FileKind, Tool, ToolForms, ToolKind, ToolSelection, WorkerSpec, Wrapper};
use deftool_lang::text::{Location, SourceId, Sources, Span, Spanned, one_line};

use super::cache::Cache;
use super::discover::resolve_inputs;
use super::extent::Extent;
use super::levels::Levels;
use super::model::{Slot, SpecFile};
use super::read::{Known, SourceText, read_source};
use super::snapshot::Snapshot;
use super::spec_file::Reading;
use crate::model::{Input, Load, LoadedTool, OutsideLink, Overlay, ProjectAsk, ProjectError, Scope};
use crate::paths::{display_name, is_code, is_tool_list, normalize};
use crate::{parallel, rules};

/// The spec files of a load.
pub(super) struct Specs {
    /// A load with the sources of the files, without their definitions and findings.
    base: Load,
    /// The files, by the positions of their source ids.
    files: Vec<ListedSpec>,
    /// The findings about links out of the project.
    outside: Vec<Diagnostic>,
}

/// A spec file, as it was listed and read.
struct ListedSpec {
    path: PathBuf,
    reason: Reason,
    file: Arc<SpecFile>,
}

/// The parts of all files that only the rules for several files use.
#[derive(Default)]
pub(super) struct Loose {
    /// The tools that were not selected, with their project.
    pub(super) skipped: Vec<(Arc<Path>, ToolKind, String)>,
    pub(super) wrappers: Vec<(SourceId, Wrapper)>,
    pub(super) preset_tools: Vec<(SourceId, Spanned<String>)>,
    pub(super) long_results: Vec<Arc<Tool>>,
}

impl Specs {
    /// Reads the spec files of all inputs, and the other files of their projects that affect the findings.
    pub(super) fn read(
        cache: &Cache,
        inputs: &[Input],
        extent: &Extent<'_>,
        from: &Path,
    ) -> Result<Self, ProjectError> {
        let mut base = Load { root: inputs.iter().find_map(|input| input.root.clone()), ..Load::default() };
        let mut listed: Vec<FileToRead> = Vec::new();
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
            let mut files: Vec<_> = input.files.iter().map(|path| (path.clone(), Reason::Checked)).collect();
            let is_in =
                |roots: &HashSet<&Path>| input.root.as_deref().is_some_and(|root| roots.contains(root));
            if !is_in(&extent.whole) {
                files.extend(other_files(input, extent, &cache.overlay)?);
                if is_in(&extent.known) {
                    // Of two tools with the same name, the first one in the order of the project is used.
                    files.sort_by_cached_key(|(path, _)| normalize(path));
                }
            }
            listed.extend(files.into_iter().map(|(path, reason)| (root.clone(), path, reason)));
        }
        let read = read_files(cache, &listed, extent, from, &mut base.tool_forms);
        let mut files = Vec::with_capacity(listed.len());
        let mut paths = HashMap::new();
        for ((root, path, reason), file) in listed.into_iter().zip(read) {
            let file = file?;
            let source = base.add_source(file.source.clone(), root.as_ref());
            if reason != Reason::Settings {
                base.checked.push(source);
                base.lists.extend(file.is_list.then_some(source));
                paths.extend(file.is_lossless.then(|| (source, path.clone())));
            }
            files.push(ListedSpec { path, reason, file });
        }
        for offer in inputs.iter().flat_map(|input| &input.offers) {
            let file = SpecFile::of_offer(offer, base.sources.id_ahead(0));
            let source = base.add_source(file.source.clone(), None);
            base.checked.push(source);
            base.lists.insert(source);
            files.push(ListedSpec { path: PathBuf::new(), reason: Reason::Checked, file: Arc::new(file) });
        }
        let mut outside = Vec::new();
        for input in inputs {
            for OutsideLink { path, why } in &input.outside {
                let file = SourceText::empty(path).into_source(base.sources.id_ahead(0), from).0;
                let root =
                    input.root.as_deref().and_then(|root| roots.iter().find(|known| ***known == *root));
                let source = base.add_source(file, root);
                base.checked.push(source);
                outside.push(unreadable(source, &display_name(path, from), why));
            }
        }
        base.files = Arc::new(paths);
        Ok(Self { base, files, outside })
    }

    /// Returns the source ids of the spec files.
    pub(super) fn ids(&self) -> impl Iterator<Item = SourceId> {
        self.files.iter().map(|listed| listed.file.id)
    }

    /// Returns the paths of the spec files with their source ids.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&Path, SourceId)> {
        self.files.iter().map(|listed| (&*listed.path, listed.file.id))
    }

    /// Returns the file of a source.
    pub(super) fn file(&self, source: SourceId) -> Option<&Arc<SpecFile>> {
        self.files.get(source.index()).map(|listed| &listed.file)
    }

    /// Returns the tools that a file adds to the load, as the file alone defines them.
    pub(super) fn tools_of(&self, source: SourceId) -> &[Arc<LoadedTool>] {
        let listed = self.files.get(source.index()).filter(|listed| listed.reason != Reason::Settings);
        listed.map_or(&[], |listed| &listed.file.tools)
    }

    /// Returns the tool at a place, as its file alone defines it.
    pub(super) fn tool(&self, slot: Slot) -> Option<&Arc<LoadedTool>> {
        self.tools_of(slot.source).get(slot.index)
    }

    /// Returns whether a file is read only because other files of its project are checked.
    pub(super) fn is_context(&self, source: SourceId) -> bool {
        self.files.get(source.index()).is_some_and(|listed| listed.reason == Reason::Context)
    }

    /// Returns the project folder of a file.
    pub(super) fn root_of(&self, source: SourceId) -> Option<&Path> {
        self.base.root_of(source)
    }

    /// Returns the scope of the names in a file.
    pub(super) fn scope_of(&self, source: SourceId) -> Scope {
        self.base.scope_of(source)
    }

    /// Whether a file may contain tools among other code.
    pub(super) fn is_code(&self, source: SourceId) -> bool {
        self.file(source).is_some_and(|file| FileKind::of_name(&file.source.name).is_code())
    }

    /// Reads a file of a single project again. Returns `None` if other files depend on more than its tools, or if it cannot
    /// be read.
    pub(super) fn read_again(&self, cache: &Cache, source: SourceId, from: &Path) -> Option<Arc<SpecFile>> {
        let ListedSpec { path, file: before, .. } = self.files.get(source.index())?;
        let now =
            read_spec(cache, (path.as_path(), Known::File), source, from, &self.base.tool_forms).ok()?;
        let declares = |file: &SpecFile| {
            file.parts.levels.settings.iter().any(|settings| !settings.tool_forms.is_empty())
        };
        (!declares(&now) && !declares(before)).then_some(now)
    }

    /// Replaces a file.
    pub(super) fn replace(&mut self, source: SourceId, file: Arc<SpecFile>) {
        let Some(listed) = self.files.get_mut(source.index()) else { return };
        Arc::make_mut(&mut self.base.sources).replace(source, file.source.clone());
        if file.is_lossless != listed.file.is_lossless {
            let paths = Arc::make_mut(&mut self.base.files);
            paths.remove(&source);
            paths.extend(file.is_lossless.then(|| (source, listed.path.clone())));
        }
        listed.file = file;
    }

    /// Returns the load with the definitions and findings of each file alone.
    pub(super) fn assemble(&self, tools: Vec<Arc<LoadedTool>>) -> (Load, Levels, Loose) {
        let mut load = Load { tools, findings: self.outside.clone(), ..self.base.clone() };
        let (mut levels, mut loose) = (Levels::default(), Loose::default());
        for ListedSpec { reason, file, .. } in &self.files {
            let SpecFile { id, parts, .. } = &**file;
            levels.settings.extend_from_slice(&parts.levels.settings);
            if *reason != Reason::Checked {
                levels.context_files.insert(*id, Vec::new());
            }
            if *reason == Reason::Settings {
                continue;
            }
            levels.allows.extend_from_slice(&parts.levels.allows);
            load.workers.extend_from_slice(&parts.workers);
            load.mcp_servers.extend_from_slice(&parts.mcp_servers);
            load.dialects.extend_from_slice(&parts.dialects);
            load.project_asks
                .extend(parts.asks.iter().map(|ask| ProjectAsk { ask: ask.clone(), valid: true }));
            load.findings.extend_from_slice(&parts.findings);
            if !parts.skipped.is_empty()
                && let Some(root) = self.base.roots.get(id)
            {
                let skipped = parts.skipped.iter();
                loose.skipped.extend(skipped.map(|(kind, name)| (Arc::clone(root), *kind, name.clone())));
            }
            loose.wrappers.extend(parts.wrappers.iter().map(|wrapper| (*id, wrapper.clone())));
            loose.preset_tools.extend(parts.preset_tools.iter().map(|name| (*id, name.clone())));
            loose.long_results.extend_from_slice(&parts.long_results);
        }
        (load, levels, loose)
    }
}

/// A spec file with its project.
type FileToRead = (Option<Arc<Path>>, PathBuf, Reason);

/// Reads the files, in order. Spec files are read before Emacs Lisp, because the heads of tool forms are declared in
/// them. These heads are added to `all_forms`.
fn read_files(
    cache: &Cache,
    files: &[FileToRead],
    extent: &Extent<'_>,
    from: &Path,
    all_forms: &mut ToolForms,
) -> Vec<Result<Arc<SpecFile>, ProjectError>> {
    let mut forms: HashMap<Option<Arc<Path>>, ToolForms> = HashMap::new();
    let none = ToolForms::default();
    let read = |of_code: bool, forms: &HashMap<Option<Arc<Path>>, ToolForms>| {
        parallel::map(files, |index, (root, path, _)| {
            // The specs of a whole project were found by a scan.
            let is_found = root.as_deref().is_some_and(|root| extent.whole.contains(root));
            let known = if is_found { Known::File } else { Known::Nothing };
            let id = Sources::new().id_ahead(index);
            let read = || read_spec(cache, (path, known), id, from, forms.get(root).unwrap_or(&none));
            (is_code(path) == of_code).then(read)
        })
    };
    let mut loaded = read(false, &forms);
    for ((root, ..), file) in files.iter().zip(&loaded) {
        let settings = file.iter().flatten().flat_map(|file| &file.parts.levels.settings);
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
        let (id, none) = (Sources::new().id_ahead(0), ToolSelection::none());
        Some(SpecFile::of(text, id, path, &Reading::once(&none)).parts.levels.settings)
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
        Some(SpecFile::of(text, id, from, &Reading::once(&ToolSelection::none())).parts.workers)
    });
    Ok(workers.into_iter().flatten().flatten().collect())
}

/// The reason for reading a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The file is one of the inputs.
    Checked,
    /// The file belongs to a project of which other files are checked, which may use its names.
    Context,
    /// The file may contain a `defproject` form, which applies to the whole project.
    Settings,
}

/// Returns the other files of the project that affect the findings. Without them it is unknown which tools there are, so
/// they must be readable; files with only settings are skipped if they cannot be read.
fn other_files(
    input: &Input,
    extent: &Extent<'_>,
    overlay: &Overlay,
) -> Result<Vec<(PathBuf, Reason)>, ProjectError> {
    if input.root.as_deref().is_some_and(|root| extent.known.contains(root)) {
        let others = input.other_specs(&mut Snapshot::default())?;
        return Ok(others.into_iter().map(|path| (path, Reason::Context)).collect());
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
    let make = |bytes, before: Option<&SpecFile>| {
        let text = SourceText::of_bytes(path.to_owned(), bytes);
        if cache.reads_lists && is_tool_list(path) {
            return SpecFile::of_list(text, id, from);
        }
        let is_repeated = !cache.is_single_load();
        let reading = Reading { selection: &cache.selection, forms: Some(forms), before, is_repeated };
        SpecFile::of(text, id, from, &reading)
    };
    let fits = |file: &SpecFile| file.id == id && file.tool_forms == *forms;
    match cache.read(&cache.specs, (path, known), fits, make) {
        Ok(file) => Ok(file),
        // Keep going: the file's tools stay as they were, and the other files are loaded.
        Err(error) if cache.keeps_going => {
            let mut file = SpecFile::empty(SourceText::empty(path).into_source(id, from).0, id);
            file.parts.findings.push(unreadable(id, &file.source.name, &error.to_string()));
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
