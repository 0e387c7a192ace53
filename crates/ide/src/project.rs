//! A project that is open in an editor.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::text::{Location, SourceFile, SourceId, Span};
use deftool_project::{
    EditedProject, FoundFiles, Input, Load, LoadOptions, LoadedTool, ProjectError, load_with,
    script_candidates,
};

/// A span in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileSpan {
    /// The path of the file.
    pub path: PathBuf,
    /// The span in the text of the file.
    pub span: Span,
}

/// A project with the texts of an editor in place of files on disk.
///
/// Changes take effect at the next [`refresh`](Self::refresh). All other methods describe the state of the last one.
pub struct Project {
    root: PathBuf,
    files: Files,
    load: Load,
    is_loaded: bool,
    /// The sources of the load by their names, collected on first use.
    by_name: OnceCell<HashMap<String, SourceId>>,
}

enum Files {
    Project(Box<EditedProject>),
    /// One file that belongs to no project.
    Single {
        path: PathBuf,
        options: Box<LoadOptions>,
        is_stale: bool,
    },
}

impl Project {
    /// Opens the project in the folder `root`. `on_disk_change` is called in another thread after files changed on
    /// disk; call [`rescan`](Self::rescan) then.
    pub fn open(root: &Path, options: LoadOptions, on_disk_change: impl Fn() + Send + 'static) -> Self {
        let options = LoadOptions { with_scripts: true, ..options };
        let files = Files::Project(Box::new(EditedProject::open(root, options, on_disk_change)));
        Self::of(root.to_owned(), files)
    }

    /// Opens a spec file that belongs to no project.
    pub fn of_file(path: &Path, options: LoadOptions) -> Self {
        let root = path.parent().unwrap_or(path).to_owned();
        let options = Box::new(options);
        let files = Files::Single { path: path.to_owned(), options, is_stale: true };
        Self::of(root, files)
    }

    fn of(root: PathBuf, files: Files) -> Self {
        Self { root, files, load: Load::default(), is_loaded: false, by_name: OnceCell::new() }
    }

    /// Sets the text of a buffer, or closes the buffer. `path` must start with the root of the project.
    pub fn set_text(&mut self, path: &Path, text: Option<Arc<str>>) {
        match &mut self.files {
            Files::Project(project) => project.set_text(path, text),
            Files::Single { options, is_stale, .. } => {
                *is_stale = true;
                match text {
                    Some(text) => options.overlay.set(path, text),
                    None => options.overlay.remove(path),
                }
            }
        }
    }

    /// Reads the files that changed on disk at the next refresh.
    pub fn rescan(&mut self) {
        match &mut self.files {
            Files::Project(project) => project.rescan(),
            Files::Single { is_stale, .. } => *is_stale = true,
        }
    }

    /// Returns whether anything may have changed since the last refresh.
    pub fn is_stale(&self) -> bool {
        match &self.files {
            Files::Project(project) => project.is_stale(),
            Files::Single { is_stale, .. } => *is_stale,
        }
    }

    /// Loads all changes.
    ///
    /// # Errors
    /// If a folder of the project cannot be read. The state is then unchanged.
    pub fn refresh(&mut self) -> Result<(), ProjectError> {
        self.by_name.take();
        self.load = match &mut self.files {
            Files::Project(project) => project.load()?,
            Files::Single { path, options, is_stale } => {
                *is_stale = false;
                let input = Input { files: vec![path.clone()], ..Input::default() };
                match load_with(&[input], &self.root, options) {
                    Err(ProjectError::Unreadable { source, .. }) if source.kind() == ErrorKind::NotFound => {
                        Load::default()
                    }
                    loaded => loaded?,
                }
            }
        };
        self.is_loaded = true;
        Ok(())
    }

    /// Returns whether a refresh has loaded the project.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// Returns the folder of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a file that belongs to no project, if this is one.
    pub fn single_file(&self) -> Option<&Path> {
        match &self.files {
            Files::Project(_) => None,
            Files::Single { path, .. } => Some(path),
        }
    }

    /// Returns the last load.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Returns the findings, grouped by file. Files without findings are left out.
    pub fn findings(&self) -> impl Iterator<Item = (SourceId, &[Diagnostic])> {
        let groups = self.load.findings.chunk_by(|one, next| one.primary.source == next.primary.source);
        groups.filter_map(|findings| Some((findings.first()?.primary.source, findings)))
    }

    /// Returns the findings of one file.
    pub fn findings_of(&self, path: &Path) -> &[Diagnostic] {
        let mut groups = self.findings();
        let found =
            groups.find(|(source, _)| self.path_of(*source).is_some_and(|of_source| of_source == path));
        found.map_or(&[], |(_, findings)| findings)
    }

    /// Returns the path of a source of the last load.
    pub fn path_of(&self, source: SourceId) -> Option<PathBuf> {
        Some(self.root.join(&self.load.sources.get(source)?.name))
    }

    /// Returns the text of a file: of its buffer, or on disk.
    pub fn text(&self, path: &Path) -> Option<Arc<str>> {
        match &self.files {
            Files::Project(project) => project.text(path),
            Files::Single { options, .. } => {
                let loaded = || self.source_at(path).map(|file| Arc::clone(&file.text));
                options.overlay.get(path).cloned().or_else(loaded)
            }
        }
    }

    /// Returns whether there is a file at `path`, on disk or unsaved.
    pub(crate) fn exists(&self, path: &Path) -> bool {
        match &self.files {
            Files::Project(project) => project.exists(path),
            Files::Single { .. } => self.text(path).is_some(),
        }
    }

    /// Returns the files of the project that have one of these extensions, on disk or unsaved. A single file is in no
    /// project.
    pub(crate) fn find_files(&self, extensions: &[&str]) -> FoundFiles {
        match &self.files {
            Files::Project(project) => project.find_files(extensions),
            Files::Single { .. } => FoundFiles::default(),
        }
    }

    /// Returns the source of the last load at `path`.
    pub(crate) fn source_at(&self, path: &Path) -> Option<&SourceFile> {
        let sources = &self.load.sources;
        let named = || sources.iter().map(|(source, file)| (file.name.clone(), source)).collect();
        let name = path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy();
        sources.get(*self.by_name.get_or_init(named).get(&*name)?)
    }

    /// Returns the path and the span of a location in the last load.
    pub fn at(&self, location: Location) -> Option<FileSpan> {
        Some(FileSpan { path: self.path_of(location.source)?, span: location.span })
    }

    /// Returns the tools that are defined in a spec file.
    pub(crate) fn tools_in(&self, path: &Path) -> impl Iterator<Item = &LoadedTool> {
        let name = path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy();
        self.load.tools.iter().map(AsRef::as_ref).filter(move |loaded| *loaded.file == *name)
    }

    /// Returns the tools called `name`.
    pub(crate) fn tools_called(&self, name: &str) -> impl Iterator<Item = &LoadedTool> {
        self.load.tools.iter().map(AsRef::as_ref).filter(move |loaded| loaded.tool.name.value == name)
    }

    /// Returns the tools whose script may be at `path`.
    pub(crate) fn tools_of_script(&self, path: &Path) -> impl Iterator<Item = &LoadedTool> {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        self.load.tools.iter().map(AsRef::as_ref).filter(move |loaded| {
            // Most tools have neither the name nor a path, which is cheap to see.
            let may_be = loaded.tool.script.is_some() || loaded.tool.name.value == stem;
            may_be && self.script_of(loaded).is_some_and(|script| script == path)
        })
    }

    /// Returns the scripts in `scripts/` itself at the last load.
    pub(crate) fn scripts(&self) -> &[PathBuf] {
        match &self.files {
            Files::Project(project) => project.scripts(),
            Files::Single { .. } => &[],
        }
    }

    /// Returns the path of a tool's script, if it exists.
    pub(crate) fn script_of(&self, loaded: &LoadedTool) -> Option<PathBuf> {
        if loaded.tool.kind == deftool_lang::spec::ToolKind::Exit
            || self.load.root_of(loaded.tool.source).is_none()
        {
            return None;
        }
        script_candidates(&self.root, &loaded.tool).into_iter().find(|path| self.exists(path))
    }
}

/// The kinds of files that have features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// A file that may contain tool forms.
    Spec,
    /// A script or a module.
    Script,
}

impl Language {
    /// Returns the language of a file, by its extension.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "eld" | "el" | "lisp" | "sexp" | "org" => Some(Self::Spec),
            "lua" | "luau" => Some(Self::Script),
            _ => None,
        }
    }
}
