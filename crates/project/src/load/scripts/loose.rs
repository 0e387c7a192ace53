//! Modules and test scripts that no tool uses. Those that do not compile are reported, and the mistakes in test scripts.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::spec::Tool;
use deftool_lang::text::SourceFile;
use deftool_script::LoadError;

use super::file::{read_script, script_candidates};
use super::test_checks::{TestMistakes, TestedTools};
use crate::load::cache::Cache;
use crate::load::model::ScriptFile;
use crate::model::Load;
use crate::parallel;
use crate::paths::{folders_with_scripts, is_test_script, lib_folder};
use crate::rules::module_does_not_compile;

/// The problem of a file.
enum Problem {
    DoesNotCompile(LoadError),
    Mistakes(TestMistakes),
}

/// Reports the modules and test scripts of the project at `root` that do not compile, and mistakes in test scripts,
/// unless `is_reported` returns true for their names.
pub(super) fn report_loose(
    cache: &Cache,
    load: &mut Load,
    root: &Path,
    from: &Path,
    is_reported: impl Fn(&str) -> bool,
) {
    let (of_scripts, lib) = (folders_with_scripts(root), lib_folder(root));
    let is_inside = |folder: &Path| of_scripts.iter().any(|scripts| folder.starts_with(scripts));
    let folders = cache.snapshot().scripts.iter().filter(|(folder, _)| is_inside(folder));
    let listed = folders.flat_map(|(_, files)| files);
    let mut paths: Vec<&PathBuf> =
        listed.filter(|path| is_test_script(path) || path.starts_with(&lib)).collect();
    paths.sort_unstable();
    if paths.is_empty() {
        return;
    }
    let tools = TestedTools::of(load, root);
    // A test script may be the script of a tool.
    let may_own = |tool: &Tool| tool.script.is_some() || tool.name.value.ends_with("_test");
    let owners = load.tools.iter().filter(|loaded| may_own(&loaded.tool));
    let of_tools: HashSet<PathBuf> =
        owners.flat_map(|loaded| script_candidates(root, &loaded.tool)).collect();
    // A file that cannot be read is reported where it is used.
    let problems = parallel::map(&paths, |_, path| {
        let file = read_script(cache, root, path, from).ok()?;
        let is_test = is_test_script(path) && !of_tools.contains(*path);
        let problem = problem_of(&file, is_test.then_some(&tools))?;
        Some((file, problem))
    });
    for (path, problem) in paths.into_iter().zip(problems) {
        let Some((file, problem)) = problem else { continue };
        let script = &file.script;
        if is_reported(&script.file) {
            continue;
        }
        let source =
            load.add_source(SourceFile::new(script.file.clone(), file.text()), Some(&Arc::from(root)));
        match problem {
            Problem::Mistakes(mistakes) => mistakes.report(load, source),
            Problem::DoesNotCompile(error) => {
                let at = load.line_location(source, error.line.unwrap_or(1));
                load.findings.push(if is_test_script(path) {
                    module_does_not_compile::test(at, &error.message)
                } else {
                    module_does_not_compile::finding(at, &error.message)
                });
            }
        }
    }
}

/// `tools`: those that the file may load, if it is a test script.
fn problem_of(file: &ScriptFile, tools: Option<&TestedTools<'_>>) -> Option<Problem> {
    match file.module().contract() {
        Err(error) => Some(Problem::DoesNotCompile(error.clone())),
        Ok(contract) => {
            let mistakes = tools?.check(file, contract);
            (!mistakes.is_empty()).then_some(Problem::Mistakes(mistakes))
        }
    }
}
