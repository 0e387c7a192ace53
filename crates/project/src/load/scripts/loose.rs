//! Modules and test scripts that no tool uses. Those that do not compile are reported.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::text::SourceFile;

use super::file::read_script;
use crate::load::cache::Cache;
use crate::model::Load;
use crate::parallel;
use crate::paths::{is_test_script, lib_folder, scripts_folder};
use crate::rules::module_does_not_compile;

/// Reports the modules and test scripts of the project at `root` that do not compile, unless `is_reported` returns true
/// for their names.
pub(super) fn report_loose(
    cache: &Cache,
    load: &mut Load,
    root: &Path,
    from: &Path,
    is_reported: impl Fn(&str) -> bool,
) {
    let (scripts, lib) = (scripts_folder(root), lib_folder(root));
    let folders = cache.snapshot().scripts.iter();
    let of_project = folders.filter(|(folder, _)| **folder == scripts || folder.starts_with(&lib));
    let listed = of_project.flat_map(|(_, files)| files);
    let mut paths: Vec<&PathBuf> =
        listed.filter(|path| is_test_script(path) || path.starts_with(&lib)).collect();
    paths.sort_unstable();
    // A file that cannot be read is reported where it is used.
    let files = parallel::map(&paths, |_, path| read_script(cache, root, path, from).ok());
    for (path, file) in paths.into_iter().zip(files) {
        let Some(file) = file.filter(|file| !is_reported(&file.script.file)) else { continue };
        let Err(problem) = file.module().contract() else { continue };
        let text = String::from_utf8_lossy(&file.script.source).into_owned();
        let root = Arc::from(root);
        let source = load.add_source(SourceFile::new(file.script.file.clone(), text), Some(&root));
        let at = load.line_location(source, problem.line.unwrap_or(1));
        load.findings.push(if is_test_script(path) {
            module_does_not_compile::test(at, &problem.message)
        } else {
            module_does_not_compile::finding(at, &problem.message)
        });
    }
}
