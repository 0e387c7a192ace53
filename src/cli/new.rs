//! `deftool new`: a spec and its script, ready to run.

use super::args::NewOptions;
use super::init::write_file;
use super::output::say;
use super::{CliError, Exit, locate};
use crate::project::{display_name, find_root, load_specs, resolve_inputs};
use crate::spec::is_tool_name;

pub(super) fn run(options: &NewOptions) -> Result<Exit, CliError> {
    let name = options.name.as_str();
    if name.starts_with('-') {
        let message = format!("`{name}` starts with a dash, which commands take for an option");
        return Err(CliError::Usage(message));
    }
    if !is_tool_name(name) {
        let message = format!("`{name}` is no tool name; APIs take up to 64 of A-Z a-z 0-9 _ -");
        return Err(CliError::Usage(message));
    }
    let place = locate(options.project.as_deref())?;
    let root = find_root(&place.folder)?;
    let load = load_specs(&resolve_inputs(&[], &root)?, &place.current)?;
    if let Some(loaded) = load.tools.iter().find(|loaded| loaded.tool.name.value == name) {
        let at = crate::text::Location { source: loaded.tool.source, span: loaded.tool.name.span };
        return Err(CliError::Usage(format!("`{name}` is there already: {}", load.sources.describe(at))));
    }
    let spec = root.join("specs").join(format!("{name}.eld"));
    let script = root.join("scripts").join(format!("{name}.lua"));
    for path in [&spec, &script] {
        if path.exists() {
            let message =
                format!("{} exists already and was left as it is", display_name(path, &place.current));
            return Err(CliError::Usage(message));
        }
    }
    write_file(&spec, &SPEC.replace("NAME", name))?;
    write_file(&script, SCRIPT)?;
    say(&format!("created  {}", display_name(&spec, &place.current)));
    say(&format!("created  {}", display_name(&script, &place.current)));
    say(&format!("next:    deftool call {name} '{{\"text\": \"hello\"}}'"));
    Ok(Exit::Clean)
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
