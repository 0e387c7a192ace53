//! Finds and opens the granted folder of a path.
//!
//! A path starts with the name of its grant (`notes/today.md` for the grant `notes/`, `../other/x` for `../other/`) or
//! is absolute, also by `~` or another folder of the user. `.` and `..` are resolved lexically, in paths and grants. A
//! path without a grant is an error that names the missing permission. Of several grants the most specific one applies.
//! A granted folder may be a link, because the spec's author named it. Everything below it is opened relative to the
//! folder's handle (cap-std), which rejects absolute links and links that lead out of the folder.
//!
//! Hidden files and folders (`.env`, `.git`) below a granted folder require a grant that names them. This is checked
//! twice: in the path as the script wrote it, and in the path with links resolved, which is then opened component by
//! component without following links. So no link leads to a hidden file, even if it is created in the meantime.
//!
//! A granted folder is opened at each use, so that a replaced folder (a checkout, a mount) is found. This is safe: a
//! program that can replace the folder can also change its contents. But its real path must be the same as when the
//! call was requested ([`PinnedPaths`]): the user's trust applies to that path, and another tool may have moved a link
//! there since.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use deftool_lang::syntax::quoted;
use deftool_lang::tool::ToolErrorKind;

use super::access::{Access, display_path, io_error, script_error};
use super::no_follow::open_folder;
use super::protected::protected_folder;
use crate::error::HostError;
use crate::path::resolve_path;
use crate::permission::{PathGrant, PinnedPaths, ScriptPermissions, hidden_names, is_hidden, normalize};

/// The file grants of a call.
#[derive(Default)]
pub(in crate::host) struct FileGrants {
    read: Vec<PathGrant>,
    write: Vec<PathGrant>,
    /// The project folder, with links resolved.
    root: Option<PathBuf>,
    pins: Arc<PinnedPaths>,
}

/// A path in a granted folder, with an open handle of the folder.
pub(super) struct GrantedPath {
    /// The granted folder. For a granted file, its parent folder.
    pub(super) dir: Dir,
    /// The path relative to `dir`. `.` for the folder itself.
    pub(super) rest: PathBuf,
    /// The absolute path, without `.` and `..`.
    pub(super) full: PathBuf,
    access: Access,
    grants: Arc<FileGrants>,
    /// The absolute path of the grant, without `.` and `..`.
    granted: PathBuf,
    /// The folder of `dir`, with links resolved.
    real: PathBuf,
    /// The path as the script wrote it.
    path: String,
    /// The missing part of the granted folder, relative to `dir`, if it does not exist.
    missing: Option<PathBuf>,
}

/// The last component of a path and its open parent folder.
pub(super) struct Leaf {
    pub(super) dir: Dir,
    pub(super) name: OsString,
    /// The metadata of the entry, if it exists. Links are not followed.
    pub(super) metadata: Option<Metadata>,
}

impl FileGrants {
    /// Creates the grants of a call. `root` is the project folder, `pins` the real paths of the grants.
    pub(in crate::host) fn new(
        permissions: &ScriptPermissions,
        root: Option<&Path>,
        pins: Arc<PinnedPaths>,
    ) -> Self {
        let (read, write) = (permissions.read.clone(), permissions.write.clone());
        let uses_files = !read.is_empty() || !write.is_empty();
        let root = root.filter(|_| uses_files).and_then(|root| std::fs::canonicalize(root).ok());
        Self { read, write, root, pins }
    }

    /// Opens the grant that covers `path` for `access`.
    pub(super) fn open(self: &Arc<Self>, access: Access, path: &str) -> Result<GrantedPath, HostError> {
        let resolved = resolve_path(Path::new(""), path);
        let wanted =
            normalize(&resolved.map_err(|why| script_error(format!("{}: {why}", display_path(path))))?);
        let mut covering: Vec<(PathBuf, &PathGrant)> = self.covering(access, &wanted).collect();
        covering.sort_by_key(|(rest, _)| rest.components().count());
        for (rest, grant) in covering {
            if !self.pins.is_unchanged(&normalize(&grant.path)) {
                return Err(moved_error(grant));
            }
            if let Some(target) = self.open_grant(access, grant, rest, path)? {
                return Ok(target);
            }
        }
        Err(self.denied_error(access, path, &wanted))
    }

    /// Returns the grants that cover `wanted`, each with the path relative to the grant.
    fn covering(&self, access: Access, wanted: &Path) -> impl Iterator<Item = (PathBuf, &PathGrant)> {
        let rests = self.for_access(access).filter_map(|grant| Some((grant.rest(wanted)?, grant)));
        rests.filter(|(rest, _)| hidden_names(rest).next().is_none())
    }

    /// Returns whether a grant covers `wanted`, a [normalized](normalize) path.
    pub(super) fn covers(&self, access: Access, wanted: &Path) -> bool {
        self.covering(access, wanted).next().is_some()
    }

    fn for_access(&self, access: Access) -> impl Iterator<Item = &PathGrant> {
        let (read, write): (&[_], &[_]) = match access {
            Access::Read => (&self.read, &[]),
            Access::Write => (&[], &self.write),
            Access::Inspect => (&self.read, &self.write),
        };
        read.iter().chain(write)
    }

    /// Returns whether `full` is, or contains, a granted path. Replacing it with a folder or link would change what is
    /// granted.
    pub(super) fn has_grant_beneath(&self, full: &Path) -> bool {
        self.for_access(Access::Inspect).any(|grant| normalize(&grant.path).starts_with(full))
    }

    fn denied_error(&self, access: Access, path: &str, wanted: &Path) -> HostError {
        let mut rests = self.for_access(access).filter_map(|grant| grant.rest(wanted));
        if rests.any(|rest| hidden_names(&rest).next().is_some()) {
            return hidden_error(access, path, wanted);
        }
        let key = access.key();
        let verb = match access {
            Access::Inspect if !self.write.is_empty() => "access",
            Access::Read | Access::Write | Access::Inspect => key,
        };
        let names: Vec<String> =
            self.for_access(access).map(|grant| quoted(&display_path(&grant.name))).collect();
        let allowed = match access {
            Access::Write if self.covers(Access::Read, wanted) => String::from("this tool may only read it"),
            Access::Read if self.covers(Access::Write, wanted) => String::from("this tool may only write it"),
            Access::Read | Access::Write | Access::Inspect if names.is_empty() => {
                format!("this tool may not {verb} any file")
            }
            Access::Read | Access::Write | Access::Inspect => {
                format!("this tool may only {verb} {}", names.join(" "))
            }
        };
        // The advice must be the same for all users.
        let is_in_home = path.starts_with(['~', '$']);
        let wanted = if is_in_home { path.to_owned() } else { in_project(&wanted.to_string_lossy()) };
        let needed = match &*wanted {
            "" => String::from("\".\""),
            // Do not suggest a path that is not shown completely.
            wanted if display_path(wanted) != wanted => String::from("…"),
            wanted => quoted(wanted),
        };
        HostError {
            kind: ToolErrorKind::Permission,
            message: format!(
                "{} is not allowed: {allowed}; to allow it, add :allow (:{key} [{needed}]) to the spec",
                display_path(path)
            ),
        }
    }
}

fn moved_error(grant: &PathGrant) -> HostError {
    let name = display_path(&grant.name);
    let message = format!(
        "{name} leads to a different place than when the call began; call the tool again if this is intended"
    );
    HostError { kind: ToolErrorKind::Permission, message }
}

/// Returns the path as a spec contains it: a name in the project must not begin like a folder of the user.
fn in_project(path: &str) -> String {
    let dot = if path.starts_with(['~', '$']) { "./" } else { "" };
    format!("{dot}{path}")
}

/// Creates the error for `wanted`, written as `path`, which is hidden in a granted folder.
fn hidden_error(access: Access, path: &str, wanted: &Path) -> HostError {
    // The path up to the last hidden component: a grant of that path covers its contents.
    let named = wanted.ancestors().find(|above| above.file_name().is_some_and(is_hidden));
    let named = in_project(&named.unwrap_or(wanted).to_string_lossy());
    let needed = if display_path(&named) == named { quoted(&named) } else { String::from("…") };
    let key = access.key();
    HostError {
        kind: ToolErrorKind::Permission,
        message: format!(
            "{} is not allowed: it is hidden, and a grant of a folder does not include hidden files and folders; to allow \
             it, add :allow (:{key} [{needed}]) to the spec",
            display_path(path)
        ),
    }
}

/// Creates the error for a path in `folder`, which a write grant must name.
fn protected_error(path: &str, folder: &Path, root: Option<&Path>) -> HostError {
    let named = root.and_then(|root| folder.strip_prefix(root).ok()).unwrap_or(folder);
    let named = in_project(&named.to_string_lossy());
    let needed = if display_path(&named) == named { quoted(&named) } else { String::from("…") };
    HostError {
        kind: ToolErrorKind::Permission,
        message: format!(
            "{} is not allowed: it is in a folder that defines tools or their permissions, and a grant of the folder above \
             does not include it; to allow it, add :allow (:write [{needed}]) to the spec",
            display_path(path)
        ),
    }
}

impl FileGrants {
    /// Opens the folder of `grant` for the relative path `rest`. Returns `None` if the grant is a file and `rest` is
    /// not empty.
    fn open_grant(
        self: &Arc<Self>,
        access: Access,
        grant: &PathGrant,
        rest: PathBuf,
        path: &str,
    ) -> Result<Option<GrantedPath>, HostError> {
        let granted = normalize(&grant.path);
        let failed = |error: std::io::Error| io_error(access, &grant.name, &error);
        let rest = if rest.as_os_str().is_empty() { PathBuf::from(".") } else { rest };
        let is_grant = rest == Path::new(".");
        let full = if is_grant { granted.clone() } else { granted.join(&rest) };
        let (grants, path) = (Arc::clone(self), path.to_owned());
        let Some(real) = real_path(&granted).map_err(failed)? else {
            let (above, missing) = existing_above(&granted).map_err(failed)?;
            self.check_target(access, grant, &above.join(&missing))?;
            let dir = Dir::open_ambient_dir(&above, ambient_authority()).map_err(failed)?;
            return Ok(Some(GrantedPath {
                access,
                dir,
                rest,
                full,
                grants,
                granted,
                real: above,
                path,
                missing: Some(missing),
            }));
        };
        self.check_target(access, grant, &real)?;
        if std::fs::metadata(&real).map_err(failed)?.is_dir() {
            if access == Access::Write
                && let Some(folder) = protected_folder(&real, &rest)
            {
                return Err(protected_error(&path, &folder, self.root.as_deref()));
            }
            let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(failed)?;
            return Ok(Some(GrantedPath {
                access,
                dir,
                rest,
                full,
                grants,
                granted,
                real,
                path,
                missing: None,
            }));
        }
        let (true, Some(folder), Some(name)) = (is_grant, real.parent(), real.file_name()) else {
            return Ok(None);
        };
        let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(failed)?;
        let rest = PathBuf::from(name);
        let real = folder.to_owned();
        Ok(Some(GrantedPath { access, dir, rest, full, grants, granted, real, path, missing: None }))
    }

    /// Returns an error if the grant is a link to a hidden path in the project that the grant does not name.
    fn check_target(&self, access: Access, grant: &PathGrant, real: &Path) -> Result<(), HostError> {
        let Some(root) = &self.root else { return Ok(()) };
        if grant.unnamed_hidden(real, root).is_none() {
            return Ok(());
        }
        Err(hidden_error(access, &grant.name, real.strip_prefix(root).unwrap_or(real)))
    }
}

/// Returns `path` with links resolved, or `None` if it does not exist.
fn real_path(path: &Path) -> std::io::Result<Option<PathBuf>> {
    match std::fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        // A dangling link exists.
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the nearest existing parent of `path`, with links resolved, and the missing rest of `path`.
fn existing_above(path: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    for above in path.ancestors().skip(1) {
        if let (Some(real), Ok(missing)) = (real_path(above)?, path.strip_prefix(above)) {
            return Ok((real, missing.to_path_buf()));
        }
    }
    Err(ErrorKind::NotFound.into())
}

impl GrantedPath {
    /// Converts an IO error for this path.
    pub(super) fn io_error(&self, error: &Error) -> HostError {
        io_error(self.access, &self.path, error)
    }

    /// Creates an error with this path and `what` as its message.
    pub(super) fn invalid(&self, what: impl Display) -> HostError {
        script_error(format!("{} {what}", display_path(&self.path)))
    }

    /// Returns whether the granted folder exists.
    pub(super) fn exists(&self) -> bool {
        self.missing.is_none()
    }

    /// Returns itself, or an error if the granted folder does not exist.
    pub(super) fn existing(self) -> Result<Self, HostError> {
        if self.exists() { Ok(self) } else { Err(self.io_error(&ErrorKind::NotFound.into())) }
    }

    /// Returns whether this is the granted folder itself.
    pub(super) fn is_grant(&self) -> bool {
        self.rest == Path::new(".")
    }

    /// Opens the parent folder of this path. With `follow`, resolves a link at the end of the path first. Calls
    /// `before_create` before it creates a missing folder; without it, a missing folder is an error.
    pub(super) fn leaf(
        &self,
        follow: bool,
        before_create: Option<CreateCheck<'_>>,
    ) -> Result<Leaf, HostError> {
        let failed = |error: Error| self.io_error(&error);
        let mut dir = self.dir.try_clone().map_err(failed)?;
        let mut rest = self.rest.clone();
        if let Some(missing) = &self.missing {
            let folders = if self.is_grant() { parent(missing) } else { missing };
            if before_create.is_none() && !folders.as_os_str().is_empty() {
                return Err(failed(ErrorKind::NotFound.into()));
            }
            dir = self.create_folders(dir, folders, before_create)?;
            if self.is_grant() {
                rest = missing.file_name().map(PathBuf::from).unwrap_or_default();
            }
        } else if follow && dir.symlink_metadata(&rest).is_ok_and(|metadata| metadata.is_symlink()) {
            rest = self.resolve(&rest)?.map_err(failed)?;
        }
        let Some(name) = rest.file_name().map(OsString::from) else {
            return Err(self.invalid("is the granted folder itself; pass a path in it"));
        };
        let dir = self.open_folders(dir, parent(&rest), before_create)?;
        let metadata = match dir.symlink_metadata(&name) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Leaf { dir, name, metadata })
    }

    /// Opens the folder `path` in `dir`. Creates its missing part.
    fn open_folders(
        &self,
        dir: Dir,
        path: &Path,
        before_create: Option<CreateCheck<'_>>,
    ) -> Result<Dir, HostError> {
        for above in path.ancestors() {
            if above.as_os_str().is_empty() {
                return self.create_folders(dir, path, before_create);
            }
            match self.resolve(above)? {
                Ok(real) => {
                    let found = self.open_beneath(&real).map_err(|error| self.io_error(&error))?;
                    let missing = path.strip_prefix(above).unwrap_or(Path::new(""));
                    return self.create_folders(found, missing, before_create);
                }
                Err(error) if error.kind() == ErrorKind::NotFound && before_create.is_some() => {}
                Err(error) => return Err(self.io_error(&error)),
            }
        }
        Ok(dir)
    }

    /// Opens the folder at this path.
    pub(super) fn folder(&self) -> Result<Dir, HostError> {
        let real = self.resolve(&self.rest)?;
        real.and_then(|real| self.open_beneath(&real)).map_err(|error| self.io_error(&error))
    }

    /// Returns the metadata of this path. Follows links.
    ///
    /// # Errors
    /// When access is not allowed. The inner result contains IO errors.
    pub(super) fn metadata(&self) -> Result<std::io::Result<Metadata>, HostError> {
        let real = match self.resolve(&self.rest)? {
            Ok(real) => real,
            Err(error) => return Ok(Err(error)),
        };
        Ok(match real.file_name() {
            None => self.dir.dir_metadata(),
            Some(name) => self.open_beneath(parent(&real)).and_then(|dir| dir.symlink_metadata(name)),
        })
    }

    /// Returns `path` in `dir` with links resolved.
    ///
    /// # Errors
    /// When a link leads to a hidden path. The inner result contains IO errors.
    fn resolve(&self, path: &Path) -> Result<std::io::Result<PathBuf>, HostError> {
        // For a missing path, check its parents, so that the error does not reveal what a hidden folder contains.
        for above in path.ancestors() {
            match self.dir.canonicalize(above) {
                Ok(real) => {
                    self.check_hidden(above, &real)?;
                    self.check_protected(above, &real)?;
                    let missing = || Err(ErrorKind::NotFound.into());
                    return Ok(if above == path { Ok(real) } else { missing() });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Err(ErrorKind::NotFound.into()))
    }

    /// Returns an error if `real`, the target of `path`, is hidden and no grant names it.
    fn check_hidden(&self, path: &Path, real: &Path) -> Result<(), HostError> {
        // Without links, `real` is the path that the script wrote, which was already checked.
        if real == path || hidden_names(real).next().is_none() {
            return Ok(());
        }
        let full = self.granted.join(real);
        if self.grants.covers(self.access, &full) {
            return Ok(());
        }
        let named = self.grants.root.as_ref().and_then(|root| full.strip_prefix(root).ok());
        Err(hidden_error(self.access, &self.path, named.unwrap_or(real)))
    }

    /// Returns an error if `real`, the target of `path`, is protected from writes.
    fn check_protected(&self, path: &Path, real: &Path) -> Result<(), HostError> {
        // Without links, the path was checked when it was opened.
        if real == path || self.access != Access::Write {
            return Ok(());
        }
        match protected_folder(&self.real, real) {
            Some(folder) => Err(protected_error(&self.path, &folder, self.grants.root.as_deref())),
            None => Ok(()),
        }
    }

    /// Opens the folder `real` in `dir` without following links, even if links were created in the meantime.
    fn open_beneath(&self, real: &Path) -> std::io::Result<Dir> {
        let mut dir = self.dir.try_clone()?;
        for part in real.components() {
            if let Component::Normal(name) = part {
                dir = open_folder(&dir, Path::new(name))?;
            }
        }
        Ok(dir)
    }

    /// Opens the folder `path` in `dir` and creates missing folders. Does not follow links.
    fn create_folders(
        &self,
        mut dir: Dir,
        path: &Path,
        before_create: Option<CreateCheck<'_>>,
    ) -> Result<Dir, HostError> {
        for step in path {
            if let Some(before_create) = before_create {
                match dir.symlink_metadata(step) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        before_create()?;
                        dir.create_dir(step).map_err(|error| self.io_error(&error))?;
                    }
                    _ => {}
                }
            }
            dir = open_folder(&dir, Path::new(step)).map_err(|error| self.io_error(&error))?;
        }
        Ok(dir)
    }
}

/// A check that runs before a folder is created. An error prevents the creation.
pub(super) type CreateCheck<'m> = &'m dyn Fn() -> Result<(), HostError>;

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
