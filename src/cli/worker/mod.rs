//! What the commands that drive a worker have in common: the project's worker with its tools, the server it talks to,
//! and a request followed to its end.

mod connect;
mod follow;
mod managed;

use std::sync::Arc;

pub(super) use connect::connect;
pub(super) use follow::{Followed, Follower, Interrupts};
pub(super) use managed::close;

use super::args::{ScriptOptions, WorkerOptions};
use super::output::{clean, say};
use super::trust::{ProjectTrust, endpoint_wish, server_wish};
use super::{CliError, engine, locate};
use crate::diagnostic::render::render_concise;
use crate::diagnostic::{Diagnostic, Severity};
use crate::project::{Generation, LiveProject, LoadedTool, ScriptState, find_root, read_bios, wishes};
use crate::request::BiosTemplate;
use crate::spec::WorkerSpec;
use crate::text::count;
use crate::worker::{ChooseError, ProjectTools, WorkerConfig};

/// Findings beyond this many are only counted: `check` is for them.
const MAX_TOLD: usize = 5;

/// A worker of the project, trusted with what it and its tools want.
pub(super) struct Chosen {
    pub(super) spec: WorkerSpec,
    pub(super) tools: Arc<ProjectTools>,
    pub(super) config: WorkerConfig,
}

/// Opens the project and chooses its worker. `recorded`: the worker of the recording that is played; nothing will be sent
/// then, so that no server and no key is asked about.
///
/// # Errors
/// When there is no project or no such worker, or the user does not trust it.
pub(super) fn choose(
    options: &WorkerOptions,
    scripts: &ScriptOptions,
    recorded: Option<&str>,
) -> Result<Chosen, CliError> {
    let place = locate(options.project.as_deref())?;
    let root = find_root(&place.folder)?;
    let project = LiveProject::open(&root, &place.current, None)?;
    let generation = project.current();
    tell_errors(&generation);
    tell_left_out(&generation);
    let is_offline = recorded.is_some();
    let spec = choose_worker(options.worker.as_deref(), recorded, &generation)?;
    let offered = generation.tool_set(&spec);
    let mut wanted =
        wishes(&generation.load, offered.iter().filter_map(|entry| generation.tool(&entry.name)));
    if !is_offline {
        let (named, has_key) = (options.endpoint.as_deref(), api_key(&spec).is_some());
        wanted.extend(endpoint_wish(&generation.load, &spec, named, has_key));
        wanted.extend(server_wish(&generation.load, &spec, named));
    }
    let trust = ProjectTrust::settle(&root, wanted, scripts.trust)?;
    let scripts = engine::start(scripts)?;
    let tools = Arc::new(ProjectTools::new(project, spec.clone(), Box::new(trust), scripts));
    let mut config = WorkerConfig::of_spec(&spec);
    if let Some(text) = read_bios(&root, &spec).map_err(CliError::Usage)? {
        config.bios = Arc::new(BiosTemplate { text });
    }
    Ok(Chosen { spec, tools, config })
}

/// The key that the worker sends, if its variable is set.
pub(super) fn api_key(spec: &WorkerSpec) -> Option<String> {
    environment(&spec.api_key_env).map(|key| key.trim().to_owned())
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Says what is wrong with the specs.
pub(super) fn tell_errors(generation: &Generation) {
    tell(generation, |finding| finding.severity == Severity::Error, |_| true);
}

/// What is found whose line is `wanted`.
pub(super) fn tell_findings(generation: &Generation, wanted: impl Fn(&str) -> bool) {
    tell(generation, |_| true, wanted);
}

fn tell(generation: &Generation, of: impl Fn(&Diagnostic) -> bool, wanted: impl Fn(&str) -> bool) {
    let load = &generation.load;
    let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
    let others = load.findings.iter().filter(|finding| !is_error(finding));
    let found = load.findings.iter().filter(is_error).chain(others).filter(|finding| of(finding));
    let lines = found.map(|finding| render_concise(finding, &load.sources)).filter(|line| wanted(line));
    let mut more = 0_usize;
    for (place, line) in lines.enumerate() {
        if place < MAX_TOLD {
            say(&line);
        } else {
            more += 1;
        }
    }
    if more > 0 {
        say(&format!("and {more} more; see `deftool check`"));
    }
}

/// Says which tools no model is offered, because of errors that are told, too.
pub(super) fn tell_left_out(generation: &Generation) {
    let is_broken = |loaded: &LoadedTool| matches!(loaded.script, ScriptState::Broken(_));
    let names = generation.load.tools.iter().map(|loaded| loaded.tool.name.value.as_str());
    let mut broken = names.filter(|name| generation.tool(name).is_none_or(is_broken));
    let Some(first) = broken.next() else { return };
    let name = clean(first);
    match broken.count() {
        0 => say(&format!("{name} is left out")),
        more => say(&format!("{name} and {} are left out", count(more, "other tool"))),
    }
}

/// The worker that was named, the one that recorded, the only one, or the implicit one.
pub(super) fn choose_worker(
    named: Option<&str>,
    recorded: Option<&str>,
    generation: &Generation,
) -> Result<WorkerSpec, CliError> {
    let load = &generation.load;
    let known = recorded.filter(|name| load.workers.iter().any(|worker| worker.name.value == *name));
    crate::worker::choose_worker(load, named.or(known)).map_err(|error| {
        let advice = if matches!(error, ChooseError::Several { .. }) { " with --worker NAME" } else { "" };
        let by = match recorded {
            Some(name) if named.is_none() && known.is_none() && !name.is_empty() => {
                format!("recorded by worker `{name}`, which is gone; ")
            }
            Some(_) | None => String::new(),
        };
        CliError::Usage(format!("{by}{error}{advice}"))
    })
}
