//! `check --fix` and `check --diff`: fixes applied in memory until nothing more applies, then written or shown.
//!
//! A file is written once and whole, and only if it still holds what was read; its byte order mark stays. What is not
//! UTF-8 is not touched: its text is not what the file holds. Fixes after which a file could be read less well than before
//! are left out, and a file whose fixes find no end stays as it is; both are said.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diff::unified;
use super::output::{print_diff, say, say_error};
use super::{CliError, Exit};
use crate::diagnostic::{Fix, Severity, apply_fixes};
use crate::project::{Input, Load, LoadOptions, load_with, replace_text};
use crate::syntax::parse;
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

/// What fixes make of the inputs.
struct Repair {
    /// What is left when nothing more applies.
    load: Load,
    /// The files that are another then, in the order they were read in.
    files: Vec<Repaired>,
    /// Files with fixes that were not taken.
    left: Vec<Left>,
}

/// A file whose fixes cannot be right.
struct Left {
    path: PathBuf,
    name: String,
    why: String,
}

/// Writes what fixes make of the files and says which; what is left, and whether every file could be written.
pub(super) fn apply(
    inputs: &[Input],
    from: &Path,
    how: LoadOptions,
    with_guesses: bool,
) -> Result<(Load, bool), CliError> {
    let Repair { load, files, left } = repair(inputs, from, how.clone(), with_guesses)?;
    let mut is_written = true;
    for file in &files {
        match replace_text(&file.path, &file.before, &file.after) {
            Ok(()) => say(&format!("fixed    {}: {}", file.name, count(file.applied, "finding"))),
            Err(error) => {
                is_written = false;
                say_error(&format!("cannot write {}: {error}", file.name));
            }
        }
    }
    say_left(&left);
    // Where a file stayed as it was, what is left is what is on disk.
    let load = if is_written { load } else { load_with(inputs, from, &how)? };
    Ok((load, is_written && left.is_empty()))
}

/// Prints what [`apply`] would change.
pub(super) fn show(
    inputs: &[Input],
    from: &Path,
    how: LoadOptions,
    with_guesses: bool,
) -> Result<Exit, CliError> {
    let Repair { files, left, .. } = repair(inputs, from, how, with_guesses)?;
    for file in &files {
        print_diff(&unified(&file.name, &file.before, &file.after));
    }
    say_left(&left);
    if files.is_empty() && left.is_empty() {
        say("nothing to fix");
        return Ok(Exit::Clean);
    }
    let fixes = files.iter().map(|file| file.applied).sum();
    say(&format!("would fix {} in {}", count(fixes, "finding"), count(files.len(), "file")));
    Ok(Exit::Failed)
}

fn say_left(left: &[Left]) {
    for file in left {
        say_error(&format!("cannot fix {}: {}", file.name, file.why));
    }
}

/// Round after round, until nothing more applies.
fn repair(
    inputs: &[Input],
    from: &Path,
    mut how: LoadOptions,
    with_guesses: bool,
) -> Result<Repair, CliError> {
    let mut load = load_with(inputs, from, &how)?;
    let mut files: Vec<Repaired> = Vec::new();
    let mut left: Vec<Left> = Vec::new();
    for round in 0.. {
        let mut is_done = true;
        let fixes = fixes_by_source(&load, with_guesses);
        for (source, path) in load.checked.iter().filter_map(|source| Some((source, load.files.get(source)?)))
        {
            let (Some(fixes), Some(file)) = (fixes.get(source), load.sources.get(*source)) else { continue };
            if left.iter().any(|left| left.path == *path) {
                continue;
            }
            let fixed = apply_fixes(&file.text, fixes.iter().copied());
            if fixed.applied == 0 {
                continue;
            }
            is_done = false;
            let mut leave = |why: &str| {
                left.push(Left { path: path.clone(), name: file.name.clone(), why: why.to_owned() });
            };
            let known = files.iter().position(|repaired| repaired.path == *path);
            if round >= MAX_ROUNDS {
                leave("its fixes go on and on; it stays as it is");
                if let Some(repaired) = known.map(|index| files.remove(index)) {
                    how.overlay.set(path, repaired.before.to_string());
                }
                continue;
            }
            if breaks(*source, &file.text, &fixed.text) {
                leave("the last of its fixes would break it and are left out");
                continue;
            }
            how.overlay.set(path, fixed.text.clone());
            match known.and_then(|index| files.get_mut(index)) {
                Some(repaired) => {
                    repaired.after = fixed.text;
                    repaired.applied += fixed.applied;
                }
                None => files.push(Repaired {
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
    files.retain(|file| *file.before != *file.after);
    Ok(Repair { load, files, left })
}

/// Whether the reader finds more errors in `after` than in `before`: no fix is meant to do that.
fn breaks(source: SourceId, before: &str, after: &str) -> bool {
    let errors = |text: &str| {
        let (_, findings) = parse(source, text);
        findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    };
    errors(after) > errors(before)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Sources;

    #[test]
    fn what_can_be_read_less_well_is_broken() {
        let source = Sources::new().id_ahead(0);
        let broken = r#"(deftool :name "a"b")"#;
        for (before, after, is_broken) in [
            (r#"(deftool :name "a\"b")"#, broken, true),
            (broken, r#"(deftool :name "ab")"#, false),
            (broken, r#"(deftool :name "c"d")"#, false),
            ("(a)", "(b)", false),
            ("(a)", "(a", true),
        ] {
            assert_eq!(breaks(source, before, after), is_broken, "{before} {after}");
        }
    }
}
