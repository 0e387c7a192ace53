//! `deftool init`: creates a project, with a sample tool or with the toolbox.

mod toolbox;

use std::path::{Path, PathBuf};

use clap::Args;
use deftool_engine::text::quote;
use deftool_engine::{config_folder, inside_project};
use deftool_lang::spec::{ASKS_PREVIEW, advice_on_name};
use deftool_lang::text::Location;
use deftool_process::files::create_only_private_files;
use deftool_project::{Load, load_specs, resolve_inputs};

use super::import::{ForeignFormat, Imported, import_for_init};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::generated::write_file;
use crate::cli::project::inputs::command_dirs;
use crate::cli::terminal::output::{clean, eprint_progress};
use toolbox::{TOOLBOX, ToolboxTool};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool init my-agent
  deftool init --toolbox
  deftool init --toolbox read_file,search_text
  deftool init --from gptel ~/.emacs.d/init.el my-agent
  deftool init --from mcp \"uvx mcp-server-time\" my-agent
  deftool init --user
  deftool init --agents")]
pub(in crate::cli) struct InitOptions {
    /// Folder of the new project
    #[arg(default_value = ".")]
    pub(in crate::cli) folder: PathBuf,
    /// Copy the bundled tools (files, search, programs, git, web, time, arithmetic), or only the named ones
    #[arg(long, value_name = "NAME", num_args = 0.., value_delimiter = ',')]
    pub(in crate::cli) toolbox: Option<Vec<String>>,
    /// Convert the tools of FILE to specs, each with a placeholder script; for `mcp`, FILE may also be the URL of a
    /// server, or a command that starts one
    #[arg(long, value_names = ["FORMAT", "FILE"], num_args = 2, conflicts_with = "toolbox")]
    pub(in crate::cli) from: Option<Vec<String>>,
    /// Create your own project, whose tools are offered in all projects
    #[arg(long, conflicts_with = "folder")]
    pub(in crate::cli) user: bool,
    /// Also write AGENTS.md, which explains specs, scripts and commands to coding agents
    #[arg(long)]
    pub(in crate::cli) agents: bool,
}

/// A recorded request that calls the sample tool.
pub(in crate::cli) const RECORDING: &str = "sample.recording.jsonl";

/// The sample tool.
const SAMPLE: [(&str, &str); 3] = [
    ("specs/tools.eld", include_str!("files/tools.eld")),
    ("scripts/word_count.lua", include_str!("files/word_count.lua")),
    (RECORDING, include_str!("files/sample.recording.jsonl")),
];

/// The sample tool of the user's own project. Its name differs from those of other samples, because a project would need
/// trust to replace it.
const USER_SAMPLE: [(&str, &str); 2] = [
    ("specs/tools.eld", include_str!("files/user_tools.eld")),
    ("scripts/sort_lines.lua", include_str!("files/sort_lines.lua")),
];

/// The guide for coding agents.
const AGENTS: [(&str, &str); 1] = [("AGENTS.md", include_str!("files/AGENTS.md"))];

/// Files of every project.
const COMMON: [(&str, &str); 2] = [
    ("specs/worker.eld", include_str!("files/worker.eld")),
    (".gitignore", "*.journal\n*.journal-*\n*.journal.lock\n"),
];

pub(in crate::cli) fn run(options: &InitOptions) -> Result<Exit, CliError> {
    let folder = &if options.user { user_folder()? } else { options.folder.clone() };
    let specs = folder.join("specs");
    let is_project = specs.is_dir();
    if let Some(unknown) = options.toolbox.iter().flatten().find(|name| toolbox::find(name).is_none()) {
        return Err(CliError::Usage(describe_unknown(unknown)));
    }
    if is_project && options.agents && options.toolbox.is_none() && options.from.is_none() {
        create(folder, &AGENTS)?;
        return Ok(Exit::Clean);
    }
    if is_project && options.toolbox.is_none() {
        let own = if options.user { " --user" } else { "" };
        let message = format!(
            "`{}` is already a project; add a tool with `deftool new{} NAME`, or the toolbox with `deftool init{own} --toolbox`",
            folder.display(),
            user_option(options, folder)
        );
        return Err(CliError::Usage(message));
    }
    if !is_project && !options.user && contains_home(folder) {
        let message = format!(
            "`{}` contains your home folder, all of which would belong to the project; name a new folder, as in `deftool \
             init my-agent`, or create your own project, whose tools are offered everywhere, with `deftool init --user`",
            clean(&folder.display().to_string())
        );
        return Err(CliError::Usage(message));
    }
    for path in [folder, &specs] {
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            return Err(CliError::Usage(format!("`{}` exists and is not a directory", path.display())));
        }
    }
    let imported = options.from.as_deref().map(read_foreign).transpose()?;
    if let Some(imported) = &imported {
        if imported.first_tool().is_none() {
            imported.report();
            return Err(CliError::Usage(String::from("no tool was imported; nothing was written")));
        }
        imported.write_to(folder)?;
    } else if let Some(names) = &options.toolbox {
        let existing = if is_project { Some(load_in(folder)?) } else { None };
        copy_toolbox(folder, existing.as_ref(), names)?;
    } else {
        create(folder, if options.user { &USER_SAMPLE } else { &SAMPLE[..] })?;
    }
    if !is_project && !options.user {
        create(folder, &COMMON)?;
    }
    if options.agents {
        create(folder, &AGENTS)?;
    }
    let exit = imported.as_ref().map_or(Exit::Clean, Imported::report);
    eprint_progress(&format!("next:    {}", next_commands(options, folder, imported.as_ref())));
    Ok(exit)
}

/// Returns whether a folder is the home folder of the user or above it.
fn contains_home(folder: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let home = std::env::home_dir().and_then(|home| real(&home));
    home.zip(real(folder)).is_some_and(|(home, folder)| home.starts_with(folder))
}

/// Returns commands for the new project.
fn next_commands(options: &InitOptions, folder: &Path, imported: Option<&Imported>) -> String {
    let call = match (&options.toolbox, imported) {
        (None, Some(imported)) => &format!("{} --help", imported.first_tool().unwrap_or("TOOL")),
        (None, None) if options.user => r#"sort_lines text="one two""#,
        (None, None) => r#"word_count text="one two three""#,
        (Some(names), _) if names.is_empty() => r#"calculate expression="2 ^ 10""#,
        (Some(_), _) => "TOOL --help",
    };
    let enter = if options.user || is_here(folder) {
        String::new()
    } else {
        format!("cd {} && ", quote(&clean(&folder.display().to_string())))
    };
    format!("{enter}deftool check{} && deftool call {call}", user_option(options, folder))
}

/// Returns the option that selects the user's own project in commands that do not offer its tools everywhere.
fn user_option(options: &InitOptions, folder: &Path) -> String {
    let folder = quote(&clean(&folder.display().to_string()));
    if options.user { format!(" -C {folder}") } else { String::new() }
}

/// Returns the folder of the user's own project. From now on, created files are private: a project that others can write is
/// ignored.
fn user_folder() -> Result<PathBuf, CliError> {
    let folder = config_folder()?.ok_or_else(|| {
        CliError::Usage(String::from(
            "no configuration folder: set HOME, XDG_CONFIG_HOME or DEFTOOL_CONFIG_DIR",
        ))
    })?;
    if let Some(why) = inside_project(&folder) {
        let folder = clean(&folder.display().to_string());
        return Err(CliError::Usage(format!("the configuration folder `{folder}` cannot have tools: {why}")));
    }
    create_only_private_files();
    Ok(folder)
}

/// Reads the tools of `--from FORMAT FILE`.
fn read_foreign(from: &[String]) -> Result<Imported, CliError> {
    let [format, file] = from else {
        return Err(CliError::Usage(String::from("--from takes a format and a file")));
    };
    let Some((_, format)) = ForeignFormat::all().find(|(name, _)| name == format) else {
        let advice = advice_on_name(format, "formats", ForeignFormat::all().map(|(name, _)| name));
        return Err(CliError::Usage(format!("unknown format `{}`; {advice}", clean(format))));
    };
    import_for_init(file, format)
}

/// Reads the specs of the project in `folder`.
fn load_in(folder: &Path) -> Result<Load, CliError> {
    let dirs = command_dirs(Some(folder))?;
    Ok(load_specs(&resolve_inputs(&[], &dirs.project)?, &dirs.current)?)
}

fn describe_unknown(name: &str) -> String {
    let advice = advice_on_name(name, "toolbox tools", TOOLBOX.iter().map(|tool| tool.name));
    let folder = if advice.ends_with('?') { "" } else { "; a folder comes before --toolbox" };
    format!("unknown toolbox tool `{name}`; {advice}{folder}")
}

/// Copies the named tools, or all, unless the project uses their names.
fn copy_toolbox(folder: &Path, existing: Option<&Load>, names: &[String]) -> Result<(), CliError> {
    let selected: Vec<&ToolboxTool> = TOOLBOX
        .iter()
        .filter(|tool| names.is_empty() || names.iter().any(|name| name == tool.name))
        .collect();
    for tool in &selected {
        let script = format!("scripts/{}.lua", tool.name);
        if let Some(location) = existing.and_then(|load| place_of(load, tool.name)) {
            eprint_progress(&format!("skipped  {}: already defined at {location}", tool.name));
        } else if folder.join(&script).exists() {
            // Do not combine an included spec with another script.
            eprint_progress(&format!("skipped  {}: {script} already exists", tool.name));
        } else {
            create(folder, tool.files)?;
        }
    }
    let files: Vec<&str> =
        selected.iter().flat_map(|tool| tool.files.iter().map(|(_, text)| *text)).collect();
    create(folder, &toolbox::modules_of(&files))?;
    if existing.is_none_or(|load| !load.enables(ASKS_PREVIEW)) {
        create(folder, &toolbox::SETTINGS)?;
    }
    Ok(())
}

/// Returns where a project defines a tool of this name.
fn place_of(load: &Load, name: &str) -> Option<String> {
    let loaded = load.tools.iter().find(|loaded| loaded.tool.name.value == name)?;
    Some(load.sources.describe(Location { source: loaded.tool.source, span: loaded.tool.name.span }))
}

/// Writes the files that do not exist.
fn create(folder: &Path, files: &[(&str, &str)]) -> Result<(), CliError> {
    for (name, content) in files {
        let path = folder.join(name);
        if path.exists() {
            eprint_progress(&format!("kept     {}", shown(folder, name)));
            continue;
        }
        write_file(&path, content)?;
        eprint_progress(&format!("created  {}", shown(folder, name)));
    }
    Ok(())
}

fn is_here(folder: &Path) -> bool {
    folder == Path::new(".")
}

/// Returns the file name relative to the current folder.
fn shown(folder: &Path, name: &str) -> String {
    if is_here(folder) { name.to_owned() } else { clean(&folder.join(name).display().to_string()) }
}
