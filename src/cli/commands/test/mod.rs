//! `deftool test`: checks spec examples against their schemas and runs script tests. Uses no model.

mod coverage;
mod junit;
mod report;
mod run;
mod scripts;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use deftool_lang::spec::ASKS_PREVIEW;
use deftool_project::{
    Input, Load, LoadedTool, ask_coverage, display_name, find_root, find_tests, is_test_script, load,
    load_specs, resolve_inputs,
};

use crate::cli::options::{FormatOptions, ProjectOptions, parse_duration};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::{CommandDirs, refuse_nothing, with_projects_below};
use crate::cli::project::preview;
use crate::cli::terminal::output::eprint_error;
use coverage::CoverageReport;
use report::{print_list, print_results};
use run::TestRun;

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Script tests (scripts/NAME_test.lua) run in this process, each in its own sandbox. With --quiet, only \
failures are printed.

Examples:
  deftool test
  deftool test --filter weather --watch
  deftool test --coverage
  deftool test scripts/weather_test.lua")]
pub(in crate::cli) struct TestOptions {
    /// Spec files, scripts, folders or projects [default: the project around the current folder, and those below it]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Run only tools, tests and test files with TEXT in their name
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) filter: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions<TestFormat>,
    /// Print the examples and tests without running them
    #[arg(long, conflicts_with = "watch")]
    pub(in crate::cli) list: bool,
    /// Run again after each change; without paths and a filter, also report changed tools, permissions and warnings
    #[arg(short, long)]
    pub(in crate::cli) watch: bool,
    /// List the tools, arguments and values that no ask touches
    #[arg(long, conflicts_with_all = ["list", "watch"])]
    pub(in crate::cli) coverage: bool,
    /// Time limit of one script test
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(in crate::cli) timeout: Duration,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
    /// Grant all permissions that the specs require, for this run only
    #[arg(long)]
    pub(in crate::cli) trust: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TestFormat {
    /// One line per test
    Human,
    /// One JSON object
    Json,
    /// JUnit XML, for GitLab and Jenkins
    Junit,
}

pub(in crate::cli) fn run(options: &TestOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    if options.list && options.format.value == TestFormat::Junit {
        let message = "--list supports only `--format` human and json";
        return Err(CliError::Usage(String::from(message)));
    }
    if options.coverage && options.format.value == TestFormat::Junit {
        let message = "--coverage supports only `--format` human and json";
        return Err(CliError::Usage(String::from(message)));
    }
    let selection = TestSelection::of(&options.paths, &dirs)?;
    if options.watch {
        return watch::run(options, &dirs, selection);
    }
    let inputs = resolve_inputs(&selection.paths, &dirs.project)?;
    let load = load(&inputs, &dirs.current)?;
    refuse_nothing(&options.paths, &load)?;
    let Some(run) = run_once(&load, &inputs, &selection, options, &dirs.current)? else {
        return Err(CliError::Usage(no_match(options.filter.as_deref())));
    };
    if options.list {
        print_list(&run, &load.sources, options.format.value);
        return Ok(if run.errors.is_empty() { Exit::Clean } else { Exit::Failed });
    }
    let coverage = options.coverage.then(|| coverage_of(&load, options.filter.as_deref()));
    print_results(&run, coverage.as_ref(), &load.sources, options.format.value);
    Ok(match () {
        () if run.summary.fails() => Exit::Failed,
        () if run.results.is_empty() => {
            eprint_error("nothing was tested");
            Exit::NotAttempted
        }
        () => Exit::Clean,
    })
}

/// Returns what the asks of the tools touch whose names contain `filter`.
fn coverage_of(load: &Load, filter: Option<&str>) -> CoverageReport {
    preview::announce(ASKS_PREVIEW, "`--coverage`", load);
    let is_selected = |loaded: &LoadedTool| filter.is_none_or(|part| loaded.tool.name.value.contains(part));
    CoverageReport::of(&ask_coverage(load, is_selected), &load.sources)
}

/// Runs the examples, then the tests, or only lists them. Returns `None` if nothing matches the filter.
fn run_once(
    load: &Load,
    inputs: &[Input],
    selection: &TestSelection,
    options: &TestOptions,
    from: &Path,
) -> Result<Option<TestRun>, CliError> {
    let filter = options.filter.as_deref();
    let mut run =
        if selection.with_examples { TestRun::of(load, filter, options.list) } else { TestRun::default() };
    if !options.list {
        scripts::run_samples(&mut run, from, options)?;
    }
    let roots = selection.roots(inputs);
    for (root, only) in &roots {
        let tested = find_tests(load, root, from, only.as_deref())
            .map_err(CliError::from)
            .and_then(|files| scripts::run(&mut run, root, from, &files, options));
        match tested {
            Ok(()) => {}
            // The tests of the other projects run.
            Err(error) if roots.len() > 1 => run.fail(&display_name(root, from), &error),
            Err(error) => return Err(error),
        }
    }
    run.count();
    let is_empty = !run.has_tools && run.results.is_empty();
    Ok(if is_empty && filter.is_some() { None } else { Some(run) })
}

fn no_match(filter: Option<&str>) -> String {
    format!("no tool or test name contains `{}`", filter.unwrap_or_default())
}

/// The tests selected on the command line.
#[derive(Debug, Clone)]
struct TestSelection {
    /// The paths to load.
    paths: Vec<PathBuf>,
    /// The selected test files, given directly or by the script that they test.
    tests: Vec<PathBuf>,
    with_examples: bool,
}

impl TestSelection {
    fn of(paths: &[PathBuf], dirs: &CommandDirs) -> Result<Self, CliError> {
        let mut tests = Vec::new();
        let mut others = Vec::new();
        for path in paths {
            let full = dirs.project.join(path);
            if is_test_script(path) && full.is_file() && !is_tool_script(&full) {
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
        let paths = match tests.first().filter(|_| !with_examples) {
            Some(first) => vec![find_root(first)?],
            None => with_projects_below(&others, dirs)?,
        };
        Ok(Self { paths, tests, with_examples })
    }

    /// Returns the projects with their selected test files; `None` selects all.
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

/// Returns whether a script belongs to a tool, for example to a tool named `run_test`.
fn is_tool_script(path: &Path) -> bool {
    resolve_inputs(&[path.to_owned()], Path::new("/"))
        .is_ok_and(|inputs| load_specs(&inputs, Path::new("/")).is_ok_and(|load| !load.tools.is_empty()))
}
