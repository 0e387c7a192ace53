//! `check --fix` and `check --diff`: applies fixes in memory until none is left, then writes or prints the changes.
//!
//! A file is written atomically, and only if its content has not changed since it was read. Its byte order mark is
//! kept. Files that are not valid UTF-8 are not changed. Fixes that would add syntax errors are not applied, and a file
//! whose fixes do not converge is not changed; both are reported.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgGroup, Args};
use deftool_lang::diagnostic::{Fix, Fixed, Severity, apply_fixes};
use deftool_lang::spec::FileKind;
use deftool_lang::syntax::parse;
use deftool_lang::text::{SourceFile, SourceId, count};
use deftool_process::files::replace_text;
use deftool_project::{Input, Load, LoadOptions, load_with};
use serde_json::{Value, json};

use super::report::Format;
use super::selection::Selection;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::diff::unified;
use crate::cli::terminal::output::{eprint_error, eprint_progress, print_diff, print_json};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("fixing").args(["fix", "diff"]).multiple(true)))]
pub(in crate::cli) struct FixOptions {
    /// Apply safe fixes, then report the remaining findings
    #[arg(long)]
    pub(in crate::cli) fix: bool,
    /// Also apply fixes that may change the meaning
    #[arg(long, requires = "fixing")]
    pub(in crate::cli) unsafe_fixes: bool,
    /// Print the changes of --fix without writing them, as a diff or with `--format json`; exit with 1 if there are any
    #[arg(long)]
    pub(in crate::cli) diff: bool,
}

/// Maximum number of rounds. A round may reveal further fixes. Beyond this number, fixes probably undo each other.
const MAX_ROUNDS: usize = 32;

/// The reason why no fix of a file is applied after [`MAX_ROUNDS`].
const ENDLESS: &str = "the fixes do not converge; the file was not changed";

/// A file changed by fixes.
struct FixedFile {
    path: PathBuf,
    name: String,
    before: Arc<str>,
    after: String,
    /// The number of applied fixes.
    applied: usize,
}

/// The result of applying fixes to all inputs.
struct FixResult {
    /// The load after all fixes, with the remaining findings.
    load: Load,
    /// The changed files, in the order of reading.
    files: Vec<FixedFile>,
    /// Files with fixes that were not applied.
    unfixed: Vec<UnfixedFile>,
}

/// A file with fixes that were not applied.
struct UnfixedFile {
    path: PathBuf,
    name: String,
    reason: String,
}

/// The inputs and the selected fixes.
pub(in crate::cli) struct FixRun<'r> {
    pub(in crate::cli) inputs: &'r [Input],
    /// File names in messages are relative to this folder.
    pub(in crate::cli) from: &'r Path,
    pub(in crate::cli) selection: &'r Selection,
    pub(in crate::cli) with_unsafe: bool,
}

impl FixRun<'_> {
    /// Applies all fixes, writes the changed files and reports them. Returns the load with the remaining findings, and
    /// whether all fixes were applied and written.
    pub(in crate::cli) fn apply_all(&self, load_options: LoadOptions) -> Result<(Load, bool), CliError> {
        let FixResult { load, files, unfixed } = self.fix_inputs(load_options.clone())?;
        let mut is_written = true;
        for file in &files {
            match replace_text(&file.path, &file.before, &file.after) {
                Ok(()) => {
                    eprint_progress(&format!("fixed    {}: {}", file.name, count(file.applied, "finding")));
                }
                Err(error) => {
                    is_written = false;
                    eprint_error(&format!("cannot write {}: {error}", file.name));
                }
            }
        }
        eprint_unfixed(&unfixed);
        // After a failed write, report the findings of the files on disk.
        let load = if is_written { load } else { self.load(&load_options)? };
        Ok((load, is_written && unfixed.is_empty()))
    }

    /// Prints the changes of [`FixRun::apply_all`] without writing them.
    pub(in crate::cli) fn print_changes(
        &self,
        load_options: LoadOptions,
        format: Format,
    ) -> Result<Exit, CliError> {
        if !matches!(format, Format::Human | Format::Json) {
            let message = "--diff supports only `--format` human and json";
            return Err(CliError::Usage(String::from(message)));
        }
        let FixResult { files, unfixed, .. } = self.fix_inputs(load_options)?;
        let diff = |file: &FixedFile| unified(&file.name, &file.before, &file.after);
        let exit = if files.is_empty() && unfixed.is_empty() { Exit::Clean } else { Exit::Failed };
        if format == Format::Json {
            let change =
                |file: &FixedFile| json!({"file": file.name, "fixes": file.applied, "diff": diff(file)});
            let skipped = |file: &UnfixedFile| json!({"file": file.name, "reason": file.reason});
            let changes: Value = files.iter().map(change).collect();
            let unfixed: Value = unfixed.iter().map(skipped).collect();
            print_json(&json!({"changes": changes, "unfixed": unfixed}), true);
            return Ok(exit);
        }
        for file in &files {
            print_diff(&diff(file));
        }
        eprint_unfixed(&unfixed);
        if exit == Exit::Clean {
            eprint_progress("nothing to fix");
        } else {
            let fixes = files.iter().map(|file| file.applied).sum();
            eprint_progress(&format!(
                "would fix {} in {}",
                count(fixes, "finding"),
                count(files.len(), "file")
            ));
        }
        Ok(exit)
    }

    fn load(&self, options: &LoadOptions) -> Result<Load, CliError> {
        let mut load = load_with(self.inputs, self.from, options)?;
        self.selection.apply(&mut load);
        Ok(load)
    }
}

/// Reports files with fixes that were not applied.
fn eprint_unfixed(unfixed: &[UnfixedFile]) {
    for file in unfixed {
        eprint_error(&format!("cannot fix {}: {}", file.name, file.reason));
    }
}

impl FixRun<'_> {
    /// Applies fixes in rounds until none is left.
    fn fix_inputs(&self, mut load_options: LoadOptions) -> Result<FixResult, CliError> {
        let mut load = self.load(&load_options)?;
        let mut files: Vec<FixedFile> = Vec::new();
        let mut unfixed: Vec<UnfixedFile> = Vec::new();
        for round in 0.. {
            let mut is_done = true;
            let fixes = fixes_by_source(&load, self.with_unsafe);
            for (source, path) in
                load.checked.iter().filter_map(|source| Some((source, load.files.get(source)?)))
            {
                let (Some(fixes), Some(file)) = (fixes.get(source), load.sources.get(*source)) else {
                    continue;
                };
                if unfixed.iter().any(|unfixed| unfixed.path == *path) {
                    continue;
                }
                let fixed = match fixed(round, *source, file, fixes) {
                    Ok(fixed) if fixed.applied == 0 => continue,
                    fixed => fixed,
                };
                is_done = false;
                let index_of_file = files.iter().position(|fixed_file| fixed_file.path == *path);
                let fixed = match fixed {
                    Ok(fixed) => fixed,
                    Err(reason) => {
                        if reason == ENDLESS
                            && let Some(fixed_file) = index_of_file.map(|index| files.remove(index))
                        {
                            load_options.overlay.set(path, fixed_file.before.to_string());
                        }
                        let (path, name) = (path.clone(), file.name.clone());
                        unfixed.push(UnfixedFile { path, name, reason: reason.to_owned() });
                        continue;
                    }
                };
                load_options.overlay.set(path, fixed.text.clone());
                match index_of_file.and_then(|index| files.get_mut(index)) {
                    Some(fixed_file) => {
                        fixed_file.after = fixed.text;
                        fixed_file.applied += fixed.applied;
                    }
                    None => files.push(FixedFile {
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
            load = self.load(&load_options)?;
        }
        files.retain(|file| *file.before != *file.after);
        Ok(FixResult { load, files, unfixed })
    }
}

/// Returns the text of a file after the fixes of a round.
///
/// # Errors
/// If the fixes must not be applied: the reason.
fn fixed(round: usize, source: SourceId, file: &SourceFile, fixes: &[&Fix]) -> Result<Fixed, &'static str> {
    let fixed = apply_fixes(&file.text, fixes.iter().copied());
    if fixed.applied > 0 && round >= MAX_ROUNDS {
        return Err(ENDLESS);
    }
    if adds_errors(source, FileKind::of_name(&file.name), &file.text, &fixed.text) {
        return Err("the last fixes would add syntax errors and were not applied");
    }
    Ok(fixed)
}

/// Returns whether `after` has more syntax errors than `before`.
fn adds_errors(source: SourceId, kind: FileKind, before: &str, after: &str) -> bool {
    let errors = |text: &str| {
        let (_, findings) = parse(source, &kind.code_of(text));
        findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    };
    errors(after) > errors(before)
}

/// Returns the fixes of each source. Unsafe fixes are included only if `with_unsafe` is set.
fn fixes_by_source(load: &Load, with_unsafe: bool) -> HashMap<SourceId, Vec<&Fix>> {
    let mut fixes: HashMap<SourceId, Vec<&Fix>> = HashMap::new();
    for finding in &load.findings {
        if let Some(fix) = finding.fix.as_ref().filter(|fix| fix.is_safe || with_unsafe) {
            fixes.entry(finding.primary.source).or_default().push(fix);
        }
    }
    fixes
}

#[cfg(test)]
mod tests {
    use deftool_lang::diagnostic::Edit;
    use deftool_lang::text::{Sources, Span};

    use super::*;

    #[test]
    fn a_fix_that_adds_errors_or_never_ends_is_not_applied() {
        let source = Sources::new().id_ahead(0);
        let file = SourceFile::new("a.eld", "(a)");
        let breaks = Err("the last fixes would add syntax errors and were not applied");
        for (round, replaced, new, expected) in [
            (0, 1..2, "b", Ok("(b)")),
            (0, 2..3, "", breaks),
            (MAX_ROUNDS - 1, 1..2, "b", Ok("(b)")),
            (MAX_ROUNDS, 1..2, "b", Err(ENDLESS)),
            // An invalid fix is not applied.
            (MAX_ROUNDS, 8..9, "b", Ok("(a)")),
        ] {
            let edit = Edit { span: Span::new(replaced.start, replaced.end), replacement: new.to_owned() };
            let fix = Fix { title: String::new(), edits: vec![edit], is_safe: true };
            let text = fixed(round, source, &file, &[&fix]).map(|fixed| fixed.text);
            assert_eq!(text, expected.map(str::to_owned), "{round} {replaced:?}");
        }
    }

    #[test]
    fn added_syntax_errors_are_detected() {
        let source = Sources::new().id_ahead(0);
        let broken = r#"(deftool :name "a"b")"#;
        for (before, after, expected) in [
            (r#"(deftool :name "a\"b")"#, broken, true),
            (broken, r#"(deftool :name "ab")"#, false),
            (broken, r#"(deftool :name "c"d")"#, false),
            ("(a)", "(b)", false),
            ("(a)", "(a", true),
        ] {
            assert_eq!(adds_errors(source, FileKind::Specs, before, after), expected, "{before} {after}");
        }
    }
}
