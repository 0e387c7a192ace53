//! Paths: normal forms, display names, project folders and file kinds.

use std::path::{Component, Path, PathBuf};

use deftool_lang::spec::FileKind;
use deftool_script::{PathGrant, is_hidden};

/// File extensions of spec files.
const SPEC_EXTENSIONS: [&str; 4] = ["eld", "el", "lisp", "sexp"];

/// File extensions of scripts.
const SCRIPT_EXTENSIONS: [&str; 2] = ["lua", "luau"];

/// Maximum number of links to follow, as in operating systems.
const MAX_LINKS: usize = 40;

/// Returns the path relative to `from`, with forward slashes.
pub fn display_name(path: &Path, from: &Path) -> String {
    let path = path.strip_prefix(from).unwrap_or(path);
    let path = path.strip_prefix(".").unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}

/// Returns whether the script's name marks it as a test: `NAME_test.lua`.
pub fn is_test_script(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    is_script(path) && stem.is_some_and(|stem| stem.ends_with("_test"))
}

/// Resolves all links of an absolute path, even if parts of it do not exist.
pub fn resolve_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    let mut rest = Vec::new();
    let mut links = 0;
    loop {
        if let Ok(mut found) = std::fs::canonicalize(&path) {
            found.extend(rest.iter().rev());
            return found;
        }
        // Follow a dangling link, too, because its target may be created later.
        match std::fs::read_link(&path) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                path = PathGrant::new("", path.parent().unwrap_or(&path).join(target)).path;
            }
            Ok(_) | Err(_) => {
                let Some(name) = path.file_name().map(ToOwned::to_owned) else {
                    path.extend(rest.iter().rev());
                    return path;
                };
                rest.push(name);
                path.pop();
            }
        }
    }
}

/// Returns a path that is equal for all names of one file.
pub(crate) fn identity(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns an absolute path without `.` and `..`, so that its ancestors are its parent folders.
pub fn normalize(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut normalized = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => {
                normalized.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::Normal(_) => {
                normalized.push(component);
            }
        }
    }
    normalized
}

/// Returns the scripts folder of a project.
pub(crate) fn scripts_folder(root: &Path) -> PathBuf {
    root.join("scripts")
}

/// Returns the folders of a project that may contain scripts. Those below `specs/` are shared with their specs.
pub(crate) fn folders_with_scripts(root: &Path) -> [PathBuf; 2] {
    [scripts_folder(root), root.join("specs")]
}

/// Returns the folder of shared modules.
pub(crate) fn lib_folder(root: &Path) -> PathBuf {
    scripts_folder(root).join("lib")
}

/// Returns whether the file has the extension of a list of tools of another program.
pub fn is_tool_list(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Returns whether the file has the extension of a spec or script.
pub(crate) fn is_source(path: &Path) -> bool {
    is_spec(path) || is_script(path)
}

/// Returns whether a scan of the scripts lists a file of this name.
pub(crate) fn is_listed_script(path: &Path) -> bool {
    is_script(path) && !is_hidden_path(path)
}

pub(crate) fn is_spec(path: &Path) -> bool {
    ends_in(path, &SPEC_EXTENSIONS)
}

/// Returns whether specs in the file stand among other code.
pub(crate) fn is_code(path: &Path) -> bool {
    FileKind::of_name(&path.to_string_lossy()).is_code()
}

/// Returns whether `path`, relative to a folder of spec files, is a spec file that a load of the folder reads.
pub fn is_visible_spec(path: &Path) -> bool {
    is_spec(path) && !path.ancestors().any(is_hidden_path)
}

pub(crate) fn is_script(path: &Path) -> bool {
    ends_in(path, &SCRIPT_EXTENSIONS)
}

pub(crate) fn is_hidden_path(path: &Path) -> bool {
    path.file_name().is_some_and(is_hidden)
}

pub(crate) fn ends_in(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extensions.contains(&extension))
}
