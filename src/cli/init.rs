//! `deftool init`: a project that works at once.

use std::path::Path;

use super::args::InitOptions;
use super::output::say;
use super::{CliError, Exit};

const FILES: [(&str, &str); 4] = [
    ("specs/tools.eld", include_str!("init/tools.eld")),
    ("specs/worker.eld", include_str!("init/worker.eld")),
    ("scripts/word_count.lua", include_str!("init/word_count.lua")),
    (".gitignore", "*.recording.jsonl\n"),
];

pub(super) fn run(options: &InitOptions) -> Result<Exit, CliError> {
    let folder = &options.folder;
    let specs = folder.join("specs");
    if specs.is_dir() {
        let message =
            format!("{} is a project already; add a tool with `deftool new NAME`", folder.display());
        return Err(CliError::Usage(message));
    }
    for path in [folder, &specs] {
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            return Err(CliError::Usage(format!("{} is in the way: it is no folder", path.display())));
        }
    }
    for (name, content) in FILES {
        let path = folder.join(name);
        if path.exists() {
            say(&format!("kept     {}", path.display()));
            continue;
        }
        write_file(&path, content)?;
        say(&format!("created  {}", path.display()));
    }
    let there = if folder == Path::new(".") { String::new() } else { format!("cd {} && ", folder.display()) };
    say(&format!(
        "next:    {there}deftool check && deftool call word_count '{{\"text\": \"one two three\"}}'"
    ));
    Ok(Exit::Clean)
}

/// Writes a new file and the folders it needs.
pub(super) fn write_file(path: &Path, content: &str) -> Result<(), CliError> {
    let unwritable = |source| CliError::Unwritable { path: path.display().to_string(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(unwritable)?;
    }
    std::fs::write(path, content).map_err(unwritable)
}
