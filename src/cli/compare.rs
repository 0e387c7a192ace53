//! `deftool diff`: compares two versions of tools.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, Severity, Summary};
use deftool_lang::schema::{Change, Impact, Importer, Target, compare_definitions, emit};
use deftool_lang::text::{Sources, count};
use deftool_project::{load_specs, read_source, resolve_inputs};
use serde_json::{Value, json};

use super::args::DiffOptions;
use super::command::{CliError, Exit, command_dirs};
use super::output::{clean, describe_summary, eprint_findings, eprint_line, print_json, print_lines};

/// Prints the changes from the old to the new tools. Fails if one breaks callers.
pub(super) fn run(options: &DiffOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(None)?;
    let (old, broken) = definitions(&options.old, &dirs.current)?;
    let (new, broken_now) = definitions(&options.new, &dirs.current)?;
    let is_complete = broken.is_empty() && broken_now.is_empty();
    let mut changes = compare_definitions(&old, &new);
    // A tool with errors is neither added nor removed.
    changes.retain(|change| !broken.contains(&change.tool) && !broken_now.contains(&change.tool));
    if options.json {
        print_json(&json!({"changes": changes}), true);
    } else {
        print_lines(&changes.iter().map(line).collect::<String>());
        let breaking = changes.iter().filter(|change| change.impact == Impact::Breaking).count();
        eprint_line(&match (changes.len(), breaking) {
            (0, _) => String::from("no changes"),
            (all, breaking) => format!("{}, {breaking} breaking", count(all, "change")),
        });
    }
    let is_compatible = changes.iter().all(|change| change.impact != Impact::Breaking);
    Ok(if is_compatible && is_complete { Exit::Clean } else { Exit::Failed })
}

fn line(change: &Change) -> String {
    let impact = match change.impact {
        Impact::Breaking => "breaks",
        Impact::Visible => "model ",
    };
    let path =
        change.path.trim_start_matches("/properties/").replace("/properties/", ".").replace("/items", "[]");
    let subject = if path.is_empty() { change.tool.clone() } else { format!("{} {path}", change.tool) };
    clean(&format!("{impact}  {subject}: {}\n", change.message))
}

/// Returns the definitions of the tools in a JSON file, spec file, folder or project, and the names of those with errors,
/// or an empty name for other errors. Errors are reported.
fn definitions(path: &Path, current: &Path) -> Result<(Value, BTreeSet<String>), CliError> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let mut broken = BTreeSet::new();
    let (json, findings, sources) = if is_json {
        let mut sources = Sources::new();
        let (file, damage) = read_source(&current.join(path))?.into_source(sources.id_ahead(0), current);
        let source = sources.add(file);
        let mut importer = Importer::new(None);
        if let Some(file) = sources.get(source) {
            importer.add(source, &file.text, None);
        }
        let imported = importer.finish();
        let findings: Vec<Diagnostic> = damage.into_iter().chain(imported.findings).collect();
        (emit(Target::OpenAi, imported.tools.iter()), findings, Arc::new(sources))
    } else {
        let load = load_specs(&resolve_inputs(&[path.to_owned()], current)?, current)?;
        let invalid = load.tools.iter().filter(|loaded| !loaded.tool.valid);
        broken.extend(invalid.map(|loaded| loaded.tool.name.value.clone()));
        let json = emit(Target::OpenAi, load.valid_tools().map(|loaded| &*loaded.tool));
        (json, load.findings, load.sources)
    };
    let errors: Vec<Diagnostic> =
        findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    eprint_findings(&errors, &sources);
    if let Some(counts) = describe_summary(&Summary::of(&errors)) {
        eprint_line(&format!(
            "{}: {counts}; these tools are not compared",
            clean(&path.display().to_string())
        ));
        broken.insert(String::new());
    }
    Ok((json, broken))
}
