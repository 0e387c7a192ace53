//! `deftool diff`: compares two versions of tools.

mod version;

use std::path::{Path, PathBuf};

use clap::Args;
use deftool_lang::diagnostic::render;
use deftool_lang::schema::Impact;
use deftool_lang::text::count;
use deftool_project::{Input, Overlay, find_root, normalize, resolve_inputs};
use serde_json::json;

use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::{CommandDirs, with_projects_below};
use crate::cli::project::revision::Revision;
use crate::cli::terminal::output::{clean, eprint_progress, print_json, print_lines};
use version::{ProjectChange, Version};

#[derive(Debug, Args)]
#[command(after_help = "\
A change breaks callers if arguments that the old schema accepts may be rejected by the new one. Other changes are only \
visible to the model. Exit codes: 0 no breaking change, 1 a breaking change, 2 some tools could not be compared.

Examples:
  deftool diff HEAD~1
  deftool diff origin/main specs/weather.eld
  deftool diff old.json new.json --json")]
pub(in crate::cli) struct DiffOptions {
    /// Old tools: a spec file, folder or project, a JSON file with a list of tools, or a git revision of the new tools
    pub(in crate::cli) old: PathBuf,
    /// New tools [default: the project around the current folder, and those below it]
    pub(in crate::cli) new: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// Prints the changes from the old to the new tools. Fails if one breaks callers, or if tools could not be compared.
pub(in crate::cli) fn run(options: &DiffOptions) -> Result<Exit, CliError> {
    let [old, new] = versions(options, &options.project.dirs()?)?;
    let names = [&*options.old, options.new.as_deref().unwrap_or(Path::new("."))];
    for (version, name) in [&old, &new].into_iter().zip(names.map(|name| name.display().to_string())) {
        if version.is_empty() {
            return Err(CliError::Usage(format!("`{name}` contains no tools to compare with")));
        }
        version.report(&name);
    }
    let changes = old.changes_to(&new);
    let is_complete = old.errors.is_empty() && new.errors.is_empty();
    let breaking = changes.iter().filter(|change| change.change.impact == Impact::Breaking).count();
    if options.format.is_json() {
        let errors = [&old, &new].map(|of| render::json_report(&of.errors, &of.sources).findings);
        let errors: Vec<_> = errors.into_iter().flatten().collect();
        print_json(&json!({"changes": changes, "errors": errors}), true);
    } else {
        print_lines(&changes.iter().map(line).collect::<String>());
        eprint_progress(&match changes.len() {
            0 if is_complete => String::from("no changes"),
            0 => String::from("no changes in the other tools"),
            all => format!("{}, {breaking} breaking", count(all, "change")),
        });
    }
    Ok(match (breaking, is_complete) {
        (0, true) => Exit::Clean,
        (0, false) => Exit::NotAttempted,
        _ => Exit::Failed,
    })
}

/// Returns the old and the new version. Folders are compared project by project; the tools of a file are compared with all
/// tools of the other side.
fn versions(options: &DiffOptions, dirs: &CommandDirs) -> Result<[Version; 2], CliError> {
    let CommandDirs { current, project } = dirs;
    let old_path = project.join(&options.old);
    let is_revision = old_path.symlink_metadata().is_err();
    let folder = options.new.as_ref().map_or_else(|| project.clone(), |new| project.join(new));
    if !folder.is_dir() || !(is_revision || old_path.is_dir()) {
        let new = options.new.as_ref().map_or_else(|| find_root(project), |_| Ok(folder))?;
        let version = |path: PathBuf| {
            Version::read(&resolve_inputs(&[path], project)?, Overlay::default(), None, current)
        };
        let old = if is_revision {
            let mut revision = Revision::open(&options.old, &new, current)?;
            revision.add(&new)?;
            Version::read(&revision.inputs, revision.texts, None, current)?
        } else {
            version(old_path)?
        };
        return Ok([old, version(new)?]);
    }
    let inputs = |named: &[PathBuf]| -> Result<Vec<Input>, CliError> {
        Ok(resolve_inputs(&with_projects_below(named, dirs)?, project)?)
    };
    let version = |inputs: &[Input], folder: &Path| {
        Version::read(inputs, Overlay::default(), Some(&normalize(folder)), current)
    };
    if !is_revision {
        let old = version(&inputs(std::slice::from_ref(&old_path))?, &old_path)?;
        return Ok([old, version(&inputs(options.new.as_slice())?, &folder)?]);
    }
    let mut revision = Revision::open(&options.old, &folder, current)?;
    let inputs = inputs(options.new.as_slice())?;
    let base = revision.add_projects(&folder, &inputs, options.new.is_some())?;
    let old = Version::read(&revision.inputs, revision.texts, Some(&base), current)?;
    Ok([old, version(&inputs, &folder)?])
}

/// Formats a change as one line.
fn line(ProjectChange { project, change }: &ProjectChange) -> String {
    let impact = match change.impact {
        Impact::Breaking => "breaks",
        Impact::Visible => "model ",
    };
    let path =
        change.path.trim_start_matches("/properties/").replace("/properties/", ".").replace("/items", "[]");
    let subject = if path.is_empty() { change.tool.clone() } else { format!("{} {path}", change.tool) };
    let project = if project.is_empty() { String::new() } else { format!("{project}: ") };
    clean(&format!("{impact}  {project}{subject}: {}\n", change.message))
}
