//! `deftool test`: the examples of the specs against their schemas, then the tests of the scripts; with `--fuzz`
//! arguments made from the schemas. No model.

mod fuzz;
mod junit;
mod report;
mod run;
mod scripts;

use std::path::{Path, PathBuf};

use super::args::{Isolate, TestFormat, TestOptions};
use super::output::say_error;
use super::rerun::Rerun;
use super::{CliError, Exit, Place, locate};
use crate::project::{
    Input, Load, LoadOptions, find_root, find_tests, is_test_script, load_specs, resolve_inputs,
};
pub(super) use fuzz::effects;
use report::{describe, print_json_line, print_results};
use run::TestRun;

pub(super) fn run(options: &TestOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    if options.fuzzing.fuzz {
        return fuzz::run(options, &place);
    }
    if options.scripts.isolate == Isolate::Process {
        return Err(CliError::Usage(String::from(ISOLATED)));
    }
    let chosen = Chosen::of(&options.paths, &place)?;
    if options.watch {
        return watch(options, &place, chosen);
    }
    let inputs = resolve_inputs(&chosen.paths, &place.folder)?;
    let load = load_specs(&inputs, &place.current)?;
    let Some(run) = run_once(&load, &inputs, &chosen, options, &place.current)? else {
        return Err(CliError::Usage(nothing_chosen(options.filter.as_deref())));
    };
    print_results(&run, &load.sources, options.format);
    Ok(if run.summary.fails() { Exit::Failed } else { Exit::Clean })
}

/// A test calls tools with fakes of its own, which are functions of its state: no other process has them.
const ISOLATED: &str = "--isolate process goes with --fuzz; tests of scripts run in this process, and for scripts that one does \
     not trust there are `deftool test --fuzz --isolate process` and `deftool call --isolate process`";

fn watch(options: &TestOptions, place: &Place, chosen: Chosen) -> Result<Exit, CliError> {
    let format = options.format;
    if format == TestFormat::Junit {
        let message = "--watch writes human or json; JUnit is one file a run";
        return Err(CliError::Usage(String::from(message)));
    }
    let (options, folder, current) = (options.clone(), place.folder.clone(), place.current.clone());
    let paths = chosen.paths.clone();
    let report = move |load: Load, _| {
        let run = resolve_inputs(&chosen.paths, &folder)
            .map_err(CliError::from)
            .and_then(|inputs| run_once(&load, &inputs, &chosen, &options, &current));
        let run = match run {
            Ok(Some(run)) => run,
            Ok(None) => return nothing_chosen(options.filter.as_deref()),
            Err(error) => {
                say_error(&error.to_string());
                return String::new();
            }
        };
        if format == TestFormat::Json {
            print_json_line(&run, &load.sources);
            return describe(&run.summary);
        }
        print_results(&run, &load.sources, format);
        // It was said.
        String::new()
    };
    Rerun { how: LoadOptions::default(), clears_screen: format == TestFormat::Human, report }
        .watch(&paths, place)
}

/// Examples, then tests; `None`: nothing has the filter in its name.
fn run_once(
    load: &Load,
    inputs: &[Input],
    chosen: &Chosen,
    options: &TestOptions,
    from: &Path,
) -> Result<Option<TestRun>, CliError> {
    let filter = options.filter.as_deref();
    let mut run = if chosen.with_examples { TestRun::of(load, filter) } else { TestRun::default() };
    for (root, only) in chosen.roots(inputs) {
        let files = find_tests(load, &root, from, only.as_deref())?;
        if files.is_empty() {
            continue;
        }
        scripts::run(&mut run, &root, from, &files, options)?;
    }
    run.count();
    let is_empty = !run.is_about_a_tool && run.results.is_empty();
    Ok(if is_empty && filter.is_some() { None } else { Some(run) })
}

fn nothing_chosen(filter: Option<&str>) -> String {
    format!("no tool and no test has `{}` in its name", filter.unwrap_or_default())
}

/// What the command line names.
#[derive(Debug, Clone)]
struct Chosen {
    /// What is loaded.
    paths: Vec<PathBuf>,
    /// The files of tests that were named, by themselves or by the script that they are called after.
    tests: Vec<PathBuf>,
    with_examples: bool,
}

impl Chosen {
    fn of(paths: &[PathBuf], place: &Place) -> Result<Self, CliError> {
        let mut tests = Vec::new();
        let mut others = Vec::new();
        for path in paths {
            let full = place.folder.join(path);
            if is_test_script(path) && full.is_file() && !is_script_of_a_tool(&full) {
                tests.push(full);
                continue;
            }
            for extension in ["lua", "luau"] {
                let stem = full.file_stem().unwrap_or_default().to_string_lossy();
                let test = full.with_file_name(format!("{stem}_test.{extension}"));
                if full.is_file() && test.is_file() {
                    tests.push(test);
                }
            }
            others.push(path.clone());
        }
        let with_examples = paths.is_empty() || !others.is_empty();
        if let (false, Some(first)) = (with_examples, tests.first()) {
            others.push(find_root(first)?);
        }
        Ok(Self { paths: others, tests, with_examples })
    }

    /// The projects whose tests are run, and which of them; `None`: all.
    fn roots(&self, inputs: &[Input]) -> Vec<(PathBuf, Option<Vec<PathBuf>>)> {
        let mut roots: Vec<(PathBuf, Option<Vec<PathBuf>>)> = Vec::new();
        if self.with_examples {
            let whole = inputs.iter().filter(|input| input.whole_project);
            roots.extend(whole.filter_map(|input| input.root.clone()).map(|root| (root, None)));
        }
        for test in &self.tests {
            let Ok(root) = find_root(test) else { continue };
            match roots.iter_mut().find(|(known, _)| *known == root) {
                Some((_, None)) => {}
                Some((_, Some(only))) => only.push(test.clone()),
                None => roots.push((root, Some(vec![test.clone()]))),
            }
        }
        roots
    }
}

/// A tool may be called `run_test`.
fn is_script_of_a_tool(path: &Path) -> bool {
    resolve_inputs(&[path.to_owned()], Path::new("/"))
        .is_ok_and(|inputs| load_specs(&inputs, Path::new("/")).is_ok_and(|load| !load.tools.is_empty()))
}
