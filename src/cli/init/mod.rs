//! `deftool init`: a project that works at once, or the toolbox.

mod toolbox;

use std::collections::BTreeMap;
use std::path::Path;

use super::args::InitOptions;
use super::output::{clean, say};
use super::{CliError, Exit, locate};
use crate::project::{Load, load_specs, resolve_inputs};
use crate::text::Location;
use toolbox::{LIBRARY, TOOLBOX};

/// A first tool of one's own.
const OWN: [(&str, &str); 2] = [
    ("specs/tools.eld", include_str!("files/tools.eld")),
    ("scripts/word_count.lua", include_str!("files/word_count.lua")),
];

/// What every project has.
const COMMON: [(&str, &str); 2] =
    [("specs/worker.eld", include_str!("files/worker.eld")), (".gitignore", "*.recording.jsonl\n")];

pub(super) fn run(options: &InitOptions) -> Result<Exit, CliError> {
    let folder = &options.folder;
    let specs = folder.join("specs");
    let is_project = specs.is_dir();
    if is_project && !options.toolbox {
        let message = format!(
            "{} is a project already; add a tool with `deftool new NAME`, or the toolbox with `deftool init --toolbox`",
            folder.display()
        );
        return Err(CliError::Usage(message));
    }
    for path in [folder, &specs] {
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            return Err(CliError::Usage(format!("{} is in the way: it is no folder", path.display())));
        }
    }
    if options.toolbox {
        let there = if is_project { tools_in(folder)? } else { BTreeMap::new() };
        copy_toolbox(folder, &there)?;
    } else {
        create(folder, &OWN)?;
    }
    if !is_project {
        create(folder, &COMMON)?;
    }
    let there = if is_here(folder) { String::new() } else { format!("cd {} && ", for_shell(folder)) };
    let call = if options.toolbox {
        r#"calculate '{"expression": "2 ^ 10"}'"#
    } else {
        r#"word_count '{"text": "one two three"}'"#
    };
    say(&format!("next:    {there}deftool check && deftool call {call}"));
    Ok(Exit::Clean)
}

/// The tools of the project in `folder`, and where each is.
fn tools_in(folder: &Path) -> Result<BTreeMap<String, String>, CliError> {
    let place = locate(Some(folder))?;
    let load: Load = load_specs(&resolve_inputs(&[], &place.folder)?, &place.current)?;
    let named = load.tools.iter().map(|loaded| {
        let at = Location { source: loaded.tool.source, span: loaded.tool.name.span };
        (loaded.tool.name.value.clone(), load.sources.describe(at))
    });
    Ok(named.collect())
}

/// Copies each tool that the project does not have under its name.
fn copy_toolbox(folder: &Path, there: &BTreeMap<String, String>) -> Result<(), CliError> {
    for tool in TOOLBOX {
        let script = format!("scripts/{}.lua", tool.name);
        if let Some(place) = there.get(tool.name) {
            say(&format!("left out {}: it is there already, {place}", tool.name));
        } else if folder.join(&script).exists() {
            // A spec of ours with a script of somebody else's is no tool.
            say(&format!("left out {}: {script} is there already", tool.name));
        } else {
            create(folder, tool.files)?;
        }
    }
    create(folder, &LIBRARY)
}

/// Writes those of `files` that are not there.
fn create(folder: &Path, files: &[(&str, &str)]) -> Result<(), CliError> {
    for (name, content) in files {
        let path = folder.join(name);
        if path.exists() {
            say(&format!("kept     {}", shown(folder, name)));
            continue;
        }
        write_file(&path, content)?;
        say(&format!("created  {}", shown(folder, name)));
    }
    Ok(())
}

fn is_here(folder: &Path) -> bool {
    folder == Path::new(".")
}

/// What a file of the project is called from here.
fn shown(folder: &Path, name: &str) -> String {
    if is_here(folder) { name.to_owned() } else { clean(&folder.join(name).display().to_string()) }
}

/// A path as a shell takes it.
fn for_shell(path: &Path) -> String {
    let path = clean(&path.display().to_string());
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:\\".contains(c);
    if path.starts_with('-') || !path.chars().all(is_plain) {
        return format!("'{}'", path.replace('\'', r"'\''"));
    }
    path
}

/// Writes a new file and the folders it needs.
pub(super) fn write_file(path: &Path, content: &str) -> Result<(), CliError> {
    let unwritable = |source| CliError::Unwritable { path: path.display().to_string(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(unwritable)?;
    }
    std::fs::write(path, content).map_err(unwritable)
}
