//! Which files a command is about.

use std::collections::HashSet;
use std::fs::{DirEntry, Metadata};
use std::path::{Component, Path, PathBuf};

use super::look::{FileLook, Looks};
use super::outside::Bounds;
use crate::script::is_hidden;

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Input {
    /// The project the files belong to, where there is one: the folder that holds `specs/`.
    pub root: Option<PathBuf>,
    /// The spec files, sorted.
    pub files: Vec<PathBuf>,
    /// Whether `files` are all of the project.
    pub whole_project: bool,
    /// Scripts that the user named: of the project's other spec files only the tools that use these count.
    pub scripts: Vec<PathBuf>,
    /// Links to spec files, and to folders, that lie outside of the project: they are reported and not followed.
    pub outside: Vec<Outside>,
}

/// A link that leads out of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// The link.
    pub path: PathBuf,
    /// Where it leads, and what to do, in a clause.
    pub why: String,
}

impl Input {
    /// One spec file, on disk or not, of the project whose `specs/` it lies beneath.
    pub fn of_file(path: PathBuf) -> Self {
        let root = project_of(&path);
        Self { root, files: vec![path], ..Self::default() }
    }

    /// Whether nothing was named, and nothing found.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.scripts.is_empty() && self.outside.is_empty()
    }

    /// All of the project at `root`; what the files look like goes to `looks`.
    pub(super) fn of_project(root: PathBuf, looks: &mut Looks) -> Result<Self, ProjectError> {
        Self::whole(root, &mut HashSet::new(), looks)
    }

    fn whole(root: PathBuf, seen: &mut HashSet<FileId>, looks: &mut Looks) -> Result<Self, ProjectError> {
        let (specs, bounds) = (root.join("specs"), Bounds::of([&*root]));
        let Found { files, outside } = spec_files(&specs, &bounds, seen, looks)?;
        Ok(Self { root: Some(root), files, whole_project: true, outside, ..Self::default() })
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
            inputs.push(Input::whole(root, &mut seen, looks)?);
            continue;
        }
        if !metadata.is_dir() {
            looks.listed.insert(path.clone(), FileLook::of(&metadata));
            looks.watch_entry(&path);
            looks.follow_link(&path);
        }
        if metadata.is_file() && is_script(&path) {
            add(&mut inputs, Some(find_root(&path)?), Found::default(), &[path]);
            continue;
        }
        // A file inside a project's specs is checked with that project's scripts.
        let root = project_of(&path);
        let found = if metadata.is_dir() {
            // What the user named is meant, wherever it leads.
            let bounds = Bounds::of(root.as_deref().into_iter().chain([&*path]));
            spec_files(&path, &bounds, &mut seen, looks)?
        } else if seen.insert(FileId::of(&path, &metadata)) {
            Found { files: vec![path], outside: Vec::new() }
        } else {
            Found::default()
        };
        add(&mut inputs, root, found, &[]);
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

fn add(inputs: &mut Vec<Input>, root: Option<PathBuf>, found: Found, scripts: &[PathBuf]) {
    let Found { files, outside } = found;
    match inputs.iter_mut().find(|input| !input.whole_project && input.root == root) {
        Some(input) => {
            input.files.extend(files);
            input.outside.extend(outside);
            input.scripts.extend_from_slice(scripts);
        }
        None => inputs.push(Input { root, files, whole_project: false, scripts: scripts.to_vec(), outside }),
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
        let bounds = Bounds::of([&**root]);
        Ok(spec_files(&root.join("specs"), &bounds, &mut named.collect(), looks)?.files)
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

/// What a walk found.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    outside: Vec<Outside>,
}

/// Every spec file beneath `folder`, sorted by path, and each once, by whatever name or link it is reached: those in `seen`
/// are left out, and those that are found are put there. Hidden entries are left out. What is found goes to `looks`. No link
/// is followed out of `bounds`.
fn spec_files(
    folder: &Path,
    bounds: &Bounds,
    seen: &mut HashSet<FileId>,
    looks: &mut Looks,
) -> Result<Found, ProjectError> {
    let unreadable = |path: &Path, source| ProjectError::Unreadable { path: path.to_owned(), source };
    let (mut files, mut outside) = (Vec::new(), Vec::new());
    bounds.check(folder).map_err(|source| unreadable(folder, source))?;
    let metadata = std::fs::metadata(folder).map_err(|source| unreadable(folder, source))?;
    looks.watch_all(folder, &metadata);
    // A folder may be given twice; within one walk it is entered once.
    let mut entered = HashSet::from([FileId::of(folder, &metadata)]);
    let mut pending = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = pending.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|source| unreadable(&folder, source))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if is_hidden_path(&path) {
                continue;
            }
            let metadata = match metadata_of(&entry, &path, is_spec, bounds, looks) {
                Some(Ok(metadata)) => metadata,
                Some(Err(why)) => {
                    outside.push(Outside { path, why: why.to_string() });
                    continue;
                }
                None => continue,
            };
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
    outside.sort_by(|one, other| one.path.cmp(&other.path));
    let files = files.into_iter().filter_map(|(path, id)| seen.insert(id).then_some(path)).collect();
    Ok(Found { files, outside })
}

/// What an entry is, behind links; `None` for files that are not `wanted`, an error for a link out of `bounds`.
fn metadata_of(
    entry: &DirEntry,
    path: &Path,
    wanted: impl Fn(&Path) -> bool,
    bounds: &Bounds,
    looks: &mut Looks,
) -> Option<std::io::Result<Metadata>> {
    let kind = entry.file_type().ok()?;
    if kind.is_symlink() {
        // A link that leads to a folder has any name.
        let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.is_dir() || wanted(path))?;
        if let Err(why) = bounds.check(path) {
            // That it is mended is seen.
            if let Ok(link) = entry.metadata() {
                looks.listed.insert(path.to_owned(), FileLook::of(&link));
            }
            return Some(Err(why));
        }
        if !metadata.is_dir() {
            looks.follow_link(path);
        }
        return Some(Ok(metadata));
    }
    if !kind.is_dir() && !wanted(path) {
        return None;
    }
    entry.metadata().ok().map(Ok)
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
    let bounds = Bounds::of_scripts(root);
    let mut pending = vec![(scripts_folder(root), MAX_DEPTH), (lib_folder(root), 0)];
    let mut entered = HashSet::new();
    while let Some((folder, depth)) = pending.pop() {
        let Ok(metadata) = bounds.check(&folder).and_then(std::fs::metadata) else { continue };
        if !metadata.is_dir() || !entered.insert(FileId::of(&folder, &metadata)) {
            continue;
        }
        looks.watch_all(&folder, &metadata);
        let mut scripts = Vec::new();
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_hidden_path(&path) {
                continue;
            }
            let Some(metadata) = metadata_of(&entry, &path, is_script, &bounds, looks) else { continue };
            let Ok(metadata) = metadata else {
                // Whoever reads it refuses it.
                scripts.extend(is_script(&path).then_some(path));
                continue;
            };
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
    is_script(path) && !is_hidden_path(path)
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
    let bounds = Bounds::of_scripts(root);
    let mut pending = vec![(root.join("scripts"), 0)];
    while let Some((folder, depth)) = pending.pop() {
        if bounds.check(&folder).is_err() {
            continue;
        }
        let is_new = FileId::at(&folder).is_some_and(|id| entered.insert(id));
        let Some(entries) = is_new.then(|| std::fs::read_dir(&folder).ok()).flatten() else { continue };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| !is_hidden_path(path)) {
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

fn is_hidden_path(path: &Path) -> bool {
    path.file_name().is_some_and(is_hidden)
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
