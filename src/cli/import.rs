//! `deftool import`: definitions of others → specs.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::args::ImportOptions;
use super::output::{describe_summary, print, say, say_findings};
use super::{CliError, Exit, locate};
use crate::diagnostic::{Diagnostic, Summary};
use crate::project::{SourceText, display_name, read_source, read_stream, replace_file};
use crate::schema::{Import, Importer};
use crate::spec::{FileKind, Tool, form_of_tool, lay_out};
use crate::syntax::write;
use crate::text::{Sources, count};

/// Definitions with errors are left out and told; the others are printed or written all the same.
pub(super) fn run(options: &ImportOptions) -> Result<Exit, CliError> {
    let place = locate(None)?;
    let mut sources = Sources::new();
    let mut importer = Importer::new(options.from);
    let mut findings = Vec::new();
    for (text, file_name) in read_inputs(&options.files, &place.current)? {
        let is_text = text.is_text();
        let (file, damage) = text.into_source(sources.id_ahead(0), &place.current);
        let source = sources.add(file);
        findings.extend(damage);
        if let Some(file) = sources.get(source).filter(|_| is_text) {
            importer.add(source, &file.text, file_name.as_deref());
        }
    }
    let Import { mut tools, findings: told } = importer.finish();
    tools.retain(|tool| !is_damaged(tool, &findings, &sources));
    findings.extend(told);
    match &options.output {
        None => {
            let specs: Vec<String> = tools.iter().map(spec_of).collect();
            print(&specs.join("\n"));
        }
        Some(folder) => write_files(&tools, folder, options.force)?,
    }
    say_findings(&findings, &sources);
    let summary = Summary::of(&findings);
    let imported = format!("{} imported", count(tools.len(), "tool"));
    let left_out = if summary.errors > 0 { "; what has an error is left out" } else { "" };
    say(&match describe_summary(&summary) {
        Some(counts) => format!("{imported}: {counts}{left_out}"),
        None => imported,
    });
    Ok(if summary.errors > 0 { Exit::Failed } else { Exit::Clean })
}

/// Whether bytes of the tool's definition were no text and have been replaced.
fn is_damaged(tool: &Tool, damages: &[Diagnostic], sources: &Sources) -> bool {
    let has_replaced = |text: &str| text.contains(char::REPLACEMENT_CHARACTER);
    damages.iter().any(|damage| damage.primary.source == tool.source)
        && sources.get(tool.source).is_some_and(|file| has_replaced(tool.span.of(&file.text)))
}

fn spec_of(tool: &Tool) -> String {
    lay_out(format!("{}\n", write(&form_of_tool(tool))), FileKind::Specs)
}

/// The texts with the names of their files, without extension; `-`, or nothing at all, is stdin.
fn read_inputs(files: &[PathBuf], from: &Path) -> Result<Vec<(SourceText, Option<String>)>, CliError> {
    if files.is_empty() && std::io::stdin().is_terminal() {
        let message = "nothing to import: name a file, or `-` for stdin";
        return Err(CliError::Usage(String::from(message)));
    }
    if files.is_empty() {
        return Ok(vec![(read_stream("stdin", std::io::stdin().lock())?, None)]);
    }
    let mut texts = Vec::new();
    for file in files {
        if file.as_os_str() == "-" {
            texts.push((read_stream("stdin", std::io::stdin().lock())?, None));
        } else {
            let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            texts.push((read_source(&from.join(file))?, name));
        }
    }
    Ok(texts)
}

/// One file a tool, called as the tool. Nothing is written where one of them is there already.
fn write_files(tools: &[Tool], folder: &Path, force: bool) -> Result<(), CliError> {
    let place = locate(None)?;
    let paths: Vec<PathBuf> = tools
        .iter()
        .map(|tool| place.current.join(folder).join(format!("{}.eld", tool.name.value)))
        .collect();
    let shown = |path: &Path| display_name(path, &place.current);
    if let Some(path) = paths.iter().find(|path| !force && path.symlink_metadata().is_ok()) {
        let message =
            format!("{} exists already; nothing was written, and `--force` overwrites it", shown(path));
        return Err(CliError::Usage(message));
    }
    // A link, or a disk that takes `Read` and `read` for one name.
    let there: Vec<Option<PathBuf>> = paths.iter().map(|path| std::fs::canonicalize(path).ok()).collect();
    let mut of_file: HashMap<&Path, &Path> = HashMap::new();
    for (path, file) in paths.iter().zip(&there) {
        if let Some(other) = file.as_ref().and_then(|file| of_file.insert(file, path)) {
            let message =
                format!("{} and {} are the same file; nothing was written", shown(other), shown(path));
            return Err(CliError::Usage(message));
        }
    }
    for ((tool, path), file) in tools.iter().zip(&paths).zip(&there) {
        let unwritable = |source| CliError::Unwritable { path: shown(path), source };
        let spec = spec_of(tool);
        let done = match file {
            Some(file) => replace_file(file, spec.as_bytes()).map(|()| "replaced"),
            // What has come since is not overwritten, and of two names for one file the second does not replace the first.
            None => create_file(path, spec.as_bytes()).map(|()| "created "),
        };
        say(&format!("{} {}", done.map_err(unwritable)?, shown(path)));
    }
    Ok(())
}

/// With the folders it needs.
fn create_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::File::create_new(path)?.write_all(bytes)
}
