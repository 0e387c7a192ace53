//! `glob`: finds files by a pattern in a granted folder.
//!
//! Each folder is opened relative to the handle of its parent, and links are not followed, so the walk cannot leave the
//! grant and cannot loop. Entries are visited in sorted order, so a limit always returns the same paths.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, FileType};
use globset::{GlobBuilder, GlobMatcher};

use super::access::{Access, display_path, script_error};
use super::context::FsContext;
use super::grant::GrantedPath;
use super::ignore_rules::IgnoreRules;
use super::metadata::kind;
use super::no_follow::open_folder;
use crate::error::HostError;
use crate::permission::is_hidden;

/// Maximum number of paths to return.
pub(super) const MAX_RESULTS: u64 = 100_000;
/// Maximum depth of a walk.
pub(super) const MAX_DEPTH: u64 = 100;
/// Maximum number of entries to visit.
pub(super) const MAX_VISITED: usize = 300_000;
/// Maximum length of a pattern, in bytes.
const MAX_PATTERN: usize = 1_000;

/// The parameters of `glob`.
pub(super) struct GlobQuery {
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

/// Returns the paths that match, and whether there may be more.
pub(super) fn glob(context: &FsContext, query: GlobQuery) -> Result<(Vec<String>, bool), HostError> {
    if query.pattern.len() > MAX_PATTERN {
        return Err(script_error(format!("the pattern is longer than {MAX_PATTERN} bytes")));
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
        .map_err(|error| {
            script_error(format!("invalid pattern {}: {}", display_path(&query.pattern), error.kind()))
        })?
        .compile_matcher();
    let target = context.grants.open(Access::Inspect, if base.is_empty() { "." } else { &base })?;
    let is_there = target.exists() && target.metadata()?.is_ok_and(|metadata| metadata.is_dir());
    if !is_there && query.root.is_none() {
        return Ok((Vec::new(), false));
    }
    let target = target.existing()?;
    let top = target.folder()?;
    let mut ignore_rules = IgnoreRules::new(query.gitignore);
    let mut path = String::new();
    if !target.is_grant() {
        ignore_rules.add_above(&target.dir, &target.rest);
        path = format!("{}/", target.rest.to_string_lossy());
    }
    let steps = pattern.split('/').count() as u64;
    let is_bounded = !pattern.contains("**") && !pattern.contains('{');
    let mut walk = Walk {
        context,
        matcher,
        base: base.strip_prefix("./").unwrap_or(&base).to_owned(),
        full: target.full.clone(),
        skipped: path.len(),
        hidden: query.hidden.unwrap_or_else(|| pattern.split('/').any(|step| step.starts_with('.'))),
        depth: if is_bounded { query.depth.min(steps) } else { query.depth } as usize,
        limit: query.limit as usize,
        kind: query.kind,
        path,
        ignore_rules,
        visited: 0,
        found: Vec::new(),
    };
    let whole = walk.run(&target, top)?;
    Ok((walk.found, !whole))
}

/// Splits `pattern` into its leading folders without wildcards, with a trailing slash, and the rest.
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
    context: &'w FsContext,
    matcher: GlobMatcher,
    /// The prefix of the returned paths.
    base: String,
    /// The absolute path of the start folder.
    full: PathBuf,
    /// The length of the part of `path` that precedes the start folder, in bytes.
    skipped: usize,
    hidden: bool,
    depth: usize,
    limit: usize,
    kind: &'static str,
    /// The path of the current entry, relative to the granted folder.
    path: String,
    ignore_rules: IgnoreRules,
    visited: usize,
    found: Vec<String>,
}

/// A folder that the walk is in.
struct OpenFolder {
    dir: Dir,
    names: std::vec::IntoIter<Name>,
    /// The length of the folder's path, in bytes.
    path: usize,
}

struct Name {
    raw: OsString,
    text: String,
    kind: FileType,
}

/// The result of listing a folder.
enum Listing {
    Names(std::vec::IntoIter<Name>),
    /// The walk has visited the maximum number of entries.
    TooMany,
    Unreadable(std::io::Error),
}

impl Walk<'_> {
    /// Runs the walk. Returns whether it visited everything.
    fn run(&mut self, target: &GrantedPath, top: Dir) -> Result<bool, HostError> {
        let names = match self.names(&top)? {
            Listing::Names(names) => names,
            Listing::TooMany => return Ok(false),
            Listing::Unreadable(error) => return Err(target.io_error(&error)),
        };
        self.ignore_rules.enter(&top, self.path.len());
        let mut open = vec![OpenFolder { dir: top, names, path: self.path.len() }];
        while let Some(folder) = open.last_mut() {
            self.path.truncate(folder.path);
            let Some(Name { raw, text, kind: file }) = folder.names.next() else {
                open.pop();
                self.ignore_rules.leave();
                continue;
            };
            self.path.push_str(&text);
            if self.ignore_rules.ignore(&self.path, file.is_dir()) {
                continue;
            }
            if !self.take(file) {
                return Ok(false);
            }
            // A folder that was removed or cannot be read counts as empty.
            if file.is_dir()
                && open.len() < self.depth
                && let Some(folder) = open.last()
                && let Ok(dir) = open_folder(&folder.dir, Path::new(&raw))
            {
                self.path.push('/');
                match self.names(&dir)? {
                    Listing::Names(names) => {
                        self.ignore_rules.enter(&dir, self.path.len());
                        open.push(OpenFolder { dir, names, path: self.path.len() });
                    }
                    Listing::TooMany => return Ok(false),
                    Listing::Unreadable(_) => {}
                }
            }
        }
        Ok(true)
    }

    /// Adds the current path to the results if it matches. Returns false if the limit is reached.
    fn take(&mut self, file: FileType) -> bool {
        let path = self.path.get(self.skipped..).unwrap_or_default();
        let is_wanted = self.kind == "any" || self.kind == kind(file);
        if !is_wanted || !self.matcher.is_match(path) {
            return true;
        }
        if self.found.len() >= self.limit {
            return false;
        }
        // A name in the project that begins like a folder of the user.
        let dot = if self.base.is_empty() && path.starts_with(['~', '$']) { "./" } else { "" };
        self.found.push(format!("{dot}{}{path}", self.base));
        true
    }

    /// Returns whether hidden entries are requested and a grant covers `name` in the current folder.
    fn shows_hidden(&self, name: &OsStr) -> bool {
        let beneath = self.path.get(self.skipped..).unwrap_or_default();
        self.hidden && self.context.grants.covers(Access::Inspect, &self.full.join(beneath).join(name))
    }

    fn names(&mut self, dir: &Dir) -> Result<Listing, HostError> {
        let entries = match dir.entries() {
            Ok(entries) => entries,
            Err(error) => return Ok(Listing::Unreadable(error)),
        };
        let mut names = Vec::new();
        for entry in entries.flatten() {
            self.context.check_canceled()?;
            self.visited += 1;
            if self.visited > MAX_VISITED {
                return Ok(Listing::TooMany);
            }
            let raw = entry.file_name();
            let text = raw.to_string_lossy().into_owned();
            if self.ignore_rules.always_ignore(&text) || (is_hidden(&raw) && !self.shows_hidden(&raw)) {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            names.push(Name { raw, text, kind });
        }
        // In the order of the complete paths: the contents of `a` come after `a.txt`.
        names.sort_by(|one, other| one.key().cmp(other.key()));
        Ok(Listing::Names(names.into_iter()))
    }
}

impl Name {
    fn key(&self) -> impl Iterator<Item = u8> {
        self.text.bytes().chain(self.kind.is_dir().then_some(b'/'))
    }
}
