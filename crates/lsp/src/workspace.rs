//! The projects of a client.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_ide::{Language, Project};
use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::schema::Target;
use deftool_lang::spec::FileKind;
use deftool_project::{LoadOptions, find_root};

/// A project with the findings that the client has.
pub(crate) struct OpenProject {
    pub(crate) project: Project,
    /// What was last sent for each file.
    sent: HashMap<PathBuf, Sent>,
    /// Whether the last load was sent.
    is_sent: bool,
    /// The error of the last load, if it failed, and the last error that was sent.
    error: Option<String>,
    sent_error: Option<String>,
}

/// The findings of a file that were sent.
#[derive(Default, PartialEq, Eq)]
struct Sent {
    /// The text that they refer to: a change of the text may move them.
    text: Option<Arc<str>>,
    /// A hash of the findings.
    findings: u64,
}

/// Files with changed findings. Files without findings have an empty list.
pub(crate) type ChangedFindings = Vec<(PathBuf, Vec<Diagnostic>)>;

/// All projects of a client.
pub(crate) struct Workspace {
    projects: Vec<OpenProject>,
    /// The APIs to check tools against.
    pub(crate) targets: Vec<Target>,
    /// Called in another thread when files of the project in this folder changed on disk.
    on_disk_change: Arc<dyn Fn(&Path) + Send + Sync>,
}

impl Workspace {
    pub(crate) fn new(on_disk_change: impl Fn(&Path) + Send + Sync + 'static) -> Self {
        Self { projects: Vec::new(), targets: Vec::new(), on_disk_change: Arc::new(on_disk_change) }
    }

    /// Opens the project that contains `folder`, if there is one.
    pub(crate) fn open_folder(&mut self, folder: &Path) {
        if let Ok(root) = find_root(folder) {
            self.open_root(&root);
        }
    }

    fn open_root(&mut self, root: &Path) -> usize {
        let is_same =
            |open: &OpenProject| open.project.single_file().is_none() && open.project.root() == root;
        if let Some(index) = self.projects.iter().position(is_same) {
            return index;
        }
        let (on_disk_change, folder) = (Arc::clone(&self.on_disk_change), root.to_owned());
        let project = Project::open(root, self.options(), move || on_disk_change(&folder));
        self.add(project)
    }

    fn add(&mut self, project: Project) -> usize {
        self.projects.push(OpenProject {
            project,
            sent: HashMap::new(),
            is_sent: false,
            error: None,
            sent_error: None,
        });
        self.projects.len() - 1
    }

    /// Returns the index of the project that consists of this file only.
    fn single(&self, path: &Path) -> Option<usize> {
        self.projects.iter().position(|open| open.project.single_file() == Some(path))
    }

    fn options(&self) -> LoadOptions {
        LoadOptions { targets: self.targets.clone(), raises_denied: true, ..LoadOptions::default() }
    }

    /// Returns the project of a file, and opens it if necessary. Files outside of the folders `specs` and `scripts` of a
    /// project are projects of their own if they may contain specs, and so are Org files.
    pub(crate) fn project_of(&mut self, path: &Path) -> Option<&mut OpenProject> {
        let language = Language::of(path)?;
        let root = path.parent().and_then(|folder| find_root(folder).ok());
        // A project does not include Org files.
        let is_org = FileKind::of_name(&path.to_string_lossy()) == FileKind::Org;
        let index = match root {
            Some(root)
                if language == Language::Script || (!is_org && path.starts_with(root.join("specs"))) =>
            {
                self.open_root(&root)
            }
            _ if language == Language::Script => return None,
            _ => match self.single(path) {
                Some(index) => index,
                None => self.add(Project::of_file(path, self.options())),
            },
        };
        self.projects.get_mut(index)
    }

    /// Returns the project of a file after loading all changes.
    pub(crate) fn fresh(&mut self, path: &Path) -> Option<&Project> {
        let open = self.project_of(path)?;
        open.refresh();
        Some(&open.project)
    }

    /// Returns the project of a file as it was last loaded. Loads it if it never was.
    pub(crate) fn loaded(&mut self, path: &Path) -> Option<&Project> {
        let open = self.project_of(path)?;
        if !open.project.is_loaded() {
            open.refresh();
        }
        Some(&open.project)
    }

    /// Opens a buffer. Its findings are sent even if there are none.
    pub(crate) fn open(&mut self, path: &Path, text: Arc<str>) {
        if let Some(open) = self.project_of(path) {
            open.project.set_text(path, Some(text));
            open.sent.insert(path.to_owned(), Sent::default());
        }
    }

    /// Changes the text of a buffer.
    pub(crate) fn change(&mut self, path: &Path, text: Arc<str>) {
        if let Some(open) = self.project_of(path) {
            open.project.set_text(path, Some(text));
        }
    }

    /// Closes a buffer. Returns whether the findings of the file must be cleared, because it belongs to no project.
    pub(crate) fn close(&mut self, path: &Path) -> bool {
        if let Some(index) = self.single(path) {
            self.projects.remove(index);
            return true;
        }
        if let Some(open) = self.project_of(path) {
            open.project.set_text(path, None);
        }
        false
    }

    /// Reads the files of the project in the folder `root` again.
    pub(crate) fn rescan(&mut self, root: &Path) {
        for open in self.projects.iter_mut().filter(|open| open.project.root() == root) {
            open.project.rescan();
        }
    }

    /// Loads all changes. Returns all projects.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &Project> {
        self.projects.iter_mut().for_each(OpenProject::refresh);
        self.projects.iter().map(|open| &open.project)
    }

    /// Loads all changes. Returns the findings that the client does not have yet, and errors.
    pub(crate) fn changed_findings(
        &mut self,
    ) -> impl Iterator<Item = (&Project, ChangedFindings, Option<String>)> {
        self.projects.iter_mut().filter(|open| !open.is_sent || open.project.is_stale()).map(|open| {
            open.refresh();
            let (changed, error) = (open.changed_findings(), open.new_error());
            (&open.project, changed, error)
        })
    }
}

impl OpenProject {
    /// Loads all changes.
    fn refresh(&mut self) {
        if self.project.is_stale() {
            self.is_sent = false;
            self.error = self.project.refresh().err().map(|error| error.to_string());
        }
    }

    /// Returns the error of the last load, once.
    fn new_error(&mut self) -> Option<String> {
        if self.error == self.sent_error {
            return None;
        }
        self.sent_error.clone_from(&self.error);
        self.error.clone()
    }

    fn changed_findings(&mut self) -> ChangedFindings {
        self.is_sent = true;
        let mut before = std::mem::take(&mut self.sent);
        let mut changed = Vec::new();
        for (source, findings) in self.project.findings() {
            let Some(path) = self.project.path_of(source) else { continue };
            let text = self.project.load().sources.get(source).map(|file| Arc::clone(&file.text));
            let sent = Sent { text, findings: hash_of(findings) };
            if before.remove(&path).as_ref() != Some(&sent) {
                changed.push((path.clone(), findings.to_vec()));
            }
            self.sent.insert(path, sent);
        }
        changed.extend(before.into_keys().map(|path| (path, Vec::new())));
        changed
    }
}

fn hash_of(findings: &[Diagnostic]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for finding in findings {
        (finding.rule.code, finding.primary.span, finding.severity, &finding.message).hash(&mut hasher);
        for label in &finding.labels {
            (label.location, &label.message).hash(&mut hasher);
        }
    }
    hasher.finish()
}
