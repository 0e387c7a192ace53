//! Which files a command is about.

use std::collections::HashSet;
use std::fs::{DirEntry, Metadata};
use std::path::{Component, Path, PathBuf};

use super::look::{FileLook, Looks};

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

    /// All of the project at `root`; what the files look like goes to `looks`.
    pub(super) fn of_project(root: PathBuf, looks: &mut Looks) -> Result<Self, ProjectError> {
        let files = spec_files(&root.join("specs"), &mut HashSet::new(), looks)?;
        Ok(Self { root: Some(root), files, whole_project: true, scripts: Vec::new() })
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
        return Ok(vec![Input::of_project(find_root(from)?, &mut Looks::default())?]);
    }
    resolve_paths(paths, from, &mut Looks::default())
}

/// What at least one path means; what the files look like goes to `looks`.
pub(super) fn resolve_paths(
    paths: &[PathBuf],
    from: &Path,
    looks: &mut Looks,
) -> Result<Vec<Input>, ProjectError> {
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
            let files = spec_files(&root.join("specs"), &mut seen, looks)?;
            let root = Some(root);
            inputs.push(Input { root, files, whole_project: true, scripts: Vec::new() });
            continue;
        }
        if !metadata.is_dir() {
            looks.listed.insert(path.clone(), FileLook::of(&metadata));
            looks.watch_entry(&path);
            looks.follow_link(&path);
        }
        if metadata.is_file() && is_script(&path) {
            add(&mut inputs, Some(find_root(&path)?), &[], &[path]);
            continue;
        }
        // A file inside a project's specs is checked with that project's scripts.
        let root = project_of(&path);
        let files = if metadata.is_dir() {
            spec_files(&path, &mut seen, looks)?
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
    /// The project's other spec files. Some of what they say is about the whole project. What they look like goes to
    /// `looks`.
    ///
    /// # Errors
    /// When there are some and a folder cannot be read.
    pub(super) fn around(&self, looks: &mut Looks) -> Result<Vec<PathBuf>, ProjectError> {
        let Some(root) = self.root.as_ref().filter(|_| !self.whole_project) else {
            return Ok(Vec::new());
        };
        let named = self.files.iter().filter_map(|file| FileId::at(file));
        spec_files(&root.join("specs"), &mut named.collect(), looks)
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
/// are left out, and those that are found are put there. Hidden entries are left out. What is found goes to `looks`.
fn spec_files(
    folder: &Path,
    seen: &mut HashSet<FileId>,
    looks: &mut Looks,
) -> Result<Vec<PathBuf>, ProjectError> {
    let unreadable = |path: &Path, source| ProjectError::Unreadable { path: path.to_owned(), source };
    let mut files = Vec::new();
    let metadata = std::fs::metadata(folder).map_err(|source| unreadable(folder, source))?;
    looks.watch_all(folder, &metadata);
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
            let Some(metadata) = metadata_of(&entry, &path, is_spec, looks) else { continue };
            if metadata.is_dir() {
                if depth < MAX_DEPTH && entered.insert(FileId::of(&path, &metadata)) {
                    looks.watch_all(&path, &metadata);
                    pending.push((path, depth + 1));
                }
            } else if metadata.is_file() && is_spec(&path) {
                let id = FileId::of(&path, &metadata);
                looks.listed.insert(path.clone(), FileLook::of(&metadata));
                files.push((path, id));
            }
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(files.into_iter().filter_map(|(path, id)| seen.insert(id).then_some(path)).collect())
}

/// What an entry is, behind links; `None` for files that are not `wanted`.
fn metadata_of(
    entry: &DirEntry,
    path: &Path,
    wanted: impl Fn(&Path) -> bool,
    looks: &mut Looks,
) -> Option<Metadata> {
    let kind = entry.file_type().ok()?;
    if kind.is_symlink() {
        // A link that leads to a folder has any name.
        let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.is_dir() || wanted(path))?;
        if !metadata.is_dir() {
            looks.follow_link(path);
        }
        return Some(metadata);
    }
    if !kind.is_dir() && !wanted(path) {
        return None;
    }
    entry.metadata().ok()
}

/// The folder of scripts beside `specs/`.
pub(super) fn scripts_folder(root: &Path) -> PathBuf {
    root.join("scripts")
}

/// The folder of what scripts share.
pub(super) fn lib_folder(root: &Path) -> PathBuf {
    scripts_folder(root).join("lib")
}

/// Looks at the scripts beside `specs/`, used or not, without those in folders below and hidden ones (an editor's
/// locks), and at all that lies beneath `scripts/lib`.
pub(super) fn look_at_scripts(root: &Path, looks: &mut Looks) {
    let mut pending = vec![(scripts_folder(root), MAX_DEPTH), (lib_folder(root), 0)];
    let mut entered = HashSet::new();
    while let Some((folder, depth)) = pending.pop() {
        let Ok(metadata) = std::fs::metadata(&folder) else { continue };
        if !metadata.is_dir() || !entered.insert(FileId::of(&folder, &metadata)) {
            continue;
        }
        looks.watch_all(&folder, &metadata);
        let mut scripts = Vec::new();
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_hidden(&path) {
                continue;
            }
            let Some(metadata) = metadata_of(&entry, &path, is_script, looks) else { continue };
            if metadata.is_dir() && depth < MAX_DEPTH {
                pending.push((path, depth + 1));
            } else if is_script(&path) {
                looks.listed.insert(path.clone(), FileLook::of(&metadata));
                scripts.push(path);
            }
        }
        looks.scripts.insert(folder, scripts);
    }
}

/// Whether a file of this name is read as a spec or a script.
pub(super) fn is_source(path: &Path) -> bool {
    is_spec(path) || is_script(path)
}

/// Whether [`look_at_scripts`] lists a file of this name.
pub(super) fn is_listed_script(path: &Path) -> bool {
    is_script(path) && !is_hidden(path)
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
