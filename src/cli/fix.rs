//! `check --fix` and `check --diff`: fixes applied in memory until nothing more applies, then written or shown.
//!
//! A file is written once and whole, and only if it still holds what was read; its byte order mark stays. What is not
//! UTF-8 is not touched: its text is not what the file holds.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diff::unified;
use super::output::{print_diff, say, say_error};
use super::{CliError, Exit};
use crate::diagnostic::{Fix, apply_fixes};
use crate::project::{Input, Load, LoadOptions, load_with, replace_text};
use crate::text::{SourceId, count};

/// Each round mends what the one before it laid bare; one that goes on and on is two fixes undoing each other.
const MAX_ROUNDS: usize = 32;

/// A file as fixes make it.
struct Repaired {
    path: PathBuf,
    name: String,
    before: Arc<str>,
    after: String,
    /// How many fixes are in it.
    applied: usize,
}

/// Writes what fixes make of the files and says which; what is left, and whether every file could be written.
pub(super) fn apply(
    inputs: &[Input],
    from: &Path,
    how: LoadOptions,
    with_guesses: bool,
) -> Result<(Load, bool), CliError> {
    let (repaired_load, files) = repair(inputs, from, how.clone(), with_guesses)?;
    let mut is_whole = true;
    for file in &files {
        match replace_text(&file.path, &file.before, &file.after) {
            Ok(()) => say(&format!("fixed    {}: {}", file.name, count(file.applied, "finding"))),
            Err(error) => {
                is_whole = false;
                say_error(&format!("cannot write {}: {error}", file.name));
            }
        }
    }
    // Where a file stayed as it was, what is left is what is on disk.
    let left = if is_whole { repaired_load } else { load_with(inputs, from, &how)? };
    Ok((left, is_whole))
}

/// Prints what [`apply`] would change.
pub(super) fn show(
    inputs: &[Input],
    from: &Path,
    how: LoadOptions,
    with_guesses: bool,
) -> Result<Exit, CliError> {
    let (_, files) = repair(inputs, from, how, with_guesses)?;
    for file in &files {
        print_diff(&unified(&file.name, &file.before, &file.after));
    }
    if files.is_empty() {
        say("nothing to fix");
        return Ok(Exit::Clean);
    }
    let fixes = files.iter().map(|file| file.applied).sum();
    say(&format!("would fix {} in {}", count(fixes, "finding"), count(files.len(), "file")));
    Ok(Exit::Failed)
}

/// What is left when nothing more applies, and the files that are another then, in the order they were read in.
fn repair(
    inputs: &[Input],
    from: &Path,
    mut how: LoadOptions,
    with_guesses: bool,
) -> Result<(Load, Vec<Repaired>), CliError> {
    let mut load = load_with(inputs, from, &how)?;
    let mut repaired: Vec<Repaired> = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let mut is_done = true;
        let fixes = fixes_by_source(&load, with_guesses);
        for (source, path) in load.checked.iter().filter_map(|source| Some((source, load.files.get(source)?)))
        {
            let (Some(fixes), Some(file)) = (fixes.get(source), load.sources.get(*source)) else { continue };
            let fixed = apply_fixes(&file.text, fixes.iter().copied());
            if fixed.applied == 0 {
                continue;
            }
            is_done = false;
            how.overlay.set(path, fixed.text.clone());
            match repaired.iter_mut().find(|repaired| repaired.path == *path) {
                Some(repaired) => {
                    repaired.after = fixed.text;
                    repaired.applied += fixed.applied;
                }
                None => repaired.push(Repaired {
                    path: path.clone(),
                    name: file.name.clone(),
                    before: Arc::clone(&file.text),
                    after: fixed.text,
                    applied: fixed.applied,
                }),
            }
        }
        if is_done {
            break;
        }
        load = load_with(inputs, from, &how)?;
    }
    repaired.retain(|file| *file.before != *file.after);
    Ok((load, repaired))
}

fn fixes_by_source(load: &Load, with_guesses: bool) -> HashMap<SourceId, Vec<&Fix>> {
    let mut fixes: HashMap<SourceId, Vec<&Fix>> = HashMap::new();
    for finding in &load.findings {
        if let Some(fix) = finding.fix.as_ref().filter(|fix| fix.is_safe || with_guesses) {
            fixes.entry(finding.primary.source).or_default().push(fix);
        }
    }
    fixes
}
