//! Resolution of command arguments to spec files and scripts.

use std::collections::{BTreeSet, HashSet};
use std::fs::{DirEntry, Metadata};
use std::path::{Path, PathBuf};

use super::below::projects_below;
use super::outside::Bounds;
use super::snapshot::{FileStamp, Snapshot};
use crate::model::{Input, OutsideLink, Overlay, ProjectError};
use crate::paths::{
    ends_in, folders_with_scripts, is_code, is_hidden_path, is_listed_script, is_script, is_spec,
    is_test_script, is_tool_list, normalize,
};

/// Maximum folder depth of a scan.
const MAX_DEPTH: usize = 32;

/// Returns the nearest folder at or above `from` that contains `specs/`.
///
/// # Errors
/// If no such folder exists.
pub fn find_root(from: &Path) -> Result<PathBuf, ProjectError> {
    let absolute = normalize(from);
    absolute
        .ancestors()
        .find(|folder| folder.join("specs").is_dir())
        .map(Path::to_owned)
        .ok_or_else(|| ProjectError::NoProject { from: absolute.clone(), below: projects_below(&absolute) })
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Resolves `paths`, relative to `from`. Without paths, the result is the project that contains `from`. A folder that
/// contains `specs/` is a project. Any other folder stands for all spec files and scripts in it. A script stands for
/// itself and the tools that use it. A file that is reached twice is read once. A project that cannot be read is an
/// [`OutsideLink`] of its input if there are other paths.
///
/// # Errors
/// If a path does not exist, or if no path is given and there is no project.
pub fn resolve_inputs(paths: &[PathBuf], from: &Path) -> Result<Vec<Input>, ProjectError> {
    if paths.is_empty() {
        return Ok(vec![Input::of_project(find_root(from)?, &mut Snapshot::default())?]);
    }
    resolve_paths(paths, from, &mut Snapshot::default())
}

impl Input {
    /// Returns the input for one spec file or script, which does not have to exist, and its project.
    ///
    /// # Errors
    /// If the file is a script outside of projects.
    pub fn of_file(path: PathBuf) -> Result<Self, ProjectError> {
        if is_script(&path) {
            return Ok(Self { root: Some(find_root(&path)?), scripts: vec![path], ..Self::default() });
        }
        Ok(Self { root: project_of(&path), files: vec![path], ..Self::default() })
    }

    /// Returns the input for the whole project at `root`. Adds the files to `snapshot`.
    pub(crate) fn of_project(root: PathBuf, snapshot: &mut Snapshot) -> Result<Self, ProjectError> {
        Self::whole(root, &mut HashSet::new(), snapshot)
    }

    /// Adds the spec files and scripts that exist only in `overlay`. The scripts must have been scanned.
    pub(crate) fn add_unsaved(&mut self, overlay: &Overlay, snapshot: &mut Snapshot) {
        let Some(specs) = self.root.as_ref().map(|root| root.join("specs")) else { return };
        for path in overlay.paths().filter(|path| !path.exists()) {
            let inside = path.strip_prefix(&specs);
            if inside.is_ok_and(|inside| !inside.ancestors().any(is_hidden_path)) && is_spec(path) {
                self.files.push(path.clone());
                snapshot.add_unsaved(path);
            }
        }
        self.files.sort_unstable();
        add_unsaved_scripts(overlay, snapshot);
    }

    fn whole(
        root: PathBuf,
        seen: &mut HashSet<FileId>,
        snapshot: &mut Snapshot,
    ) -> Result<Self, ProjectError> {
        let (specs, bounds) = (root.join("specs"), Bounds::of([&*root]));
        let FoundFiles { files, outside } = spec_files(&specs, &bounds, seen, snapshot)?;
        Ok(Self { root: Some(root), files, whole_project: true, outside, ..Self::default() })
    }

    /// Returns the other spec files of the project, which may contain project-wide settings. For Emacs Lisp outside of a
    /// project, these are the `.eld` files in its folder. Adds them to `snapshot`.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub(crate) fn other_specs(&self, snapshot: &mut Snapshot) -> Result<Vec<PathBuf>, ProjectError> {
        if self.whole_project {
            return Ok(Vec::new());
        }
        let mut named = self.files.iter().filter_map(|file| FileId::at(file)).collect();
        let Some(root) = &self.root else { return Ok(self.specs_beside(&named, snapshot)) };
        let bounds = Bounds::of([&**root]);
        Ok(spec_files(&root.join("specs"), &bounds, &mut named, snapshot)?.files)
    }

    /// Returns the `.eld` files in the folders of files with Emacs Lisp, sorted. Links and hidden files are skipped.
    fn specs_beside(&self, named: &HashSet<FileId>, snapshot: &mut Snapshot) -> Vec<PathBuf> {
        let code = self.files.iter().filter(|path| is_code(path));
        let folders: BTreeSet<&Path> = code.filter_map(|path| path.parent()).collect();
        let mut found = Vec::new();
        for path in folders.into_iter().flat_map(entries) {
            let is_settings = ends_in(&path, &["eld"]) && !is_hidden_path(&path);
            let Some(metadata) = path.symlink_metadata().ok().filter(|_| is_settings) else { continue };
            if metadata.is_file() && !named.contains(&FileId::of(&path, &metadata)) {
                snapshot.add_found(&path, &metadata);
                snapshot.watch_entry(&path);
                found.push(path);
            }
        }
        found.sort_unstable();
        found
    }
}

/// Resolves at least one path. Adds the files to `snapshot`.
pub(crate) fn resolve_paths(
    paths: &[PathBuf],
    from: &Path,
    snapshot: &mut Snapshot,
) -> Result<Vec<Input>, ProjectError> {
    let mut inputs: Vec<Input> = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        let path = from.join(path);
        let metadata = std::fs::metadata(&path)
            .map_err(|source| ProjectError::Unreadable { path: path.clone(), source })?;
        // The `specs` folder itself also stands for its project.
        let parent =
            normalize(&path).parent().filter(|_| normalize(&path).ends_with("specs")).map(Path::to_owned);
        let root = if path.join("specs").is_dir() { Some(normalize(&path)) } else { parent };
        if let Some(root) = root.filter(|_| metadata.is_dir()) {
            // A project that is named twice is read once.
            let is_known = |input: &Input| {
                (input.whole_project || !input.outside.is_empty()) && input.root.as_ref() == Some(&root)
            };
            if !inputs.iter().any(is_known) {
                // One of several projects that cannot be read is reported, and the others are read.
                inputs.push(match Input::whole(root.clone(), &mut seen, snapshot) {
                    Err(ProjectError::Unreadable { path, source }) if paths.len() > 1 => {
                        let outside = vec![OutsideLink { path, why: source.to_string() }];
                        Input { root: Some(root), outside, ..Input::default() }
                    }
                    input => input?,
                });
            }
            continue;
        }
        if !metadata.is_dir() {
            snapshot.add_found(&path, &metadata);
            snapshot.watch_entry(&path);
            snapshot.follow_link(&path);
        }
        if metadata.is_file() && is_script(&path) {
            // In a folder, a script that no tool uses is passed over if it cannot be read.
            std::fs::File::open(&path)
                .map_err(|source| ProjectError::Unreadable { path: path.clone(), source })?;
            add(&mut inputs, Some(find_root(&path)?), FoundFiles::default(), &[path]);
            continue;
        }
        let scripts = if metadata.is_dir() { scripts_below(&path) } else { None };
        let (root, scripts) = match scripts {
            Some((root, scripts)) => (Some(root), scripts),
            // A file in the `specs` folder of a project is checked with the project's scripts.
            None => (project_of(&path), Vec::new()),
        };
        let found = if metadata.is_dir() {
            // A folder that the user named may be outside of the project.
            let bounds = Bounds::of(root.as_deref().into_iter().chain([&*path]));
            spec_files(&path, &bounds, &mut seen, snapshot)?
        } else if seen.insert(FileId::of(&path, &metadata)) {
            FoundFiles { files: vec![path], outside: Vec::new() }
        } else {
            FoundFiles::default()
        };
        add(&mut inputs, root, found, &scripts);
    }
    // A folder that was named may contain the projects that were named before it.
    let mut reported = HashSet::new();
    for input in &mut inputs {
        input.outside.retain(|link| reported.insert(normalize(&link.path)));
    }
    // In a project that is read completely, all scripts are checked anyway.
    let whole: HashSet<_> =
        inputs.iter().filter(|input| input.whole_project).map(|input| input.root.clone()).collect();
    for input in inputs.iter_mut().filter(|input| whole.contains(&input.root)) {
        input.scripts.clear();
    }
    Ok(inputs)
}

/// Returns the scripts of a project in a folder of it and below, sorted, with the project.
fn scripts_below(folder: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let (root, folder) = (find_root(folder).ok()?, normalize(folder));
    if !folders_with_scripts(&root).iter().any(|scripts| folder.starts_with(scripts)) {
        return None;
    }
    let mut snapshot = Snapshot::default();
    scan_scripts(&root, &mut snapshot);
    let below = snapshot.scripts.into_iter().filter(|(scripts, _)| scripts.starts_with(&folder));
    let mut scripts: Vec<PathBuf> = below.flat_map(|(_, scripts)| scripts).collect();
    scripts.sort_unstable();
    Some((root, scripts))
}

/// Returns the project of a file or folder below its `specs` folder. A list of tools of another program belongs to none.
fn project_of(path: &Path) -> Option<PathBuf> {
    let is_below = |root: &PathBuf| !is_tool_list(path) && normalize(path).starts_with(root.join("specs"));
    find_root(path).ok().filter(is_below)
}

fn add(inputs: &mut Vec<Input>, root: Option<PathBuf>, found: FoundFiles, scripts: &[PathBuf]) {
    let FoundFiles { files, outside } = found;
    match inputs.iter_mut().find(|input| !input.whole_project && input.root == root) {
        Some(input) => {
            input.files.extend(files);
            input.outside.extend(outside);
            input.scripts.extend_from_slice(scripts);
        }
        None => inputs.push(Input { root, files, scripts: scripts.to_vec(), outside, ..Input::default() }),
    }
}

/// The identity of a file. Equal for all names of one file.
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
        Self(crate::paths::identity(path))
    }

    fn at(path: &Path) -> Option<Self> {
        Some(Self::of(path, &std::fs::metadata(path).ok()?))
    }
}

/// The result of a folder scan.
#[derive(Default)]
struct FoundFiles {
    files: Vec<PathBuf>,
    outside: Vec<OutsideLink>,
}

/// Returns all spec files below `folder`, sorted by path. Each file is returned once, even if several names or links
/// lead to it: files in `seen` are skipped, and new ones are added to it. Hidden entries are skipped. Files are added
/// to `snapshot`. Links out of `bounds` are not followed.
fn spec_files(
    folder: &Path,
    bounds: &Bounds,
    seen: &mut HashSet<FileId>,
    snapshot: &mut Snapshot,
) -> Result<FoundFiles, ProjectError> {
    let unreadable = |path: &Path, source| ProjectError::Unreadable { path: path.to_owned(), source };
    let (mut files, mut outside) = (Vec::new(), Vec::new());
    bounds.check(folder).map_err(|source| unreadable(folder, source))?;
    let metadata = std::fs::metadata(folder).map_err(|source| unreadable(folder, source))?;
    snapshot.watch_all(folder, &metadata);
    // A folder may be named twice. Within one scan it is entered once.
    let mut entered = HashSet::from([FileId::of(folder, &metadata)]);
    let mut pending = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = pending.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|source| unreadable(&folder, source))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if is_hidden_path(&path) {
                continue;
            }
            match examine(&entry, &path, (is_spec, true), bounds, snapshot) {
                Some(Found::Folder(metadata)) => {
                    if depth < MAX_DEPTH && entered.insert(FileId::of(&path, &metadata)) {
                        snapshot.watch_all(&path, &metadata);
                        pending.push((path, depth + 1));
                    }
                }
                Some(Found::File(Some(metadata))) if metadata.is_file() => {
                    let id = FileId::of(&path, &metadata);
                    snapshot.add_found(&path, &metadata);
                    files.push((path, id));
                }
                Some(Found::Outside(why)) => outside.push(OutsideLink { path, why: why.to_string() }),
                Some(Found::File(_)) | None => {}
            }
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    outside.sort_by(|one, other| one.path.cmp(&other.path));
    let files = files.into_iter().filter_map(|(path, id)| seen.insert(id).then_some(path)).collect();
    Ok(FoundFiles { files, outside })
}

/// An entry of a folder, with links followed.
enum Found {
    Folder(Metadata),
    /// A file, which may be a device. `None`: a regular file whose metadata is not needed.
    File(Option<Metadata>),
    /// A link out of the bounds, with the reason why it is not followed.
    Outside(std::io::Error),
}

/// Examines an entry of a folder. Returns `None` for files that are not relevant.
fn examine(
    entry: &DirEntry,
    path: &Path,
    (is_relevant, needs_metadata): (impl Fn(&Path) -> bool, bool),
    bounds: &Bounds,
    snapshot: &mut Snapshot,
) -> Option<Found> {
    let kind = entry.file_type().ok()?;
    if kind.is_symlink() {
        // A link to a folder may have any name.
        let metadata =
            std::fs::metadata(path).ok().filter(|metadata| metadata.is_dir() || is_relevant(path))?;
        snapshot.has_hidden_changes = true;
        if let Err(why) = bounds.check(path) {
            // Track the link itself, so that a change of its target is detected.
            if let Ok(link) = entry.metadata() {
                snapshot.listed.insert(path.to_owned(), FileStamp::of(&link));
            }
            return Some(Found::Outside(why));
        }
        if metadata.is_dir() {
            return Some(Found::Folder(metadata));
        }
        snapshot.follow_link(path);
        return Some(Found::File(Some(metadata)));
    }
    if kind.is_dir() {
        return entry.metadata().ok().map(Found::Folder);
    }
    if !is_relevant(path) {
        return None;
    }
    if kind.is_file() && !needs_metadata {
        return Some(Found::File(None));
    }
    Some(Found::File(Some(entry.metadata().ok()?)))
}

/// Adds the scripts that exist only in `overlay`. Their folders must have been scanned.
pub(crate) fn add_unsaved_scripts(overlay: &Overlay, snapshot: &mut Snapshot) {
    for path in overlay.paths().filter(|path| is_listed_script(path) && !path.exists()) {
        let is_scanned = path.parent().is_some_and(|folder| snapshot.scripts.contains_key(folder));
        if is_scanned && !snapshot.listed.contains_key(path) {
            snapshot.add_unsaved(path);
        }
    }
}

/// Scans the scripts of a project: all files below `scripts/` and `specs/`, used or not. Hidden files, such as lock files
/// of editors, are skipped.
pub(crate) fn scan_scripts(root: &Path, snapshot: &mut Snapshot) {
    let bounds = Bounds::of_scripts(root);
    let mut pending: Vec<_> = folders_with_scripts(root).map(|folder| (folder, 0)).into();
    let mut entered = HashSet::new();
    while let Some((folder, depth)) = pending.pop() {
        let Ok(metadata) = bounds.check(&folder).and_then(std::fs::metadata) else { continue };
        if !metadata.is_dir() || !entered.insert(FileId::of(&folder, &metadata)) {
            continue;
        }
        snapshot.watch_all(&folder, &metadata);
        let mut scripts = Vec::new();
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_hidden_path(&path) {
                continue;
            }
            let needs_metadata = snapshot.has_stamps;
            let metadata = match examine(&entry, &path, (is_script, needs_metadata), &bounds, snapshot) {
                // A folder in place of a script is listed: reading it fails with an error.
                Some(Found::Folder(_)) if depth < MAX_DEPTH && !is_script(&path) => {
                    pending.push((path, depth + 1));
                    continue;
                }
                Some(Found::Folder(metadata)) => Some(metadata),
                Some(Found::File(metadata)) => metadata,
                Some(Found::Outside(_)) => {
                    // List the script anyway: reading it fails with an error about the link.
                    scripts.extend(is_script(&path).then_some(path));
                    continue;
                }
                None => continue,
            };
            if is_script(&path) {
                match metadata {
                    Some(metadata) => snapshot.add_found(&path, &metadata),
                    None => drop(snapshot.listed.insert(path.clone(), FileStamp::NONE)),
                }
                scripts.push(path);
            }
        }
        snapshot.scripts.insert(folder, scripts);
    }
}

/// Returns the test scripts in `scripts/`, `specs/` and their subfolders, sorted.
pub(super) fn tests_in(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entered = HashSet::new();
    let bounds = Bounds::of_scripts(root);
    let mut pending: Vec<_> = folders_with_scripts(root).map(|folder| (folder, 0)).into();
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
