//! Search for the projects below a folder. Hidden and ignored folders are not searched, and links are not followed.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::other_files::SKIPPED;
use super::read::{Known, read_regular};
use super::snapshot::Snapshot;
use crate::model::{Input, ProjectError};
use crate::paths::{is_hidden_path, normalize};

/// The bounds of a search.
struct Limits {
    /// Maximum number of folder levels below the first folder.
    levels: usize,
    /// Maximum number of folders to examine.
    folders: usize,
}

/// The bounds of a search for a suggestion in an error message.
const SUGGESTION: Limits = Limits { levels: 3, folders: 1_000 };
/// The bounds of a search for all projects.
const ALL: Limits = Limits { levels: usize::MAX, folders: 100_000 };
/// Maximum number of suggested projects.
const MAX_SUGGESTED: usize = 3;
/// Maximum size of an ignore file in bytes. The rest of the file has no effect.
const MAX_IGNORE_FILE: u64 = 1 << 20;

/// Returns whether `folder` is the root of a project that has spec files. An unreadable `specs` folder may have some.
pub fn has_specs(folder: &Path) -> bool {
    folder.join("specs").is_dir()
        && Input::of_project(folder.to_owned(), &mut Snapshot::default())
            .map_or(true, |input| !input.is_empty())
}

/// Returns the projects with spec files in the subfolders of `folder`, sorted, also those inside of other projects.
///
/// # Errors
/// If there are too many folders.
pub fn find_projects(folder: &Path) -> Result<Vec<PathBuf>, ProjectError> {
    let folder = normalize(folder);
    match search(&folder, &ALL) {
        (found, true) => Ok(found),
        (_, false) => Err(ProjectError::TooManyFolders { folder, limit: ALL.folders }),
    }
}

/// Returns some projects in the subfolders of `folder`, sorted, for a suggestion. Looks at the first levels only.
pub fn projects_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, _) = search(&normalize(folder), &SUGGESTION);
    found.truncate(MAX_SUGGESTED);
    found
}

/// Returns the projects, and whether all folders were examined.
fn search(top: &Path, limits: &Limits) -> (Vec<PathBuf>, bool) {
    let (mut found, mut is_complete) = (Vec::new(), true);
    let mut pending = vec![(top.to_owned(), 0, IgnoreRules::of_parents(top))];
    let mut examined = 0;
    'folders: while let Some((folder, level, above)) = pending.pop() {
        let rules = IgnoreRules::enter(above, &folder);
        let is_project = folder.join("specs").is_dir();
        for path in folders_in(&folder).filter(|path| !is_skipped(path, is_project)) {
            if rules.as_ref().is_some_and(|rules| rules.ignore(&path)) {
                continue;
            }
            examined += 1;
            if examined > limits.folders {
                is_complete = false;
                break 'folders;
            }
            if has_specs(&path) {
                found.push(path.clone());
            }
            if level + 1 < limits.levels {
                pending.push((path, level + 1, rules.clone()));
            }
        }
    }
    found.sort_unstable();
    (found, is_complete)
}

/// Returns the folders in a folder, without links.
fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

/// Returns whether a folder is not searched: it is hidden, belongs to another tool, or has the files of a project.
fn is_skipped(path: &Path, parent_is_project: bool) -> bool {
    is_hidden_path(path)
        || SKIPPED.iter().any(|name| path.ends_with(name))
        || parent_is_project && (path.ends_with("specs") || path.ends_with("scripts"))
}

/// The rules of the ignore files of a folder, and of the folders above it in its git repository.
///
/// The user's and the repository's own files (`core.excludesFile`, `.git/info/exclude`) do not apply, so that a check
/// has the same result on every machine.
struct IgnoreRules {
    own: Gitignore,
    above: Option<Rc<Self>>,
}

impl IgnoreRules {
    /// Returns the rules of the folders above `folder`, up to the root of its git repository.
    fn of_parents(folder: &Path) -> Option<Rc<Self>> {
        let levels = folder.ancestors().position(|folder| folder.join(".git").exists())?;
        let parents: Vec<&Path> = folder.ancestors().skip(1).take(levels).collect();
        parents.into_iter().rev().fold(None, Self::enter)
    }

    /// Adds the rules of `folder` to those of the folders above it.
    fn enter(above: Option<Rc<Self>>, folder: &Path) -> Option<Rc<Self>> {
        let mut rules = GitignoreBuilder::new(folder);
        // `.ignore` comes last, so its rules take precedence.
        for name in [".gitignore", ".ignore"] {
            let Ok(file) = read_regular(&folder.join(name), Known::PlainFile, MAX_IGNORE_FILE) else {
                continue;
            };
            for line in String::from_utf8_lossy(&file.bytes).lines() {
                // Skip invalid lines, like git.
                let _ = rules.add_line(None, line);
            }
        }
        match rules.build() {
            Ok(own) if !own.is_empty() => Some(Rc::new(Self { own, above })),
            Ok(_) | Err(_) => above,
        }
    }

    /// Returns whether a folder is ignored. The innermost file with a matching rule decides.
    fn ignore(&self, folder: &Path) -> bool {
        let found = self.own.matched(folder, true);
        if found.is_none() {
            return self.above.as_ref().is_some_and(|above| above.ignore(folder));
        }
        found.is_ignore()
    }
}

/// A glob for the folders of projects, with the syntax of a line in `.gitignore`.
#[derive(Debug, Clone)]
pub struct ProjectGlob {
    /// The glob as written.
    pub text: String,
    /// Whether the glob begins with `!` and excludes projects.
    pub excludes: bool,
    rules: Gitignore,
}

impl ProjectGlob {
    /// # Errors
    /// If the glob is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (excludes, glob) = match text.strip_prefix('!') {
            Some(glob) => (true, glob),
            None => (false, text),
        };
        let mut rules = GitignoreBuilder::new(".");
        rules.add_line(None, glob.strip_prefix("./").unwrap_or(glob)).map_err(|error| error.to_string())?;
        let rules = rules.build().map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), excludes, rules })
    }

    /// Returns whether the glob names this folder. `folder` is relative, and empty for the start of the search, which
    /// only the glob `.` names.
    pub fn matches(&self, folder: &Path) -> bool {
        if folder.as_os_str().is_empty() {
            return self.text.trim_start_matches('!').trim_end_matches('/') == ".";
        }
        !self.rules.matched(folder, true).is_none()
    }
}
