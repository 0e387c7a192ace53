//! `deftool fmt`: formats spec files.

use std::path::{Path, PathBuf};

use clap::Args;
use deftool_lang::spec::{FileKind, ToolForms, format};
use deftool_lang::syntax::print::FormatError;
use deftool_lang::text::{Sources, count};
use deftool_process::files::{BYTE_ORDER_MARK, replace_text};
use deftool_project::{
    Input, OutsideLink, SourceText, display_name, read_source, read_stream, read_tool_forms, resolve_inputs,
};

use crate::cli::options::ProjectOptions;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::with_projects_below;
use crate::cli::terminal::diff::unified;
use crate::cli::terminal::output::{
    clean, eprint_error, eprint_findings, eprint_line, eprint_progress, print, print_diff, print_lines,
};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool fmt
  deftool fmt --check
  deftool fmt - --stdin-filename init.el < init.el")]
pub(in crate::cli) struct FmtOptions {
    /// Spec files, folders or projects; `-` formats stdin to stdout [default: the project around the current folder, and
    /// those below it]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Print the files that would change without writing them; exit with 1 if there are any
    #[arg(long)]
    pub(in crate::cli) check: bool,
    /// Print the changes without writing them; exit with 1 if there are any
    #[arg(long)]
    pub(in crate::cli) diff: bool,
    /// File name of stdin; in `.el` files, only tool forms are formatted
    #[arg(long, value_name = "NAME", default_value = "stdin.eld")]
    pub(in crate::cli) stdin_filename: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

pub(in crate::cli) fn run(options: &FmtOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    if options.paths.iter().any(|path| path == Path::new("-")) {
        if options.paths.len() > 1 {
            return Err(CliError::Usage(String::from("`-` (stdin) cannot be combined with other paths")));
        }
        return format_stdin(options, &dirs.current);
    }
    let mut counts = Counts::default();
    let inputs = resolve_inputs(&with_projects_below(&options.paths, &dirs)?, &dirs.project)?;
    for OutsideLink { path, why } in inputs.iter().flat_map(|input| &input.outside) {
        eprint_error(&format!("cannot format {}: {why}", display_name(path, &dirs.current)));
        counts.failed += 1;
    }
    let forms: Vec<ToolForms> = inputs.iter().map(read_tool_forms).collect();
    let files = inputs.iter().zip(&forms);
    for (path, forms) in files.flat_map(|(input, forms)| input.files.iter().map(move |path| (path, forms))) {
        // Continue with the other files after an error.
        match format_file(path, forms, options, &dirs.current) {
            Ok(Outcome::Changed) => counts.changed += 1,
            Ok(Outcome::Unchanged) => counts.unchanged += 1,
            Ok(Outcome::Refused) => counts.failed += 1,
            Err(error) => {
                eprint_error(&error.to_string());
                counts.failed += 1;
            }
        }
    }
    if counts.is_empty() {
        return Err(CliError::Usage(String::from("no files to format")));
    }
    eprint_progress(&counts.describe(options.writes()));
    let differs = counts.changed > 0 && !options.writes();
    Ok(if differs || counts.failed > 0 { Exit::Failed } else { Exit::Clean })
}

/// The result of formatting a file.
enum Outcome {
    Changed,
    Unchanged,
    Refused,
}

fn format_file(
    path: &Path,
    forms: &ToolForms,
    options: &FmtOptions,
    current: &Path,
) -> Result<Outcome, CliError> {
    let name = display_name(path, current);
    let Some((before, after)) = format_source(read_source(path)?, &name, forms, current) else {
        return Ok(Outcome::Refused);
    };
    if before == after {
        return Ok(Outcome::Unchanged);
    }
    if options.writes() {
        replace_text(path, &before, &after)
            .map_err(|source| CliError::Unwritable { path: name.clone(), source })?;
        eprint_progress(&format!("formatted  {}", clean(&name)));
    } else {
        options.print_change(&name, &before, &after);
    }
    Ok(Outcome::Changed)
}

fn format_stdin(options: &FmtOptions, current: &Path) -> Result<Exit, CliError> {
    let input = Input::of_file(current.join(&options.stdin_filename))?;
    let name = display_name(&options.stdin_filename, current);
    if !input.scripts.is_empty() {
        return Err(CliError::Usage(format!(
            "cannot format {name}: deftool formats specs, and this is a script"
        )));
    }
    let text = read_stream(&name, std::io::stdin())?;
    let mark = if text.has_mark { String::from_utf8_lossy(BYTE_ORDER_MARK) } else { "".into() };
    let forms = read_tool_forms(&input);
    let Some((before, after)) = format_source(text, &name, &forms, current) else { return Ok(Exit::Failed) };
    if options.writes() {
        print(&format!("{mark}{after}"));
        return Ok(Exit::Clean);
    }
    if before == after {
        return Ok(Exit::Clean);
    }
    options.print_change(&name, &before, &after);
    Ok(Exit::Failed)
}

/// Returns the text before and after formatting. Reports the reason and returns `None` if the text cannot be formatted.
fn format_source(
    text: SourceText,
    name: &str,
    forms: &ToolForms,
    current: &Path,
) -> Option<(String, String)> {
    let mut sources = Sources::new();
    let (file, damage) = text.into_source(sources.id_ahead(0), current);
    let source = sources.add(file);
    if let Some(finding) = &damage {
        eprint_findings(std::slice::from_ref(finding), &sources);
        return None;
    }
    let before = &sources.get(source)?.text;
    let kind = FileKind::of_name(name);
    if kind == FileKind::Org {
        eprint_line(&format!(
            "note: {} is not formatted: deftool does not change the layout of Org files",
            clean(name)
        ));
    }
    match format(source, before, kind, forms) {
        Ok(after) => Some((before.to_string(), after)),
        Err(FormatError::Syntax(findings)) => {
            eprint_findings(&findings, &sources);
            None
        }
        Err(FormatError::Damaged) => {
            eprint_error(&format!(
                "cannot format {name}: the result would differ from the input; this is a bug in deftool, please report it with the file"
            ));
            None
        }
    }
}

impl FmtOptions {
    fn writes(&self) -> bool {
        !self.check && !self.diff
    }

    /// Prints the diff or, with `--check`, the file name.
    fn print_change(&self, name: &str, before: &str, after: &str) {
        if self.diff {
            print_diff(&unified(name, before, after));
        } else {
            print_lines(&format!("{}\n", clean(name)));
        }
    }
}

/// The number of files by result.
#[derive(Default)]
struct Counts {
    changed: usize,
    unchanged: usize,
    failed: usize,
}

impl Counts {
    fn is_empty(&self) -> bool {
        self.changed + self.unchanged + self.failed == 0
    }

    fn describe(&self, writes: bool) -> String {
        let changed = if writes { "formatted" } else { "to be formatted" };
        let parts = [(self.changed, changed), (self.unchanged, "unchanged"), (self.failed, "not formatted")];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(number, "file")))
            .collect();
        parts.join(", ")
    }
}
