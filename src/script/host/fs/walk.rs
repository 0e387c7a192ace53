//! `glob`: files by a pattern, in a walk beneath one granted folder.
//!
//! The walk opens each folder beneath the handle of the one above it and follows no link, so that it neither leaves the
//! grant nor runs in circles. It goes through names in their order: a limit always leaves out the same.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, FileType};
use globset::{GlobBuilder, GlobMatcher};

use super::Work;
use super::grant::{Need, Place};
use super::ignored::Ignores;
use super::look::kind;
use super::open::open_folder;
use super::{shown, wrong};
use crate::script::error::HostError;
use crate::script::permission::is_hidden;

/// Most paths that a walk answers.
pub(super) const MAX_FOUND: u64 = 100_000;
/// Deepest folder that it goes into.
pub(super) const MAX_DEPTH: u64 = 100;
/// Most entries that it looks at.
pub(super) const MAX_SEEN: usize = 300_000;
/// Longest pattern, in bytes.
const MAX_PATTERN: usize = 1_000;

/// What is looked for.
pub(super) struct Query {
    pub(super) pattern: String,
    /// The folder that the pattern is relative to.
    pub(super) root: Option<String>,
    /// `file`, `directory` or `any`.
    pub(super) kind: &'static str,
    pub(super) hidden: Option<bool>,
    pub(super) gitignore: bool,
    pub(super) limit: u64,
    pub(super) depth: u64,
}

/// The paths that match, and whether there may be more.
pub(super) fn glob(work: &Work, query: Query) -> Result<(Vec<String>, bool), HostError> {
    if query.pattern.len() > MAX_PATTERN {
        return Err(wrong(format!("the pattern is longer than {MAX_PATTERN} bytes")));
    }
    let (literal, pattern) = split(&query.pattern);
    let root = query.root.as_deref().unwrap_or("");
    let base = match (root.trim_end_matches('/'), literal) {
        ("", literal) if root.is_empty() => literal.to_owned(),
        (root, "") => format!("{root}/"),
        (root, literal) => format!("{root}/{literal}"),
    };
    let matcher = GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| wrong(format!("the pattern {}: {}", shown(&query.pattern), error.kind())))?
        .compile_matcher();
    let place = work.grants.open(Need::Look, if base.is_empty() { "." } else { &base })?;
    let is_there = place.exists() && place.about()?.is_ok_and(|about| about.is_dir());
    if !is_there && query.root.is_none() {
        return Ok((Vec::new(), false));
    }
    let place = place.existing()?;
    let top = place.folder()?;
    let mut ignores = Ignores::new(query.gitignore);
    let mut path = String::new();
    if !place.is_grant() {
        ignores.add_above(&place.dir, &place.rest);
        path = format!("{}/", place.rest.to_string_lossy());
    }
    let steps = pattern.split('/').count() as u64;
    let is_bounded = !pattern.contains("**") && !pattern.contains('{');
    let mut walk = Walk {
        work,
        matcher,
        base: base.strip_prefix("./").unwrap_or(&base).to_owned(),
        full: place.full.clone(),
        skipped: path.len(),
        hidden: query.hidden.unwrap_or_else(|| pattern.split('/').any(|step| step.starts_with('.'))),
        depth: if is_bounded { query.depth.min(steps) } else { query.depth } as usize,
        limit: query.limit as usize,
        kind: query.kind,
        path,
        ignores,
        seen: 0,
        found: Vec::new(),
    };
    let whole = walk.run(&place, top)?;
    Ok((walk.found, !whole))
}

/// The folders that `pattern` begins with and that have no wildcard, with the slash after them, and the rest.
fn split(pattern: &str) -> (&str, &str) {
    let is_wild = |step: &str| step.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let mut at = 0;
    for step in pattern.split_inclusive('/') {
        if is_wild(step) || !step.ends_with('/') {
            break;
        }
        at += step.len();
    }
    pattern.split_at(at)
}

struct Walk<'w> {
    work: &'w Work,
    matcher: GlobMatcher,
    /// What found paths begin with.
    base: String,
    /// The folder where the walk began, in full.
    full: PathBuf,
    /// How much of `path` lies above that folder.
    skipped: usize,
    hidden: bool,
    depth: usize,
    limit: usize,
    kind: &'static str,
    /// The folder or file that is looked at, from the granted folder.
    path: String,
    ignores: Ignores,
    seen: usize,
    found: Vec<String>,
}

/// A folder that is being walked.
struct Open {
    dir: Dir,
    names: std::vec::IntoIter<Name>,
    /// How long the path of the folder is.
    path: usize,
}

struct Name {
    exact: OsString,
    shown: String,
    kind: FileType,
}

/// What a folder held.
enum Listed {
    Names(std::vec::IntoIter<Name>),
    /// More than a walk looks at.
    TooMany,
    Unreadable(std::io::Error),
}

impl Walk<'_> {
    /// Whether everything was seen.
    fn run(&mut self, place: &Place, top: Dir) -> Result<bool, HostError> {
        let names = match self.names(&top)? {
            Listed::Names(names) => names,
            Listed::TooMany => return Ok(false),
            Listed::Unreadable(error) => return Err(place.failed(&error)),
        };
        self.ignores.enter(&top, self.path.len());
        let mut open = vec![Open { dir: top, names, path: self.path.len() }];
        while let Some(folder) = open.last_mut() {
            self.path.truncate(folder.path);
            let Some(Name { exact, shown, kind: file }) = folder.names.next() else {
                open.pop();
                self.ignores.leave();
                continue;
            };
            self.path.push_str(&shown);
            if self.ignores.ignore(&self.path, file.is_dir()) {
                continue;
            }
            if !self.take(file) {
                return Ok(false);
            }
            // A folder that vanished, or may not be read, has nothing in it.
            if file.is_dir()
                && open.len() < self.depth
                && let Some(folder) = open.last()
                && let Ok(dir) = open_folder(&folder.dir, Path::new(&exact))
            {
                self.path.push('/');
                match self.names(&dir)? {
                    Listed::Names(names) => {
                        self.ignores.enter(&dir, self.path.len());
                        open.push(Open { dir, names, path: self.path.len() });
                    }
                    Listed::TooMany => return Ok(false),
                    Listed::Unreadable(_) => {}
                }
            }
        }
        Ok(true)
    }

    /// Keeps the path if it is looked for; whether there was room for it.
    fn take(&mut self, file: FileType) -> bool {
        let path = self.path.get(self.skipped..).unwrap_or_default();
        let is_wanted = self.kind == "any" || self.kind == kind(file);
        if !is_wanted || !self.matcher.is_match(path) {
            return true;
        }
        if self.found.len() >= self.limit {
            return false;
        }
        self.found.push(format!("{}{path}", self.base));
        true
    }

    /// Whether the hidden entry `name` of the folder that is looked at is asked for, and granted.
    fn shows_hidden(&self, name: &OsStr) -> bool {
        let beneath = self.path.get(self.skipped..).unwrap_or_default();
        self.hidden && self.work.grants.covers(Need::Look, &self.full.join(beneath).join(name))
    }

    fn names(&mut self, dir: &Dir) -> Result<Listed, HostError> {
        let entries = match dir.entries() {
            Ok(entries) => entries,
            Err(error) => return Ok(Listed::Unreadable(error)),
        };
        let mut names = Vec::new();
        for entry in entries.flatten() {
            self.work.go_on()?;
            self.seen += 1;
            if self.seen > MAX_SEEN {
                return Ok(Listed::TooMany);
            }
            let exact = entry.file_name();
            let shown = exact.to_string_lossy().into_owned();
            if self.ignores.always_ignore(&shown) || (is_hidden(&exact) && !self.shows_hidden(&exact)) {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            names.push(Name { exact, shown, kind });
        }
        // In the order of the whole paths: what is in `a` comes after `a.txt`.
        names.sort_by(|one, other| one.key().cmp(other.key()));
        Ok(Listed::Names(names.into_iter()))
    }
}

impl Name {
    fn key(&self) -> impl Iterator<Item = u8> {
        self.shown.bytes().chain(self.kind.is_dir().then_some(b'/'))
    }
}
