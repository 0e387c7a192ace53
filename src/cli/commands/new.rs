//! `deftool new`: adds a tool (a spec and a script) to a project, or a script to a tool without one.

use std::path::{Path, PathBuf};

use clap::Args;
use deftool_lang::spec::{ToolKind, is_tool_name};
use deftool_project::{LoadedTool, display_name, find_root, load_specs, resolve_inputs, script_candidates};
use deftool_script::scaffold;

use crate::cli::options::ProjectOptions;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::generated::write_file;
use crate::cli::terminal::output::eprint_progress;

#[derive(Debug, Args)]
#[command(after_help = "\
Creates specs/NAME.eld and scripts/NAME.lua. If the tool has a spec but no script, creates a placeholder script; calls \
fail with `NAME is not implemented`.

Examples:
  deftool new get_weather")]
pub(in crate::cli) struct NewOptions {
    /// Name of the tool
    pub(in crate::cli) name: String,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

pub(in crate::cli) fn run(options: &NewOptions) -> Result<Exit, CliError> {
    let name = options.name.as_str();
    if name.starts_with('-') {
        let message = format!("invalid tool name `{name}`: a leading dash would be read as an option");
        return Err(CliError::Usage(message));
    }
    if !is_tool_name(name) {
        let message = format!("invalid tool name `{name}`: expected up to 64 characters of A-Z a-z 0-9 _ -");
        return Err(CliError::Usage(message));
    }
    let dirs = options.project.dirs()?;
    let root = find_root(&dirs.project)?;
    let load = load_specs(&resolve_inputs(&[], &root)?, &dirs.current)?;
    if let Some(loaded) = load.tools.iter().find(|loaded| loaded.tool.name.value == name) {
        if let Some(script) = missing_script(&root, loaded) {
            write_file(&script, &scaffold(&loaded.tool))?;
            eprint_progress(&format!("created  {}", display_name(&script, &dirs.current)));
            return Ok(Exit::Clean);
        }
        let at = deftool_lang::text::Location { source: loaded.tool.source, span: loaded.tool.name.span };
        return Err(CliError::Usage(format!(
            "duplicate tool `{name}`: already defined at {}",
            load.sources.describe(at)
        )));
    }
    let spec = root.join("specs").join(format!("{name}.eld"));
    let script = root.join("scripts").join(format!("{name}.lua"));
    for path in [&spec, &script] {
        if path.exists() {
            let message = format!("{} already exists", display_name(path, &dirs.current));
            return Err(CliError::Usage(message));
        }
    }
    write_file(&spec, &SPEC.replace("NAME", name))?;
    write_file(&script, SCRIPT)?;
    eprint_progress(&format!("created  {}", display_name(&spec, &dirs.current)));
    eprint_progress(&format!("created  {}", display_name(&script, &dirs.current)));
    eprint_progress(&format!("next:    deftool call {name} '{{\"text\": \"hello\"}}'"));
    Ok(Exit::Clean)
}

/// Returns the path for the script of a tool that has none.
fn missing_script(root: &Path, loaded: &LoadedTool) -> Option<PathBuf> {
    let tool = &loaded.tool;
    let is_runnable = tool.valid && tool.kind == ToolKind::Normal && tool.function.is_none();
    let candidates = script_candidates(root, tool);
    let exists = candidates.iter().any(|path| path.symlink_metadata().is_ok());
    candidates.into_iter().next().filter(|_| is_runnable && !exists)
}

const SPEC: &str = r#"(deftool
 :name "NAME"
 :description "Say what it does and when a model should use it."
 :args ((:name "text" :type string :description "Say what to write here."))
 :accepts [(:text "hello")]
 :rejects [()])
"#;

const SCRIPT: &str = "-- Arguments arrive in :args order. Return any JSON value.
return function(text)
  return { echo = text }
end
";
