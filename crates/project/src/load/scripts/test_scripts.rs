//! Test scripts of a project: locates and reads them with their modules. Does not run them.
//!
//! A file called `NAME_test.lua` or `NAME_test.luau` below `scripts/` or `specs/` is a test script, unless it is the
//! script of a tool (a tool may be called `run_test`).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_script::{PathGrant, Script};

use super::file::{read_script, script_candidates};
use crate::load::cache::Cache;
use crate::load::discover::tests_in;
use crate::load::model::Unit;
use crate::model::{Load, ProjectError};
use crate::paths::normalize;

/// A test script.
#[derive(Debug, Clone)]
pub struct TestScript {
    /// The path.
    pub path: PathBuf,
    /// The script. Its only permission is read access to the project.
    pub script: Arc<Script>,
}

/// Returns the test scripts of the project at `root`, sorted by path, or only those in `only`. Scripts of tools are
/// left out. File names in messages are relative to `from`.
///
/// # Errors
/// If a file cannot be read.
pub fn find_tests(
    load: &Load,
    root: &Path,
    from: &Path,
    only: Option<&[PathBuf]>,
) -> Result<Vec<TestScript>, ProjectError> {
    let candidates = load.tools.iter().flat_map(|loaded| script_candidates(root, &loaded.tool));
    let of_tools: HashSet<PathBuf> = candidates.map(|path| normalize(&path)).collect();
    let only: Option<HashSet<PathBuf>> = only.map(|only| only.iter().map(|path| normalize(path)).collect());
    let is_wanted = |path: &PathBuf| {
        let path = normalize(path);
        !of_tools.contains(&path) && only.as_ref().is_none_or(|only| only.contains(&path))
    };
    // Modules shared by tests are read and compiled once.
    let cache = Cache::default();
    let read = |path: PathBuf| {
        let script = read_test(&cache, &path, root, from)
            .map_err(|source| ProjectError::Unreadable { path: path.clone(), source })?;
        Ok(TestScript { path, script: Arc::new(script) })
    };
    tests_in(root).into_iter().filter(is_wanted).map(read).collect()
}

/// Reads a test script. Missing modules are reported by `require` when the test runs.
fn read_test(cache: &Cache, path: &Path, root: &Path, from: &Path) -> std::io::Result<Script> {
    let file = read_script(cache, root, path, from)?;
    let mut script = file.script.for_tool(path.file_stem().unwrap_or_default().to_string_lossy());
    script.permissions.read = vec![PathGrant::new(".", root)];
    script.root = Some(root.to_owned());
    script.modules = Unit::of(cache, root, path, &file, from).modules();
    Ok(script)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tests_share_their_modules() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("scripts/lib/deep")).unwrap();
        fs::create_dir_all(root.join("specs/shared")).unwrap();
        for (file, text) in [
            ("scripts/a_test.lua", "require('./lib/m')"),
            ("scripts/lib/b_test.lua", "require('./m') require('./absent') require('../../outside')"),
            ("scripts/lib/deep/c_test.lua", "require('../m')"),
            ("specs/shared/d_test.lua", "require('../../scripts/lib/m')"),
            ("scripts/lib/m.lua", "return require('./deep/n')"),
            ("scripts/lib/deep/n.luau", "return 1"),
            ("outside.lua", "return 1"),
        ] {
            fs::write(root.join(file), text).unwrap();
        }
        // Problems with modules are reported when the test runs.
        let tests = find_tests(&Load::default(), root, root, None).unwrap();
        assert_eq!(tests.len(), 4);
        let modules = |test: &TestScript| test.script.modules.iter().map(Arc::as_ptr).collect::<Vec<_>>();
        for test in &tests {
            let names: Vec<_> = test.script.modules.iter().map(|module| module.path()).collect();
            assert_eq!(names, ["scripts/lib/m", "scripts/lib/deep/n"], "{}", test.script.file);
            assert_eq!(modules(test), modules(&tests[0]), "the module was read again");
        }
    }
}
