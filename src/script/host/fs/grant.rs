//! Which granted folder a path lies in, and its handle; what is said where there is none.
//!
//! A path is named as its grant is (`notes/today.md` under the grant `notes/`, `../other/x` under `../other/`) or in
//! full. `.` and `..` are resolved by the text alone, in paths as in grants; what is then beneath no grant is refused,
//! and the error names the permission that would allow it. Of several grants the narrowest counts. A granted folder may
//! be a link: its author wrote its name. From there on everything is opened beneath its handle (cap-std), which refuses
//! absolute links and links that lead out.
//!
//! Hidden files and folders (`.env`, `.git`) below a granted folder are covered only by a grant that names them. This is
//! checked twice: in the path as the script wrote it, and in the path without links, which is then opened name by name
//! without following any. So no link, and none that appears meanwhile, leads to a hidden file.
//!
//! A granted folder is opened at each use, not once: one that was replaced meanwhile (a checkout, a mount) is seen, and
//! who can replace it could have changed what is in it. But it has to be where it was when the call was asked for
//! ([`Pins`]): what the user trusts a tool with is compared then, and another tool may move a link there since.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};

use super::open::open_folder;
use super::{failed, shown, wrong};
use crate::script::error::HostError;
use crate::script::permission::{PathGrant, Permissions, Pins, hidden_names, is_hidden, plain};
use crate::syntax::quoted;
use crate::tool::ToolErrorKind;

/// What is to be done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Its contents are read.
    Read,
    /// It is made, changed or removed.
    Write,
    /// It is looked at: names, kinds, sizes.
    Look,
}

impl Need {
    /// The key of `:allow` that allows it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Read | Self::Look => "read",
            Self::Write => "write",
        }
    }
}

/// What the spec grants.
#[derive(Default)]
pub(in crate::script::host) struct Grants {
    read: Vec<PathGrant>,
    write: Vec<PathGrant>,
    /// The project, without links.
    root: Option<PathBuf>,
    pins: Arc<Pins>,
}

/// A path beneath a granted folder.
pub(super) struct Place {
    /// The granted folder; of a granted file, the folder that holds it.
    pub(super) dir: Dir,
    /// The path beneath it; `.` for the folder itself.
    pub(super) rest: PathBuf,
    /// Where that is, without `.` and `..`.
    pub(super) full: PathBuf,
    need: Need,
    grants: Arc<Grants>,
    /// Where the granted folder is, without `.` and `..`.
    granted: PathBuf,
    /// As the script named it.
    path: String,
    /// What is missing of the granted folder, beneath `dir`.
    missing: Option<PathBuf>,
}

/// A name in a folder that is open.
pub(super) struct Leaf {
    pub(super) dir: Dir,
    pub(super) name: OsString,
    /// What is there now, links not followed.
    pub(super) about: Option<Metadata>,
}

impl Grants {
    /// Those of a call of a script of the project at `root`, where `pins` say.
    pub(in crate::script::host) fn new(
        permissions: &Permissions,
        root: Option<&Path>,
        pins: Arc<Pins>,
    ) -> Self {
        let (read, write) = (permissions.read.clone(), permissions.write.clone());
        let uses_files = !read.is_empty() || !write.is_empty();
        let root = root.filter(|_| uses_files).and_then(|root| std::fs::canonicalize(root).ok());
        Self { read, write, root, pins }
    }

    /// Opens the grant that covers `path` for `need`.
    pub(super) fn open(self: &Arc<Self>, need: Need, path: &str) -> Result<Place, HostError> {
        let wanted = plain(Path::new(path));
        let mut covering: Vec<(PathBuf, &PathGrant)> = self.covering(need, &wanted).collect();
        covering.sort_by_key(|(rest, _)| rest.components().count());
        for (rest, grant) in covering {
            if !self.pins.hold(&plain(&grant.path)) {
                return Err(moved(grant));
            }
            if let Some(place) = self.enter(need, grant, rest, path)? {
                return Ok(place);
            }
        }
        Err(self.denied(need, path, &wanted))
    }

    /// The grants that cover `wanted`, each with what of it lies beneath the grant.
    fn covering(&self, need: Need, wanted: &Path) -> impl Iterator<Item = (PathBuf, &PathGrant)> {
        let rests = self.of(need).filter_map(|grant| Some((grant.rest(wanted)?, grant)));
        rests.filter(|(rest, _)| hidden_names(rest).next().is_none())
    }

    /// Whether a grant covers `wanted`, which is a [`plain`] path.
    pub(super) fn covers(&self, need: Need, wanted: &Path) -> bool {
        self.covering(need, wanted).next().is_some()
    }

    fn of(&self, need: Need) -> impl Iterator<Item = &PathGrant> {
        let (read, write): (&[_], &[_]) = match need {
            Need::Read => (&self.read, &[]),
            Need::Write => (&[], &self.write),
            Need::Look => (&self.read, &self.write),
        };
        read.iter().chain(write)
    }

    /// Whether something at or beneath `full` is granted by itself: moving a folder or a link into its place would
    /// change what is granted.
    pub(super) fn are_beneath(&self, full: &Path) -> bool {
        self.of(Need::Look).any(|grant| plain(&grant.path).starts_with(full))
    }

    fn denied(&self, need: Need, path: &str, wanted: &Path) -> HostError {
        let mut rests = self.of(need).filter_map(|grant| grant.rest(wanted));
        if rests.any(|rest| hidden_names(&rest).next().is_some()) {
            return hidden(need, path, wanted);
        }
        let key = need.key();
        let verb = match need {
            Need::Look if !self.write.is_empty() => "look at",
            Need::Read | Need::Write | Need::Look => key,
        };
        let names: Vec<String> = self.of(need).map(|grant| quoted(&shown(&grant.name))).collect();
        let allowed = match need {
            Need::Write if self.covers(Need::Read, wanted) => {
                String::from("this tool may read it, not write it")
            }
            Need::Read if self.covers(Need::Write, wanted) => {
                String::from("this tool may write it, not read it")
            }
            Need::Read | Need::Write | Need::Look if names.is_empty() => {
                format!("this tool may {verb} nothing")
            }
            Need::Read | Need::Write | Need::Look => format!("this tool may {verb} {} only", names.join(" ")),
        };
        let wanted = wanted.to_string_lossy();
        let needed = match &*wanted {
            "" => String::from("\".\""),
            // What cannot be shown whole is not to be copied either.
            wanted if shown(wanted) != wanted => String::from("…"),
            wanted => quoted(wanted),
        };
        HostError {
            kind: ToolErrorKind::Permission,
            message: format!(
                "{} is not allowed: {allowed}; to allow it, add :allow (:{key} [{needed}]) to the spec",
                shown(path)
            ),
        }
    }
}

fn moved(grant: &PathGrant) -> HostError {
    let name = shown(&grant.name);
    let message =
        format!("{name} leads elsewhere than when the call began; call the tool again, if that is intended");
    HostError { kind: ToolErrorKind::Permission, message }
}

/// That `wanted`, which the script calls `path`, is hidden below a granted folder.
fn hidden(need: Need, path: &str, wanted: &Path) -> HostError {
    // As far as the last hidden name: what is below it is covered then.
    let named = wanted.ancestors().find(|above| above.file_name().is_some_and(is_hidden));
    let named = named.unwrap_or(wanted).to_string_lossy();
    let needed = if shown(&named) == named { quoted(&named) } else { String::from("…") };
    let key = need.key();
    HostError {
        kind: ToolErrorKind::Permission,
        message: format!(
            "{} is not allowed: it is hidden, and a granted folder does not cover hidden files and folders below it; to \
             allow it, add :allow (:{key} [{needed}]) to the spec",
            shown(path)
        ),
    }
}

impl Grants {
    /// Opens `grant`'s folder for what is `rest` beneath it; `None` where the grant is a file and has nothing beneath it.
    fn enter(
        self: &Arc<Self>,
        need: Need,
        grant: &PathGrant,
        rest: PathBuf,
        path: &str,
    ) -> Result<Option<Place>, HostError> {
        let granted = plain(&grant.path);
        let told = |error: std::io::Error| failed(need, &grant.name, &error);
        let rest = if rest.as_os_str().is_empty() { PathBuf::from(".") } else { rest };
        let is_grant = rest == Path::new(".");
        let full = if is_grant { granted.clone() } else { granted.join(&rest) };
        let (grants, path) = (Arc::clone(self), path.to_owned());
        let Some(real) = real_path(&granted).map_err(told)? else {
            let (above, missing) = existing_above(&granted).map_err(told)?;
            self.check_target(need, grant, &above.join(&missing))?;
            let dir = Dir::open_ambient_dir(above, ambient_authority()).map_err(told)?;
            return Ok(Some(Place { need, dir, rest, full, grants, granted, path, missing: Some(missing) }));
        };
        self.check_target(need, grant, &real)?;
        if std::fs::metadata(&real).map_err(told)?.is_dir() {
            let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(told)?;
            return Ok(Some(Place { need, dir, rest, full, grants, granted, path, missing: None }));
        }
        let (true, Some(folder), Some(name)) = (is_grant, real.parent(), real.file_name()) else {
            return Ok(None);
        };
        let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(told)?;
        let rest = PathBuf::from(name);
        Ok(Some(Place { need, dir, rest, full, grants, granted, path, missing: None }))
    }

    /// Refuses a grant that is a link to something hidden in the project, which its name does not say.
    fn check_target(&self, need: Need, grant: &PathGrant, real: &Path) -> Result<(), HostError> {
        let Some(root) = &self.root else { return Ok(()) };
        if grant.unnamed_hidden(real, root).is_none() {
            return Ok(());
        }
        Err(hidden(need, &grant.name, real.strip_prefix(root).unwrap_or(real)))
    }
}

/// `path` without links; `None` where there is nothing.
fn real_path(path: &Path) -> std::io::Result<Option<PathBuf>> {
    match std::fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        // A link to nothing is something.
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The nearest folder above `path` that exists, without links, and what of `path` is missing in it.
fn existing_above(path: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    for above in path.ancestors().skip(1) {
        if let (Some(real), Ok(missing)) = (real_path(above)?, path.strip_prefix(above)) {
            return Ok((real, missing.to_path_buf()));
        }
    }
    Err(ErrorKind::NotFound.into())
}

impl Place {
    /// `error` of this path.
    pub(super) fn failed(&self, error: &Error) -> HostError {
        failed(self.need, &self.path, error)
    }

    /// That this path is not what it should be.
    pub(super) fn wrong(&self, what: impl Display) -> HostError {
        wrong(format!("{} {what}", shown(&self.path)))
    }

    /// Whether the granted folder exists.
    pub(super) fn exists(&self) -> bool {
        self.missing.is_none()
    }

    /// The place, where it can be looked into.
    pub(super) fn existing(self) -> Result<Self, HostError> {
        if self.exists() { Ok(self) } else { Err(self.failed(&ErrorKind::NotFound.into())) }
    }

    /// Whether it is the granted folder itself.
    pub(super) fn is_grant(&self) -> bool {
        self.rest == Path::new(".")
    }

    /// The folder that holds this path, and its name there. A link at its end is followed where `follow` says so.
    /// `make` is asked before a missing folder on the way is made; without it, that one is missing is an error.
    pub(super) fn leaf(&self, follow: bool, make: Option<Making<'_>>) -> Result<Leaf, HostError> {
        let told = |error: Error| self.failed(&error);
        let mut dir = self.dir.try_clone().map_err(told)?;
        let mut rest = self.rest.clone();
        if let Some(missing) = &self.missing {
            let folders = if self.is_grant() { parent(missing) } else { missing };
            if make.is_none() && !folders.as_os_str().is_empty() {
                return Err(told(ErrorKind::NotFound.into()));
            }
            dir = self.make_folders(dir, folders, make)?;
            if self.is_grant() {
                rest = missing.file_name().map(PathBuf::from).unwrap_or_default();
            }
        } else if follow && dir.symlink_metadata(&rest).is_ok_and(|about| about.is_symlink()) {
            rest = self.resolve(&rest)?.map_err(told)?;
        }
        let Some(name) = rest.file_name().map(OsString::from) else {
            return Err(self.wrong("is the granted folder itself; name what is in it"));
        };
        let dir = self.open_folders(dir, parent(&rest), make)?;
        let about = match dir.symlink_metadata(&name) {
            Ok(about) => Some(about),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(told(error)),
        };
        Ok(Leaf { dir, name, about })
    }

    /// The folder `path` beneath `dir`; what is missing of it is made.
    fn open_folders(&self, dir: Dir, path: &Path, make: Option<Making<'_>>) -> Result<Dir, HostError> {
        for above in path.ancestors() {
            if above.as_os_str().is_empty() {
                return self.make_folders(dir, path, make);
            }
            match self.resolve(above)? {
                Ok(real) => {
                    let found = self.step_down(&real).map_err(|error| self.failed(&error))?;
                    let missing = path.strip_prefix(above).unwrap_or(Path::new(""));
                    return self.make_folders(found, missing, make);
                }
                Err(error) if error.kind() == ErrorKind::NotFound && make.is_some() => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Ok(dir)
    }

    /// The folder at this place.
    pub(super) fn folder(&self) -> Result<Dir, HostError> {
        let real = self.resolve(&self.rest)?;
        real.and_then(|real| self.step_down(&real)).map_err(|error| self.failed(&error))
    }

    /// What there is at this place, links followed.
    ///
    /// # Errors
    /// That it is not allowed; and, within, why it cannot be had.
    pub(super) fn about(&self) -> Result<std::io::Result<Metadata>, HostError> {
        let real = match self.resolve(&self.rest)? {
            Ok(real) => real,
            Err(error) => return Ok(Err(error)),
        };
        Ok(match real.file_name() {
            None => self.dir.dir_metadata(),
            Some(name) => self.step_down(parent(&real)).and_then(|dir| dir.symlink_metadata(name)),
        })
    }

    /// `path` beneath `dir` without links.
    ///
    /// # Errors
    /// That a link leads to something hidden; and, within, why it cannot be followed.
    fn resolve(&self, path: &Path) -> Result<std::io::Result<PathBuf>, HostError> {
        // Of what is not there, the way to it counts: that it is missing in a hidden folder is not told either.
        for above in path.ancestors() {
            match self.dir.canonicalize(above) {
                Ok(real) => {
                    self.check_hidden(above, &real)?;
                    let missing = || Err(ErrorKind::NotFound.into());
                    return Ok(if above == path { Ok(real) } else { missing() });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Err(ErrorKind::NotFound.into()))
    }

    /// Refuses `real`, which `path` leads to, where that is hidden and no grant names it.
    fn check_hidden(&self, path: &Path, real: &Path) -> Result<(), HostError> {
        // Without a link on the way it is as the script named it, which was checked.
        if real == path || hidden_names(real).next().is_none() {
            return Ok(());
        }
        let full = self.granted.join(real);
        if self.grants.covers(self.need, &full) {
            return Ok(());
        }
        let named = self.grants.root.as_ref().and_then(|root| full.strip_prefix(root).ok());
        Err(hidden(self.need, &self.path, named.unwrap_or(real)))
    }

    /// The folder `real` beneath `dir`; no link is followed, whatever has appeared on the way meanwhile.
    fn step_down(&self, real: &Path) -> std::io::Result<Dir> {
        let mut dir = self.dir.try_clone()?;
        for part in real.components() {
            if let Component::Normal(name) = part {
                dir = open_folder(&dir, Path::new(name))?;
            }
        }
        Ok(dir)
    }

    /// Makes each folder of `path` beneath `dir`, unless it is there; no link is followed.
    fn make_folders(&self, mut dir: Dir, path: &Path, make: Option<Making<'_>>) -> Result<Dir, HostError> {
        for step in path {
            if let Some(make) = make {
                match dir.symlink_metadata(step) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        make()?;
                        dir.create_dir(step).map_err(|error| self.failed(&error))?;
                    }
                    _ => {}
                }
            }
            dir = open_folder(&dir, Path::new(step)).map_err(|error| self.failed(&error))?;
        }
        Ok(dir)
    }
}

/// Asked before a folder is made.
pub(super) type Making<'m> = &'m dyn Fn() -> Result<(), HostError>;

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
