//! `deftool fmt`: specs in canonical layout.

use std::path::Path;

use super::args::FmtOptions;
use super::diff::unified;
use super::output::{clean, print, print_diff, print_lines, say, say_error, say_findings};
use super::{CliError, Exit, locate};
use crate::project::{
    BYTE_ORDER_MARK, Outside, SourceText, display_name, read_source, read_stream, replace_text,
    resolve_inputs,
};
use crate::spec::{FileKind, format};
use crate::syntax::print::FormatError;
use crate::text::{Sources, count};

pub(super) fn run(options: &FmtOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    if options.paths.iter().any(|path| path == Path::new("-")) {
        if options.paths.len() > 1 {
            return Err(CliError::Usage(String::from("`-` is stdin, and is formatted alone")));
        }
        return format_stdin(options, &place.current);
    }
    let mut tally = Tally::default();
    let inputs = resolve_inputs(&options.paths, &place.folder)?;
    for Outside { path, why } in inputs.iter().flat_map(|input| &input.outside) {
        say_error(&format!("{} was left as it is: {why}", display_name(path, &place.current)));
        tally.failed += 1;
    }
    for path in inputs.iter().flat_map(|input| &input.files) {
        // A file that cannot be read or written does not keep the others from it.
        match format_file(path, options, &place.current) {
            Ok(Outcome::Changed) => tally.changed += 1,
            Ok(Outcome::Unchanged) => tally.unchanged += 1,
            Ok(Outcome::Refused) => tally.failed += 1,
            Err(error) => {
                say_error(&error.to_string());
                tally.failed += 1;
            }
        }
    }
    say(&tally.describe(options.writes()));
    let differs = tally.changed > 0 && !options.writes();
    Ok(if differs || tally.failed > 0 { Exit::Failed } else { Exit::Clean })
}

/// What became of a file.
enum Outcome {
    Changed,
    Unchanged,
    Refused,
}

fn format_file(path: &Path, options: &FmtOptions, current: &Path) -> Result<Outcome, CliError> {
    let name = display_name(path, current);
    let Some((before, after)) = lay_out(read_source(path)?, &name, current) else {
        return Ok(Outcome::Refused);
    };
    if before == after {
        return Ok(Outcome::Unchanged);
    }
    if options.writes() {
        replace_text(path, &before, &after)
            .map_err(|source| CliError::Unwritable { path: name.clone(), source })?;
        say(&format!("formatted  {}", clean(&name)));
    } else {
        options.tell(&name, &before, &after);
    }
    Ok(Outcome::Changed)
}

fn format_stdin(options: &FmtOptions, current: &Path) -> Result<Exit, CliError> {
    let name = display_name(&options.stdin_filename, current);
    let text = read_stream(&name, std::io::stdin())?;
    let mark = if text.has_mark { String::from_utf8_lossy(BYTE_ORDER_MARK) } else { "".into() };
    let Some((before, after)) = lay_out(text, &name, current) else { return Ok(Exit::Failed) };
    if options.writes() {
        print(&format!("{mark}{after}"));
        return Ok(Exit::Clean);
    }
    if before == after {
        return Ok(Exit::Clean);
    }
    options.tell(&name, &before, &after);
    Ok(Exit::Failed)
}

/// The text of a file before and after, or nothing where it has to stay as it is: that is told here.
fn lay_out(text: SourceText, name: &str, current: &Path) -> Option<(String, String)> {
    let mut sources = Sources::new();
    let (file, damage) = text.into_source(sources.id_ahead(0), current);
    let source = sources.add(file);
    if let Some(finding) = &damage {
        say_findings(std::slice::from_ref(finding), &sources);
        return None;
    }
    let before = &sources.get(source)?.text;
    match format(source, before, FileKind::of_name(name)) {
        Ok(after) => Some((before.to_string(), after)),
        Err(FormatError::Faults(findings)) => {
            say_findings(&findings, &sources);
            None
        }
        Err(FormatError::Damaged) => {
            say_error(&format!(
                "{name} was left as it is: its new layout would not read as the same specs, which is a mistake in deftool; please report it with the file"
            ));
            None
        }
    }
}

impl FmtOptions {
    fn writes(&self) -> bool {
        !self.check && !self.diff
    }

    /// Prints what would change.
    fn tell(&self, name: &str, before: &str, after: &str) {
        if self.diff {
            print_diff(&unified(name, before, after));
        } else {
            print_lines(&format!("{}\n", clean(name)));
        }
    }
}

/// How many files ended how.
#[derive(Default)]
struct Tally {
    changed: usize,
    unchanged: usize,
    failed: usize,
}

impl Tally {
    fn describe(&self, writes: bool) -> String {
        let changed = if writes { "formatted" } else { "to be formatted" };
        let parts = [(self.changed, changed), (self.unchanged, "unchanged"), (self.failed, "left alone")];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(number, "file")))
            .collect();
        if parts.is_empty() { String::from("no files to format") } else { parts.join(", ") }
    }
}
