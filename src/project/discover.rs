//! Which files a command is about.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Component, Path, PathBuf};

/// The world is not as a command needs it. Nothing was attempted.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// No folder above holds `specs/`.
    #[error("no project here: neither {} nor a folder above it holds `specs/`; make one with `deftool init`", from.display())]
    NoProject {
        /// Where the search began.
        from: PathBuf,
    },
    /// A file or folder that the user named does not exist or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The user named a script that no tool of its project has.
    #[error("no tool of the project uses {}; a script belongs to the tool of its name, or to the one whose `:script` names it", path.display())]
    UnusedScript {
        /// Which.
        path: PathBuf,
    },
}

/// What one command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The project the files belong to, where there is one: the folder that holds `specs/`.
    pub root: Option<PathBuf>,
    /// The spec files, sorted.
    pub files: Vec<PathBuf>,
    /// Whether `files` are all of the project.
    pub whole_project: bool,
    /// Scripts that the user named: of the project's other spec files only the tools that use these count.
    pub scripts: Vec<PathBuf>,
}

impl Input {
    /// One spec file, on disk or not, of the project whose `specs/` it lies beneath.
    pub fn of_file(path: PathBuf) -> Self {
        let root = project_of(&path);
        Self { root, files: vec![path], whole_project: false, scripts: Vec::new() }
    }
}

/// Names of spec files end in one of these.
const EXTENSIONS: [&str; 4] = ["eld", "el", "lisp", "sexp"];

/// Names of scripts end in one of these.
const SCRIPT_EXTENSIONS: [&str; 2] = ["lua", "luau"];

/// Folders nested deeper than this are not looked into.
const MAX_DEPTH: usize = 32;

/// The nearest folder at or above `from` that holds `specs/`.
///
/// # Errors
/// When there is none.
pub fn find_root(from: &Path) -> Result<PathBuf, ProjectError> {
    let absolute = clean(from);
    absolute
        .ancestors()
        .find(|folder| folder.join("specs").is_dir())
        .map(Path::to_owned)
        .ok_or_else(|| ProjectError::NoProject { from: absolute.clone() })
}

/// What `paths` mean, seen from the folder `from`: none is the project around it, a folder that holds `specs/` is
/// that project, another folder is all spec files in it, a file is itself, and a script the tools that use it.
///
/// # Errors
/// When no path is given and there is no project, or a path does not exist. A file that is reached twice is read once.
pub fn resolve_inputs(paths: &[PathBuf], from: &Path) -> Result<Vec<Input>, ProjectError> {
    if paths.is_empty() {
        let root = find_root(from)?;
        let files = spec_files(&root.join("specs"), &mut HashSet::new())?;
        return Ok(vec![Input { root: Some(root), files, whole_project: true, scripts: Vec::new() }]);
    }
    let mut inputs: Vec<Input> = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        let path = from.join(path);
        let metadata = std::fs::metadata(&path)
            .map_err(|source| ProjectError::Unreadable { path: path.clone(), source })?;
        // The folder of specs is the project, too.
        let parent = clean(&path).parent().filter(|_| clean(&path).ends_with("specs")).map(Path::to_owned);
        let root = if path.join("specs").is_dir() { Some(clean(&path)) } else { parent };
        if let Some(root) = root.filter(|_| metadata.is_dir()) {
            let files = spec_files(&root.join("specs"), &mut seen)?;
            let root = Some(root);
            inputs.push(Input { root, files, whole_project: true, scripts: Vec::new() });
            continue;
        }
        if metadata.is_file() && is_script(&path) {
            add(&mut inputs, Some(find_root(&path)?), &[], &[path]);
            continue;
        }
        // A file inside a project's specs is checked with that project's scripts.
        let root = project_of(&path);
        let files = if metadata.is_dir() {
            spec_files(&path, &mut seen)?
        } else if seen.insert(FileId::of(&path, &metadata)) {
            vec![path]
        } else {
            Vec::new()
        };
        add(&mut inputs, root, &files, &[]);
    }
    // A project that is read whole needs no script named.
    let whole: HashSet<_> =
        inputs.iter().filter(|input| input.whole_project).map(|input| input.root.clone()).collect();
    for input in inputs.iter_mut().filter(|input| whole.contains(&input.root)) {
        input.scripts.clear();
    }
    Ok(inputs)
}

/// The project that a file or folder lies in the specs of.
fn project_of(path: &Path) -> Option<PathBuf> {
    find_root(path).ok().filter(|root| clean(path).starts_with(root.join("specs")))
}

fn add(inputs: &mut Vec<Input>, root: Option<PathBuf>, files: &[PathBuf], scripts: &[PathBuf]) {
    match inputs.iter_mut().find(|input| !input.whole_project && input.root == root) {
        Some(input) => {
            input.files.extend_from_slice(files);
            input.scripts.extend_from_slice(scripts);
        }
        None => {
            let (files, scripts) = (files.to_vec(), scripts.to_vec());
            inputs.push(Input { root, files, whole_project: false, scripts });
        }
    }
}

impl Input {
    /// The project's other spec files. Some of what they say is about the whole project.
    ///
    /// # Errors
    /// When there are some and a folder cannot be read.
    pub(super) fn around(&self) -> Result<Vec<PathBuf>, ProjectError> {
        let Some(root) = self.root.as_ref().filter(|_| !self.whole_project) else {
            return Ok(Vec::new());
        };
        let named = self.files.iter().filter_map(|file| FileId::at(file));
        spec_files(&root.join("specs"), &mut named.collect())
    }
}

/// What two names of one file share.
#[derive(PartialEq, Eq, Hash)]
struct FileId(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl FileId {
    #[cfg(unix)]
    fn of(_: &Path, metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;

        Self((metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    fn of(path: &Path, _: &Metadata) -> Self {
        Self(identity(path))
    }

    fn at(path: &Path) -> Option<Self> {
        Some(Self::of(path, &std::fs::metadata(path).ok()?))
    }
}

/// A path that two names of one file share.
pub(super) fn identity(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// An absolute path without `.` and `..`, so that its ancestors are the folders it lies in.
pub(super) fn clean(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut clean = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::Normal(_) => {
                clean.push(component);
            }
        }
    }
    clean
}

/// Every spec file beneath `folder`, sorted by path, and each once, by whatever name or link it is reached: those in `seen`
/// are left out, and those that are found are put there. Hidden entries are left out.
fn spec_files(folder: &Path, seen: &mut HashSet<FileId>) -> Result<Vec<PathBuf>, ProjectError> {
    let unreadable = |path: &Path, source| ProjectError::Unreadable { path: path.to_owned(), source };
    let mut files = Vec::new();
    let metadata = std::fs::metadata(folder).map_err(|source| unreadable(folder, source))?;
    // A folder may be given twice; within one walk it is entered once.
    let mut entered = HashSet::from([FileId::of(folder, &metadata)]);
    let mut pending = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = pending.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|source| unreadable(&folder, source))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if is_hidden(&path) {
                continue;
            }
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            if metadata.is_dir() {
                if depth < MAX_DEPTH && entered.insert(FileId::of(&path, &metadata)) {
                    pending.push((path, depth + 1));
                }
            } else if metadata.is_file() && is_spec(&path) {
                let id = FileId::of(&path, &metadata);
                files.push((path, id));
            }
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(files.into_iter().filter_map(|(path, id)| seen.insert(id).then_some(path)).collect())
}

/// The scripts beside `specs/`, used or not, without those in folders below and hidden ones: an editor's locks.
pub(super) fn scripts_in(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("scripts"));
    let files = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let path = entry.path();
        let is_candidate = is_script(&path) && !is_hidden(&path);
        let kind = is_candidate.then(|| entry.file_type().ok())??;
        (kind.is_file() || (kind.is_symlink() && path.is_file())).then_some(path)
    });
    files.collect()
}

/// Whether a script holds tests by its name: `NAME_test.lua`.
pub fn is_test_script(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    is_script(path) && stem.is_some_and(|stem| stem.ends_with("_test"))
}

/// The files of tests in `scripts/` and in the folders below, sorted.
pub(super) fn tests_in(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entered = HashSet::new();
    let mut pending = vec![(root.join("scripts"), 0)];
    while let Some((folder, depth)) = pending.pop() {
        let is_new = FileId::at(&folder).is_some_and(|id| entered.insert(id));
        let Some(entries) = is_new.then(|| std::fs::read_dir(&folder).ok()).flatten() else { continue };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| !is_hidden(path)) {
            if is_test_script(&path) && path.is_file() {
                found.push(path);
            } else if depth < MAX_DEPTH && path.is_dir() {
                pending.push((path, depth + 1));
            }
        }
    }
    found.sort_unstable();
    found
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn is_spec(path: &Path) -> bool {
    ends_in(path, &EXTENSIONS)
}

pub(super) fn is_script(path: &Path) -> bool {
    ends_in(path, &SCRIPT_EXTENSIONS)
}

fn ends_in(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extensions.contains(&extension))
}
