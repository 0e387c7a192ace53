//! `deftool import`: converts tool definitions from other formats to specs, and MCP servers of hosts.

mod servers;

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::TypedValueParser;
use deftool_lang::diagnostic::{Diagnostic, Severity, Summary};
use deftool_lang::schema::{Import, ImportFormat, Importer};
use deftool_lang::spec::{
    Effect, FileKind, PathBase, Permissions, Tool, ToolForms, advice_on_name, form_of_tool, format_generated,
};
use deftool_lang::syntax::write;
use deftool_lang::text::{Location, Sources, count};
use deftool_mcp::Offer;
use deftool_process::files::Readers;
use deftool_project::{
    Generation, Input, SourceText, display_name, find_root, read_source, read_stream, read_tool_forms,
    script_candidates,
};
use deftool_script::scaffold;

use crate::cli::options::{ProjectOptions, one_of};
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::inputs::{CommandDirs, command_dirs};
use crate::cli::project::outputs::write_output;
use crate::cli::terminal::output::{
    clean, describe_summary, eprint_error, eprint_findings, eprint_line, eprint_progress, print,
};
use crate::cli::worker::offer::{offer_of, offer_of_named};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool import tools.json --output specs --scripts
  curl -s http://localhost:3000/tools | deftool import --from mcp
  deftool import --mcp-config ~/.cursor/mcp.json --output specs")]
pub(in crate::cli) struct ImportOptions {
    /// Files with JSON or Emacs Lisp; `-` reads stdin [default: stdin]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Import the tools of this MCP server of the project, which must be trusted
    #[arg(long, value_name = "NAME", conflicts_with_all = ["files", "from"])]
    pub(in crate::cli) mcp: Option<String>,
    /// Import the MCP servers in the configuration of an MCP host, such as `.mcp.json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "from", "mcp", "scripts"])]
    pub(in crate::cli) mcp_config: Option<PathBuf>,
    /// Format of the definitions [default: detect]
    #[arg(long, value_parser = foreign_format(), value_name = "FORMAT")]
    pub(in crate::cli) from: Option<ForeignFormat>,
    /// Write one spec file per tool or server to this folder [default: print all to stdout]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Overwrite existing specs
    #[arg(long, requires = "output")]
    pub(in crate::cli) force: bool,
    /// Also write a placeholder script for each tool without a script; calls fail with `NAME is not implemented`
    #[arg(long, requires = "output")]
    pub(in crate::cli) scripts: bool,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// A format of tool definitions other than specs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum ForeignFormat {
    Json(ImportFormat),
    /// Emacs Lisp with tool forms.
    Gptel,
}

fn foreign_format() -> impl TypedValueParser<Value = ForeignFormat> {
    one_of(ForeignFormat::all())
}

impl ForeignFormat {
    /// Every format with its name on the command line.
    pub(in crate::cli) fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let json = ImportFormat::ALL.into_iter().map(|format| (format.as_str(), Self::Json(format)));
        json.chain([("gptel", Self::Gptel)])
    }
}

/// Prints or writes all valid definitions. Definitions with errors are omitted and reported.
pub(in crate::cli) fn run(options: &ImportOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    if let Some(file) = &options.mcp_config {
        return servers::run(&dirs.current.join(file), options, &dirs);
    }
    let inputs = match &options.mcp {
        Some(name) => vec![(read_server(name, &dirs)?, None)],
        None => read_inputs(&options.files, &dirs.current)?,
    };
    let forms = forms_of(&options.files, &dirs.current);
    let mut imported = Imported::of(inputs, forms, options.from, &dirs.current);
    if options.mcp.is_some() {
        // Omit notes: the user cannot change the definitions of a server.
        imported.findings.retain(|finding| finding.severity != Severity::Note);
    }
    match &options.output {
        None => {
            let specs: Vec<String> = imported.tools.iter().map(spec_of).collect();
            print(&specs.join("\n"));
        }
        Some(folder) => {
            write_files(&imported.files(), folder, options.force)?;
            if options.scripts {
                write_scripts(&imported.tools, &dirs.current.join(folder), &dirs.current)?;
            }
        }
    }
    let exit = imported.report();
    if exit == Exit::Clean && imported.tools.is_empty() {
        eprint_error("nothing was imported: the input contains no tool definitions");
        return Ok(Exit::NotAttempted);
    }
    Ok(exit)
}

/// Imports the tools of `named` for `init`: a file or, in the format of MCP, also the URL or command line of a server.
///
/// # Errors
/// If the file cannot be read, or the server does not answer.
pub(in crate::cli) fn import_for_init(named: &str, from: ForeignFormat) -> Result<Imported, CliError> {
    let current = command_dirs(None)?.current;
    let path = current.join(named);
    let is_file = path.exists() || path.extension().is_some_and(|extension| extension == "json");
    let inputs = if from == ForeignFormat::Json(ImportFormat::Mcp) && !is_file {
        vec![(listed(named, &offer_of_named(named, &current)?)?, None)]
    } else {
        read_inputs(&[PathBuf::from(named)], &current)?
    };
    let forms = forms_of(&[PathBuf::from(named)], &current);
    Ok(Imported::of(inputs, forms, Some(from), &current))
}

/// Imported tools.
pub(in crate::cli) struct Imported {
    tools: Vec<Tool>,
    /// What was not imported, one line for each tool.
    notes: Vec<String>,
    findings: Vec<Diagnostic>,
    sources: Sources,
}

impl Imported {
    /// Imports texts. Each may have a file name, which names a JSON Schema without a name. The heads in `forms` are read
    /// like `gptel-make-tool`.
    fn of(
        inputs: Vec<(SourceText, Option<String>)>,
        forms: ToolForms,
        from: Option<ForeignFormat>,
        current: &Path,
    ) -> Self {
        let mut sources = Sources::new();
        let mut importer = Importer::new(match from {
            Some(ForeignFormat::Json(format)) => Some(format),
            Some(ForeignFormat::Gptel) | None => None,
        })
        .with_tool_forms(forms);
        let mut findings = Vec::new();
        for (text, file_name) in inputs {
            let is_text = text.is_text();
            let (file, damage) = text.into_source(sources.id_ahead(0), current);
            let source = sources.add(file);
            findings.extend(damage);
            let Some(file) = sources.get(source).filter(|_| is_text) else { continue };
            let is_org = FileKind::of_name(&file.name) == FileKind::Org;
            match from {
                Some(ForeignFormat::Gptel) | None if is_org => {
                    importer.add_lisp(source, &file.text, FileKind::Org);
                }
                Some(ForeignFormat::Gptel) => importer.add_lisp(source, &file.text, FileKind::EmacsLisp),
                Some(ForeignFormat::Json(_)) | None => importer.add(source, &file.text, file_name.as_deref()),
            }
        }
        let Import { mut tools, findings: import_findings } = importer.finish();
        tools.retain(|tool| !is_damaged(tool, &findings, &sources));
        findings.extend(import_findings);
        let mut notes = Vec::new();
        // Formats of JSON have no such keys, except a schema of results.
        let is_lisp = |tool: &Tool| {
            sources.get(tool.source).is_some_and(|file| !file.text.trim_start().starts_with(['{', '[']))
        };
        for tool in tools.iter_mut().filter(|tool| is_lisp(tool)) {
            let dropped = drop_authority(tool);
            if !dropped.is_empty() {
                let at = sources.describe(Location { source: tool.source, span: tool.name.span });
                let (keys, name) = (dropped.join(", "), &tool.name.value);
                notes.push(format!("{at}: `{name}` is imported without {keys}: a foreign definition decides nothing about what runs"));
            }
        }
        Self { tools, notes, findings, sources }
    }

    /// Writes the specs and scripts of a new project.
    ///
    /// # Errors
    /// If a spec exists, or a file cannot be written.
    pub(in crate::cli) fn write_to(&self, project: &Path) -> Result<(), CliError> {
        let current = command_dirs(None)?.current;
        write_files(&self.files(), &project.join("specs"), false)?;
        write_scripts(&self.tools, &current.join(project).join("specs"), &current)
    }

    /// Returns the name and the spec of each tool.
    fn files(&self) -> Vec<(&str, String)> {
        self.tools.iter().map(|tool| (tool.name.value.as_str(), spec_of(tool))).collect()
    }

    /// Returns the name of the first tool.
    pub(in crate::cli) fn first_tool(&self) -> Option<&str> {
        self.tools.first().map(|tool| tool.name.value.as_str())
    }

    /// Prints the findings and the number of tools.
    pub(in crate::cli) fn report(&self) -> Exit {
        eprint_findings(&self.findings, &self.sources);
        self.notes.iter().for_each(|note| eprint_line(&clean(note)));
        let summary = Summary::of(&self.findings);
        let imported = format!("{} imported", count(self.tools.len(), "tool"));
        let omitted = if summary.errors > 0 { "; definitions with errors are omitted" } else { "" };
        eprint_progress(&match describe_summary(&summary) {
            Some(counts) => format!("{imported}: {counts}{omitted}"),
            None => imported,
        });
        if summary.errors > 0 { Exit::Failed } else { Exit::Clean }
    }
}

/// Keeps what a foreign definition may define: name, description, arguments, category, and how Emacs calls and shows the tool.
/// Returns the other keys that it had.
fn drop_authority(tool: &mut Tool) -> Vec<&'static str> {
    let all = std::mem::replace(tool, Tool::empty(tool.source, tool.span, tool.kind, tool.origin));
    let mut allowed = all.permissions.clone();
    if let Some(command) = &all.command {
        allowed.run.retain(|program| program != command.program());
        allowed.read.retain(|folder| Some(folder) != command.cwd.as_ref());
    }
    let dropped = [
        (":command", all.command.is_some()),
        (":script", all.script.is_some()),
        (":allow", allowed != Permissions::default()),
        (":base", all.base != PathBase::default()),
        (":timeout", all.timeout.is_some()),
        (":memory", all.memory.is_some()),
        (":max-result", all.max_result.is_some()),
        (":effect", all.effect != Effect::default()),
        (":returns", all.returns.is_some()),
        (":accepts", !all.accepts.is_empty()),
        (":rejects", !all.rejects.is_empty()),
        (":asks", !all.asks.is_empty()),
        (":targets", !all.overrides.is_empty()),
    ];
    *tool = Tool {
        name: all.name,
        description: all.description,
        arguments: all.arguments,
        category: all.category,
        confirm: all.confirm,
        confirm_function: all.confirm_function,
        include: all.include,
        is_async: all.is_async,
        function: all.function,
        valid: all.valid,
        ..Tool::empty(all.source, all.span, all.kind, all.origin)
    };
    dropped.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
}

/// Returns whether invalid UTF-8 was replaced in the tool's definition.
fn is_damaged(tool: &Tool, damages: &[Diagnostic], sources: &Sources) -> bool {
    let has_replaced = |text: &str| text.contains(char::REPLACEMENT_CHARACTER);
    damages.iter().any(|damage| damage.primary.source == tool.source)
        && sources.get(tool.source).is_some_and(|file| has_replaced(tool.span.of(&file.text)))
}

/// Returns the formatted spec of a tool.
fn spec_of(tool: &Tool) -> String {
    format_generated(format!("{}\n", write(&form_of_tool(tool))), FileKind::Specs)
}

/// Reads the inputs and returns their texts and file names without extension. `-` or an empty list reads stdin.
fn read_inputs(files: &[PathBuf], from: &Path) -> Result<Vec<(SourceText, Option<String>)>, CliError> {
    if files.is_empty() && std::io::stdin().is_terminal() {
        let message = "missing input; give a file, or `-` for stdin";
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

/// Returns the heads of tool forms that are declared for the files.
fn forms_of(files: &[PathBuf], from: &Path) -> ToolForms {
    let mut forms = ToolForms::default();
    for input in files.iter().filter_map(|file| Input::of_file(from.join(file)).ok()) {
        forms.extend(&read_tool_forms(&input));
    }
    forms
}

/// Reads the tools that an MCP server of the project offers, as JSON.
fn read_server(name: &str, dirs: &CommandDirs) -> Result<SourceText, CliError> {
    let root = find_root(&dirs.project)?;
    let load = Generation::load(&root, &dirs.current, None)?.load;
    let Some(server) = load.mcp_servers.iter().find(|server| server.name.value == name) else {
        let names = load.mcp_servers.iter().map(|server| server.name.value.as_str());
        let advice = advice_on_name(name, "MCP servers", names);
        return Err(CliError::Usage(format!("unknown MCP server `{name}`; {advice}")));
    };
    let offer = block_on(offer_of(&load, server, &root))??;
    let offer = offer.map_err(|reason| CliError::Usage(format!("MCP server `{}`: {reason}", clean(name))))?;
    listed(name, &offer)
}

/// Returns the tools that an MCP server offers as JSON.
fn listed(server: &str, offer: &Offer) -> Result<SourceText, CliError> {
    let listed = format!("{:#}", serde_json::json!({"tools": offer.listed}));
    Ok(read_stream(&format!("MCP server {}", clean(server)), listed.as_bytes())?)
}

fn block_on<F: Future>(work: F) -> Result<F::Output, CliError> {
    Ok(runtime()?.block_on(work))
}

/// Writes each spec to a file with the name of its tool or server. Writes nothing if one of the files exists, unless
/// `force` is set.
fn write_files(specs: &[(&str, String)], folder: &Path, force: bool) -> Result<(), CliError> {
    let dirs = command_dirs(None)?;
    let paths: Vec<PathBuf> =
        specs.iter().map(|(name, _)| dirs.current.join(folder).join(format!("{name}.eld"))).collect();
    let shown = |path: &Path| display_name(path, &dirs.current);
    if let Some(path) = paths.iter().find(|path| !force && path.symlink_metadata().is_ok()) {
        let message =
            format!("{} already exists; nothing was written; use `--force` to overwrite it", shown(path));
        return Err(CliError::Usage(message));
    }
    // Two paths may name the same file, because of a link or a case-insensitive file system.
    let existing: Vec<Option<PathBuf>> = paths.iter().map(|path| std::fs::canonicalize(path).ok()).collect();
    let mut of_file: HashMap<&Path, &Path> = HashMap::new();
    for (path, file) in paths.iter().zip(&existing) {
        if let Some(other) = file.as_ref().and_then(|file| of_file.insert(file, path)) {
            let message =
                format!("{} and {} are the same file; nothing was written", shown(other), shown(path));
            return Err(CliError::Usage(message));
        }
    }
    let is_replaced: Vec<bool> = paths.iter().map(|path| path.symlink_metadata().is_ok()).collect();
    for (((_, spec), path), is_replaced) in specs.iter().zip(&paths).zip(is_replaced) {
        let unwritable = |source| CliError::Unwritable { path: shown(path), source };
        let action = if is_replaced {
            write_output(path, spec.as_bytes(), Readers::Default).map(|()| "replaced")
        } else {
            // Do not overwrite a file that was created in the meantime, for example under another name of the same
            // file.
            create_file(path, spec.as_bytes()).map(|()| "created ")
        };
        eprint_progress(&format!("{} {}", action.map_err(unwritable)?, shown(path)));
    }
    Ok(())
}

/// Writes a placeholder script for each tool without a script.
fn write_scripts(tools: &[Tool], specs: &Path, from: &Path) -> Result<(), CliError> {
    let root = find_root(specs).unwrap_or_else(|_| specs.parent().unwrap_or(specs).to_owned());
    for tool in tools {
        let candidates = script_candidates(&root, tool);
        let existing = candidates.iter().find(|path| path.symlink_metadata().is_ok());
        let Some(path) = existing.or(candidates.first()) else { continue };
        let name = display_name(path, from);
        if existing.is_some() {
            eprint_progress(&format!("kept     {name}"));
            continue;
        }
        create_file(path, scaffold(tool).as_bytes())
            .map_err(|source| CliError::Unwritable { path: name.clone(), source })?;
        eprint_progress(&format!("created  {name}"));
    }
    Ok(())
}

/// Creates a new file and its parent folders.
fn create_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::File::create_new(path)?.write_all(bytes).inspect_err(|_| {
        // Do not leave an empty file on a full disk.
        let _ = std::fs::remove_file(path);
    })
}
