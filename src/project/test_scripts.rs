//! The files of tests of a project: found and read, with the modules that they require. Never run here.
//!
//! A file called `NAME_test.lua` (or `.luau`) anywhere beneath `scripts/` holds tests, unless a tool runs it: a tool may
//! be called `run_test`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache::MOST_OF_SCRIPT;
use super::discover::{clean, tests_in};
use super::outside::refuse_outside;
use super::read::{display_name, read_regular};
use super::scripts::script_places;
use super::{Load, ProjectError};
use crate::script::{Module, PathGrant, Script, module_path, required};

/// Most modules that a file requires, with those that they require.
const MAX_MODULES: usize = 200;

/// A file of tests.
#[derive(Debug, Clone)]
pub struct TestScript {
    /// Where it is.
    pub path: PathBuf,
    /// It as a script. What it may use itself: the project's files, to read.
    pub script: Arc<Script>,
}

/// The tests of the project at `root`, sorted by path: those of `only`, where it names some. A file that a tool of `load` runs
/// is none. Names in messages are relative to `from`.
///
/// # Errors
/// When a file cannot be read.
pub fn find_tests(
    load: &Load,
    root: &Path,
    from: &Path,
    only: Option<&[PathBuf]>,
) -> Result<Vec<TestScript>, ProjectError> {
    let places = load.tools.iter().flat_map(|loaded| script_places(root, &loaded.tool));
    let of_tools: HashSet<PathBuf> = places.map(|path| clean(&path)).collect();
    let only: Option<HashSet<PathBuf>> = only.map(|only| only.iter().map(|path| clean(path)).collect());
    let is_wanted = |path: &PathBuf| {
        let path = clean(path);
        !of_tools.contains(&path) && only.as_ref().is_none_or(|only| only.contains(&path))
    };
    let read = |path: PathBuf| {
        let script = read_test(&path, root, from)
            .map_err(|source| ProjectError::Unreadable { path: path.clone(), source })?;
        Ok(TestScript { path, script: Arc::new(script) })
    };
    tests_in(root).into_iter().filter(is_wanted).map(read).collect()
}

fn read_test(path: &Path, root: &Path, from: &Path) -> std::io::Result<Script> {
    refuse_outside(&clean(root), &clean(path))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut script = Script::new(stem, display_name(path, from), read_regular(path, MOST_OF_SCRIPT)?.bytes);
    script.permissions.read = vec![PathGrant::new(".", root)];
    script.root = Some(root.to_owned());
    script.modules = modules_of(&script, root, from).into();
    Ok(script)
}

/// The modules that `script` requires, and those that they require. What is not there is told by `require`, when it is run.
fn modules_of(script: &Script, root: &Path, from: &Path) -> Vec<Arc<Module>> {
    let root = clean(root);
    let library = root.join("scripts/lib");
    let read = |path: &Path| {
        let is_inside = path.starts_with(&library) && refuse_outside(&root, path).is_ok();
        is_inside.then(|| read_regular(path, MOST_OF_SCRIPT).ok())?
    };
    let mut found: Vec<Arc<Module>> = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![(script.file.clone(), Arc::clone(&script.source))];
    while let Some((file, source)) = pending.pop() {
        for wanted in required(&source).into_iter().filter_map(|require| require.wanted) {
            let Ok(path) = module_path(&file, &wanted) else { continue };
            if found.len() >= MAX_MODULES || !seen.insert(path.clone()) {
                continue;
            }
            let place = ["lua", "luau"].map(|extension| format!("{path}.{extension}"));
            let found_here = place.into_iter().find_map(|name| {
                let file = read(&clean(&from.join(&name)))?;
                Some((name, file))
            });
            if let Some((name, bytes)) = found_here {
                let module = Arc::new(Module::new(name.clone(), bytes.bytes));
                pending.push((name, Arc::clone(&module.source)));
                found.push(module);
            }
        }
    }
    found
}
