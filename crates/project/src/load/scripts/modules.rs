//! The modules of a script: files in `scripts/lib` that it requires with literal paths, directly or indirectly.
//!
//! A script and its modules form a unit. If one of the files changes or is missing, the unit changes. A module shared
//! by several scripts is read and compiled once.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use deftool_lang::spec::nearest;
use deftool_script::{Contract, MAX_MODULES, Module, Require, Returned, module_path};

use super::file::{access_error, read_script};
use crate::load::cache::Cache;
use crate::load::model::{ModuleFault, ModuleProblem, Part, ScriptFile, Unit};
use crate::paths::{display_name, identity, lib_folder};

/// Maximum number of module problems reported per script.
const MAX_PROBLEMS: usize = 20;

/// Return values that make a module invalid.
const NO_VALUE: [&str; 2] = ["nothing", "nil"];

impl Unit {
    /// Collects the script `file`, found at `path`, and its modules.
    pub(super) fn of(cache: &Cache, root: &Path, path: &Path, file: &Arc<ScriptFile>, from: &Path) -> Self {
        let mut unit = Self::default();
        unit.parts.push(Part { path: path.to_owned(), file: Arc::clone(file) });
        let lib = LazyCell::new(|| lib_folder(root));
        // Stack of a depth-first search: the part, and how many of its `require` calls are done.
        let mut open: Vec<(usize, usize)> = vec![(0, 0)];
        while let Some((part, done)) = open.last_mut() {
            let part = *part;
            let Some(here) = unit.parts.get(part) else { break };
            let Some(require) = here.file.requires.get(*done) else {
                open.pop();
                continue;
            };
            *done += 1;
            let (requirer, line, file) = (here.path.clone(), require.line, Arc::clone(&here.file));
            let fault = match module_location(&lib, &requirer, require) {
                Err(fault) => Some(fault),
                Ok((path, target)) => match unit.add(cache, root, &target, from) {
                    Added::Absent => {
                        let advice = advice_for(cache, &lib, &target, &requirer, from);
                        Some(ModuleFault::Missing { path, advice })
                    }
                    Added::Unreadable(advice) => Some(ModuleFault::Missing { path, advice }),
                    Added::TooMany => {
                        // Report only the first module above the limit.
                        open.clear();
                        Some(ModuleFault::TooMany(path))
                    }
                    Added::New(index) => {
                        open.push((index, 0));
                        None
                    }
                    Added::Known(index) => unit.find_cycle(&open, index),
                },
            };
            if unit.problems.len() < MAX_PROBLEMS {
                unit.problems.extend(fault.map(|fault| ModuleProblem { file, line, fault }));
            }
        }
        for part in unit.parts.iter().skip(1) {
            let (line, fault) = match part.file.module().contract() {
                Err(problem) => (problem.line.unwrap_or(1), ModuleFault::Broken(problem.clone())),
                Ok(Contract { returned: Returned::NoFunction(what), .. })
                    if NO_VALUE.contains(&what.as_str()) =>
                {
                    (1, ModuleFault::NoValue)
                }
                Ok(_) => continue,
            };
            unit.problems.push(ModuleProblem { file: Arc::clone(&part.file), line, fault });
        }
        unit
    }

    /// Returns the circular dependency that requiring the part `index` creates, if that part is in `open`.
    fn find_cycle(&self, open: &[(usize, usize)], index: usize) -> Option<ModuleFault> {
        let first = open.iter().position(|(part, _)| *part == index)?;
        let cycle = open.iter().skip(first).filter_map(|(part, _)| self.parts.get(*part));
        Some(ModuleFault::Cycle(cycle.map(|part| part.file.script.file.clone()).collect()))
    }

    /// Adds the module at `target`, a path without extension. Linear search is enough for the few parts.
    fn add(&mut self, cache: &Cache, root: &Path, target: &Path, from: &Path) -> Added {
        let candidates =
            ["lua", "luau"].map(|extension| PathBuf::from(format!("{}.{extension}", target.display())));
        let is_full = self.parts.len() > MAX_MODULES;
        for path in candidates {
            if let Some(known) = self.parts.iter().position(|part| part.path == path) {
                return Added::Known(known);
            }
            if is_full {
                continue;
            }
            if cache.stamp(&path).is_none() {
                let error = access_error(&path);
                let shown = display_name(&path, from);
                self.missing.push(path);
                match error {
                    Some(error) => return Added::Unreadable(format!("cannot read {shown}: {error}")),
                    None => continue,
                }
            }
            return match read_script(cache, root, &path, from) {
                Ok(file) => {
                    self.parts.push(Part { path, file });
                    Added::New(self.parts.len() - 1)
                }
                Err(error) => {
                    Added::Unreadable(format!("cannot read {}: {error}", display_name(&path, from)))
                }
            };
        }
        if is_full { Added::TooMany } else { Added::Absent }
    }

    /// Returns whether a module is missing or unreadable. Such a unit cannot be reused, since its messages mention
    /// other files.
    pub(super) fn has_missing_modules(&self) -> bool {
        self.problems.iter().any(|problem| matches!(problem.fault, ModuleFault::Missing { .. }))
    }

    /// Returns whether all files are unchanged.
    pub(super) fn is_current(&self, cache: &Cache, root: &Path, from: &Path) -> bool {
        let is_same = |part: &Part| {
            read_script(cache, root, &part.path, from).is_ok_and(|file| Arc::ptr_eq(&file, &part.file))
        };
        self.parts.iter().all(is_same) && self.missing.iter().all(|path| cache.stamp(path).is_none())
    }

    /// Returns the compiled modules.
    pub(super) fn modules(&self) -> Arc<[Arc<Module>]> {
        self.parts.iter().skip(1).map(|part| Arc::clone(part.file.module())).collect()
    }

    /// Returns those of `folders` that contain files of the unit. A folder comes before those in it.
    pub(super) fn linked_folders(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        if folders.is_empty() {
            return Vec::new();
        }
        let files = self.parts.iter().map(|part| identity(&part.path));
        let containing = |file: PathBuf| folders.iter().find(|folder| file.starts_with(folder));
        let used: BTreeSet<&PathBuf> = files.filter_map(containing).collect();
        used.into_iter().cloned().collect()
    }

    /// Returns the paths of the files, including the missing ones.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.parts.iter().map(|part| &part.path).chain(&self.missing)
    }
}

/// The result of adding a module.
enum Added {
    New(usize),
    /// The module is already part of the unit.
    Known(usize),
    Absent,
    TooMany,
    /// The module cannot be read. Holds the reason.
    Unreadable(String),
}

/// Returns the path as written and the resolved path without extension.
fn module_location(lib: &Path, requirer: &Path, require: &Require) -> Result<(String, PathBuf), ModuleFault> {
    let Some(path) = &require.path else { return Err(ModuleFault::Computed) };
    let missing = |advice| ModuleFault::Missing { path: path.clone(), advice };
    let target = PathBuf::from(module_path(&requirer.to_string_lossy(), path).map_err(missing)?);
    let is_inside = target.strip_prefix(lib).is_ok_and(|rest| {
        rest.components().all(|part| matches!(part, Component::Normal(_)))
            && rest.components().next().is_some()
    });
    if is_inside {
        return Ok((path.clone(), target));
    }
    Err(missing(String::from("modules must be below scripts/lib")))
}

/// Returns why the module at `target` is missing, with the most similar existing module.
fn advice_for(cache: &Cache, lib: &Path, target: &Path, requirer: &Path, from: &Path) -> String {
    let name_of = |path: &Path| Some(path.strip_prefix(lib).ok()?.to_string_lossy().replace('\\', "/"));
    let scripts = &cache.snapshot().scripts;
    let files = scripts.iter().filter(|(folder, _)| folder.starts_with(lib)).flat_map(|(_, files)| files);
    let mut existing: Vec<String> = files.filter_map(|file| name_of(&file.with_extension(""))).collect();
    existing.sort_unstable();
    let shown = display_name(&PathBuf::from(format!("{}.lua", target.display())), from);
    let near = nearest(&name_of(target).unwrap_or_default(), existing.iter().map(String::as_str));
    match near {
        Some(near) if requirer.starts_with(lib) => {
            format!("{shown} does not exist; did you mean `{near}`?")
        }
        Some(near) => format!("{shown} does not exist; did you mean `./lib/{near}`?"),
        None => format!("{shown} does not exist"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use deftool_lang::diagnostic::render::render_concise;

    use super::*;
    use crate::load::Snapshot;
    use crate::{Input, ScriptState, load};

    /// Too many modules are reported once, at the first one above the limit.
    #[test]
    fn the_number_of_modules_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("specs")).unwrap();
        fs::create_dir_all(root.join("scripts/lib")).unwrap();
        let spec = "(deftool :name \"one\" :description \"Does it.\")";
        fs::write(root.join("specs/a.eld"), spec).unwrap();
        for number in 0..MAX_MODULES + 10 {
            fs::write(root.join(format!("scripts/lib/m{number}.lua")), "return 1").unwrap();
        }
        let check = |modules: usize| {
            // Requiring a known module again does not count.
            let requires = (0..modules).chain(0..3).map(|number| format!("require('./lib/m{number}')\n"));
            let script = requires.collect::<String>() + "return function() end";
            fs::write(root.join("scripts/one.lua"), script).unwrap();
            load(&[Input::of_project(root.to_owned(), &mut Snapshot::default()).unwrap()], root).unwrap()
        };
        let fits = check(MAX_MODULES);
        assert!(fits.findings.is_empty());
        let ScriptState::Ready(script) = &fits.tools[0].script else { panic!("the script is broken") };
        assert_eq!(script.modules.len(), MAX_MODULES);
        let passes = check(MAX_MODULES + 10);
        let findings = passes.findings.iter().map(|finding| render_concise(finding, &passes.sources));
        assert_eq!(
            findings.collect::<Vec<_>>(),
            [
                "scripts/one.lua:201:1: error[DT411]: cannot require `./lib/m200`: a script can have at most 200 modules, \
              including indirect ones"
            ]
        );
        assert!(matches!(passes.tools[0].script, ScriptState::Broken(_)));
    }
}
