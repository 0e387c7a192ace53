//! Script files: where they are, and reading them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::spec::Tool;
use deftool_script::{Script, find_requires};

use crate::load::cache::{Cache, CachedFile};
use crate::load::model::ScriptFile;
use crate::load::outside::check_inside;
use crate::load::read::{Known, MAX_SCRIPT_READ};
use crate::model::LoadedTool;
use crate::paths::{display_name, scripts_folder};

/// Returns the paths at which the script of a tool may be, in order of precedence. A tool that runs a program has none.
pub fn script_candidates(root: &Path, tool: &Tool) -> Vec<PathBuf> {
    match &tool.script {
        _ if tool.command.is_some() => Vec::new(),
        Some(path) => vec![root.join(&path.value)],
        None => {
            let (scripts, name) = (scripts_folder(root), tool.name.value.as_str());
            let path = |extension: &str| {
                let length = scripts.as_os_str().len() + 1 + name.len() + extension.len();
                let mut path = PathBuf::with_capacity(length);
                path.extend([scripts.as_path(), Path::new(name)]);
                path.as_mut_os_string().push(extension);
                path
            };
            vec![path(".lua"), path(".luau")]
        }
    }
}

/// Returns the path of the script of a tool, if it exists.
pub(super) fn find_script(root: &Path, tool: &LoadedTool) -> Option<PathBuf> {
    script_candidates(root, &tool.tool).into_iter().find(|path| path.exists())
}

/// Reads the file of a script or module of the project at `root`.
///
/// # Errors
/// If it cannot be read or is outside of the project.
pub(crate) fn read_script(
    cache: &Cache,
    root: &Path,
    path: &Path,
    from: &Path,
) -> std::io::Result<Arc<ScriptFile>> {
    let known = if cache.snapshot().is_plain_file(path) { Known::PlainFile } else { Known::Nothing };
    if known != Known::PlainFile {
        check_inside(root, path)?;
    }
    let make = |bytes: Vec<u8>, _: Option<&ScriptFile>| {
        let requires = find_requires(&bytes);
        ScriptFile::new(Script::new("", display_name(path, from), bytes), requires)
    };
    cache.read(&cache.scripts, (path, known), |_| true, make)
}

impl CachedFile for ScriptFile {
    const MAX_READ: u64 = MAX_SCRIPT_READ;
    const IS_SHARED: bool = true;

    fn matches_bytes(&self, bytes: &[u8]) -> bool {
        *self.script.source == *bytes
    }
}

/// Returns why it is unknown whether a file exists at `path`: a folder without read permission, or circular links.
pub(super) fn access_error(path: &Path) -> Option<std::io::Error> {
    let error = std::fs::metadata(path).err()?;
    let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    (!is_absent).then_some(error)
}
