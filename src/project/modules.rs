//! What scripts share: the files of `scripts/lib` that a script requires by literal paths, and those that they require.
//!
//! A script and its modules are one unit: where one of them is another, or is missing now, the script is another. A module
//! that many scripts require is read and compiled once.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::cache::Cache;
use super::discover::lib_folder;
use super::read::display_name;
use super::scripts::{ScriptFile, read_script, what_hides};
use crate::script::{Contract, LoadProblem, MAX_MODULES, Module, Require, Returned, module_path};
use crate::spec::nearest;

/// Most problems with modules that are told of one script.
const MAX_PROBLEMS: usize = 20;

/// What a file returns that is no module.
const NO_VALUE: [&str; 2] = ["nothing", "nil"];

/// The files of one script: its own first, then those that it requires.
#[derive(Default)]
pub(super) struct Unit {
    parts: Vec<Part>,
    /// Places that go before those of the parts, and are empty.
    missing: Vec<PathBuf>,
    /// What is wrong with what its files require.
    pub(super) problems: Vec<ModuleProblem>,
}

struct Part {
    path: PathBuf,
    file: Arc<ScriptFile>,
}

/// What is wrong with what a script or module requires, in one of the files of its unit.
pub(super) struct ModuleProblem {
    /// The file that it is found in.
    pub(super) file: Arc<ScriptFile>,
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) what: ModuleFault,
}

/// What is wrong.
pub(super) enum ModuleFault {
    /// What is required is not there, or nowhere where it could be; what was written and what to do.
    Missing { wanted: String, advice: String },
    /// What is required, as it is written, is one more than a script may have.
    TooMany(String),
    /// The file does not compile.
    Broken(LoadProblem),
    /// The file returns nothing.
    NoValue,
    /// The files of a circle, by their names; each requires the next, and the last the first.
    Circle(Vec<String>),
    /// What is required is known only when the script runs.
    Computed,
}

impl Unit {
    /// What `file`, found at `path`, is made of.
    pub(super) fn of(cache: &Cache, root: &Path, path: &Path, file: &Arc<ScriptFile>, from: &Path) -> Self {
        let mut unit = Self::default();
        unit.parts.push(Part { path: path.to_owned(), file: Arc::clone(file) });
        let lib = lib_folder(root);
        // Parts that are looked through, from the outermost: which, and how many of its requires are done.
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
            let what = match place_of(&lib, &requirer, require) {
                Err(fault) => Some(fault),
                Ok((wanted, place)) => match unit.add(cache, root, &place, from) {
                    Added::Absent => {
                        let advice = advice_for(cache, &lib, &place, &requirer, from);
                        Some(ModuleFault::Missing { wanted, advice })
                    }
                    Added::Unreadable(advice) => Some(ModuleFault::Missing { wanted, advice }),
                    Added::TooMany => {
                        // There is no end to what follows.
                        open.clear();
                        Some(ModuleFault::TooMany(wanted))
                    }
                    Added::New(index) => {
                        open.push((index, 0));
                        None
                    }
                    Added::Known(index) => unit.circle(&open, index),
                },
            };
            if unit.problems.len() < MAX_PROBLEMS {
                unit.problems.extend(what.map(|what| ModuleProblem { file, line, what }));
            }
        }
        for part in unit.parts.iter().skip(1) {
            let (line, what) = match part.file.module().contract() {
                Err(problem) => (problem.line.unwrap_or(1), ModuleFault::Broken(problem.clone())),
                Ok(Contract { returned: Returned::NoFunction(what), .. })
                    if NO_VALUE.contains(&what.as_str()) =>
                {
                    (1, ModuleFault::NoValue)
                }
                Ok(_) => continue,
            };
            unit.problems.push(ModuleProblem { file: Arc::clone(&part.file), line, what });
        }
        unit
    }

    /// The circle that requiring the part `index` closes, if it is one of the `open`.
    fn circle(&self, open: &[(usize, usize)], index: usize) -> Option<ModuleFault> {
        let first = open.iter().position(|(part, _)| *part == index)?;
        let of_circle = open.iter().skip(first).filter_map(|(part, _)| self.parts.get(*part));
        Some(ModuleFault::Circle(of_circle.map(|part| part.file.script.file.clone()).collect()))
    }

    /// Takes in the module that `place` names without its extension. There are so few that looking at all of them does.
    fn add(&mut self, cache: &Cache, root: &Path, place: &Path, from: &Path) -> Added {
        let places =
            ["lua", "luau"].map(|extension| PathBuf::from(format!("{}.{extension}", place.display())));
        let is_full = self.parts.len() > MAX_MODULES;
        for path in places {
            if let Some(known) = self.parts.iter().position(|part| part.path == path) {
                return Added::Known(known);
            }
            if is_full {
                continue;
            }
            if cache.look(&path).is_none() {
                let hidden = what_hides(&path);
                let shown = display_name(&path, from);
                self.missing.push(path);
                match hidden {
                    Some(error) => return Added::Unreadable(format!("{shown} cannot be read: {error}")),
                    None => continue,
                }
            }
            return match read_script(cache, root, &path, from) {
                Ok(file) => {
                    self.parts.push(Part { path, file });
                    Added::New(self.parts.len() - 1)
                }
                Err(error) => {
                    Added::Unreadable(format!("{} cannot be read: {error}", display_name(&path, from)))
                }
            };
        }
        if is_full { Added::TooMany } else { Added::Absent }
    }

    /// Whether it is told with what else there is, or could not be read: then it is to be looked at every time.
    pub(super) fn lacks_something(&self) -> bool {
        self.problems.iter().any(|problem| matches!(problem.what, ModuleFault::Missing { .. }))
    }

    /// Whether its files are still the same.
    pub(super) fn is_current(&self, cache: &Cache, root: &Path, from: &Path) -> bool {
        let is_same = |part: &Part| {
            read_script(cache, root, &part.path, from).is_ok_and(|file| Arc::ptr_eq(&file, &part.file))
        };
        self.parts.iter().all(is_same) && self.missing.iter().all(|path| cache.look(path).is_none())
    }

    pub(super) fn modules(&self) -> Arc<[Arc<Module>]> {
        self.parts.iter().skip(1).map(|part| Arc::clone(part.file.module())).collect()
    }

    /// The places of its files, and those where there are none.
    pub(super) fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.parts.iter().map(|part| &part.path).chain(&self.missing)
    }
}

/// What came of a module.
enum Added {
    New(usize),
    /// It is a part already.
    Known(usize),
    Absent,
    TooMany,
    /// Why.
    Unreadable(String),
}

/// What is required, as it is written, and the place that it names, without extension.
fn place_of(lib: &Path, requirer: &Path, require: &Require) -> Result<(String, PathBuf), ModuleFault> {
    let Some(wanted) = &require.wanted else { return Err(ModuleFault::Computed) };
    let missing = |advice| ModuleFault::Missing { wanted: wanted.clone(), advice };
    let place = module_path(&requirer.to_string_lossy(), wanted).map_err(missing)?;
    let place = PathBuf::from(place);
    let is_inside = place.strip_prefix(lib).is_ok_and(|rest| {
        rest.components().all(|part| matches!(part, Component::Normal(_)))
            && rest.components().next().is_some()
    });
    if is_inside {
        return Ok((wanted.clone(), place));
    }
    Err(missing(String::from("only what lies beneath scripts/lib can be required")))
}

fn advice_for(cache: &Cache, lib: &Path, place: &Path, requirer: &Path, from: &Path) -> String {
    let name_of = |path: &Path| Some(path.strip_prefix(lib).ok()?.to_string_lossy().replace('\\', "/"));
    let scripts = &cache.looks().scripts;
    let files = scripts.iter().filter(|(folder, _)| folder.starts_with(lib)).flat_map(|(_, files)| files);
    let mut there: Vec<String> = files.filter_map(|file| name_of(&file.with_extension(""))).collect();
    there.sort_unstable();
    let wanted = display_name(&PathBuf::from(format!("{}.lua", place.display())), from);
    let near = nearest(&name_of(place).unwrap_or_default(), there.iter().map(String::as_str));
    match near {
        Some(near) if requirer.starts_with(lib) => {
            format!("{wanted} is not there, but there is a module `{near}`")
        }
        Some(near) => format!("{wanted} is not there; did you mean `./lib/{near}`?"),
        None => format!("{wanted} is not there"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::diagnostic::render::render_concise;
    use crate::project::look::Looks;
    use crate::project::{Input, ScriptState, load};

    /// What a script requires has an end, which is told where it is passed, once.
    #[test]
    fn a_script_has_so_many_modules_and_no_more() {
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
            // Of one that is known it does not matter where it is required again.
            let requires = (0..modules).chain(0..3).map(|number| format!("require('./lib/m{number}')\n"));
            let script = requires.collect::<String>() + "return function() end";
            fs::write(root.join("scripts/one.lua"), script).unwrap();
            load(&[Input::of_project(root.to_owned(), &mut Looks::default()).unwrap()], root).unwrap()
        };
        let fits = check(MAX_MODULES);
        assert!(fits.findings.is_empty());
        let ScriptState::Ready(script) = &fits.tools[0].script else { panic!("it is broken") };
        assert_eq!(script.modules.len(), MAX_MODULES);
        let passes = check(MAX_MODULES + 10);
        let findings = passes.findings.iter().map(|finding| render_concise(finding, &passes.sources));
        assert_eq!(
            findings.collect::<Vec<_>>(),
            [
                "scripts/one.lua:201:1: error[DT411]: cannot require `./lib/m200`: a script has 200 modules at most, those \
              that its modules require among them"
            ]
        );
        assert!(matches!(passes.tools[0].script, ScriptState::Broken(_)));
    }
}
