//! Shared code of the commands that use a worker: opening it, connecting to its server, and following a request.

pub(in crate::cli) mod approve;
mod client;
mod connect;
mod follow;
pub(in crate::cli) mod journal;
mod managed;
pub(in crate::cli) mod message;
pub(in crate::cli) mod offer;
pub(in crate::cli) mod options;
mod project;
pub(in crate::cli) mod recordings;
mod requirements;
pub(in crate::cli) mod secrets;
mod servers;
pub(in crate::cli) mod session;
pub(in crate::cli) mod show;
pub(in crate::cli) mod telemetry;
pub(in crate::cli) mod timelines;
pub(in crate::cli) mod trace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::spec::{OnFailure, WorkerSpec};
use deftool_lang::text::count;
use deftool_project::{
    Generation, LiveProject, LoadedTool, PermissionRequest, PermissionSet, ProjectError, ScriptState, quote,
};
use deftool_script::ScriptRunner;
use deftool_worker::{ChooseError, ProjectTools, WorkerConfig, api_of};

use crate::cli::outcome::CliError;
use crate::cli::project::engine;
use crate::cli::project::engine::ScriptOptions;
use crate::cli::project::trust::{
    ProjectTrust, endpoint_permission_request, report_untrusted, server_permission_request, stored_trust,
};
use crate::cli::terminal::output::{clean, eprint_line};
use options::{RequestOptions, WorkerOptions};
use requirements::Requirements;
use secrets::secrets;

pub(in crate::cli) use client::{ClientWorkers, OpenedWorker, close_remote, serve_client};
pub(in crate::cli) use connect::{api_key, connect, with_spinner, without_probes};
pub(in crate::cli) use follow::{FollowResult, Follower, Printed};
pub(in crate::cli) use managed::close;
pub(in crate::cli) use project::{WorkerProject, is_user_worker, open_project};
pub(in crate::cli) use servers::{Servers, join, server_name};

/// Maximum number of printed findings; the others are counted.
const MAX_FINDINGS: usize = 5;

/// A worker of the project that has the permissions of its tools.
pub(in crate::cli) struct OpenWorker {
    pub(in crate::cli) spec: WorkerSpec,
    /// The folder of its project.
    pub(in crate::cli) root: PathBuf,
    pub(in crate::cli) tools: Arc<ProjectTools>,
    pub(in crate::cli) config: WorkerConfig,
    /// The MCP servers whose tools the worker uses.
    pub(in crate::cli) servers: Servers,
}

/// The origin of a request, which may name a worker or a server.
#[derive(Clone, Copy)]
pub(in crate::cli) enum Source<'s> {
    /// The command line.
    CommandLine,
    /// A test of the model, which runs no tool of the project.
    Try,
    /// A replayed recording. A replay requires no permission for servers and keys.
    Recording { worker: &'s str },
    /// A journal. Its server must be trusted like the `:endpoint` of a spec, which it replaces. `worker`: `None` without a
    /// project.
    Journal { path: &'s Path, worker: Option<&'s str>, endpoint: Option<&'s str> },
}

impl<'s> Source<'s> {
    /// Returns the worker that it names.
    pub(in crate::cli) fn worker(self) -> Option<&'s str> {
        match self {
            Self::CommandLine | Self::Try => None,
            Self::Recording { worker } => Some(worker).filter(|name| !name.is_empty()),
            Self::Journal { worker, .. } => worker,
        }
    }
}

/// Opens the project and selects its worker. For a request of the command line, tools whose permissions are not trusted
/// are reported and left out.
///
/// # Errors
/// If there is no project or no such worker, if a permission is missing that cannot be left out, or if no tool would be
/// left.
pub(in crate::cli) fn open(
    options: &WorkerOptions,
    request: &RequestOptions,
    scripts: &ScriptOptions,
    source: Source<'_>,
) -> Result<OpenWorker, CliError> {
    let dirs = options.project.dirs()?;
    let mut named = options.worker.as_deref();
    let (recorded, stored) = match source {
        Source::CommandLine | Source::Try => (None, None),
        Source::Recording { worker } => (Some(worker), None),
        Source::Journal { path, worker, endpoint } => {
            named = named.or(worker);
            (None, endpoint.filter(|_| options.endpoint.is_none()).map(|endpoint| (path, endpoint)))
        }
    };
    let names_server = options.endpoint.is_some() || stored.is_some();
    let is_standalone = names_server && named.is_none() && options.project.directory().is_none();
    let opened = match open_project(options, &dirs.project, &dirs.current, source) {
        // A server that the user names needs no project.
        Err(CliError::Project(ProjectError::NoProject { .. })) if is_standalone => {
            let (root, project) = (dirs.current, LiveProject::without_files());
            WorkerProject { folder: root.clone(), root, project, is_user: false }
        }
        Err(CliError::Project(error @ ProjectError::NoProject { .. })) => {
            return Err(CliError::Usage(format!("{error}, or name a server with --endpoint URL")));
        }
        opened => opened?,
    };
    let WorkerProject { root, project, folder, is_user } = opened;
    let generation = project.current();
    // The errors of the user's own project are already reported.
    if !is_user {
        eprint_errors(&generation);
        eprint_omitted_tools(&generation);
    }
    let mut spec = choose_worker(named, recorded, &generation)?;
    spec.params.extend(request.params.iter().cloned());
    if let Some((_, endpoint)) = stored {
        (spec.endpoint, spec.server) = (Some(endpoint.to_owned()), None);
    }
    spec.api = Some(api_of(&spec, options.endpoint.as_deref()));
    let mut requirements = Requirements::of((&root, is_user), &generation, &spec);
    if matches!(source, Source::Try) {
        requirements.run_no_tools();
    }
    if recorded.is_none() && !is_user {
        let required: Vec<_> = endpoint_requirements(options, &generation, &spec).collect();
        match stored {
            Some((path, endpoint)) if !scripts.trust => check_server(&root, path, endpoint, required)?,
            Some(_) | None => requirements.own.extend(required),
        }
    }
    let is_new = matches!(source, Source::CommandLine);
    let suffice = |granted: &PermissionSet| is_new && requirements.are_enough(granted);
    let trust = ProjectTrust::resolve_partly(&folder, requirements.all(), scripts.trust, suffice)?;
    report_untrusted(&requirements.leave_out(&generation, &trust.current()));
    let scripts = engine::start(scripts)?;
    let open = OpenWorker::new(Arc::new(project), root, spec, (trust, scripts), requirements)?;
    // A replay exports no telemetry.
    Ok(if recorded.is_some() { open } else { open.observed(&generation) })
}

impl OpenWorker {
    /// Creates a worker that has the required permissions.
    ///
    /// # Errors
    /// If its BIOS cannot be read.
    pub(in crate::cli) fn new(
        project: Arc<LiveProject>,
        root: PathBuf,
        spec: WorkerSpec,
        (trust, scripts): (ProjectTrust, Arc<ScriptRunner>),
        requirements: Requirements,
    ) -> Result<Self, CliError> {
        let tools = ProjectTools::new(project, spec.clone(), Box::new(trust), scripts)
            .without_untrusted(requirements.left_out);
        let config = WorkerConfig::of_project(&root, &spec).map_err(CliError::Usage)?;
        Ok(Self { spec, root, tools: Arc::new(tools), config, servers: requirements.servers })
    }

    /// Exports the requests, without the secrets of `generation`, if the environment names a collector.
    pub(in crate::cli) fn observed(mut self, generation: &Generation) -> Self {
        self.config.observer =
            telemetry::observer(|| (api_key(&self.spec), secrets(&[], generation).unwrap_or_default()));
        self
    }

    /// Reports errors to the model where the spec does not set what happens to them. For conversations: a person sees
    /// the errors and can stop the model.
    pub(in crate::cli) fn reporting_errors(mut self) -> Self {
        let run = &mut self.config.run;
        run.on_invalid_arguments = self.spec.on_invalid_arguments.unwrap_or(OnFailure::Report);
        run.on_tool_error = self.spec.on_tool_error.unwrap_or(OnFailure::Report);
        self
    }
}

/// Returns the permissions that a worker requires for its server and its key.
pub(in crate::cli) fn endpoint_requirements(
    options: &WorkerOptions,
    generation: &Generation,
    spec: &WorkerSpec,
) -> impl Iterator<Item = PermissionRequest> {
    let (named, has_key) = (options.endpoint.as_deref(), api_key(spec).is_some());
    let endpoint = endpoint_permission_request(&generation.load, spec, named, has_key);
    endpoint.into_iter().chain(server_permission_request(&generation.load, spec, named))
}

/// Checks that the server of a journal is trusted for the project, like the server of a spec. There is no prompt: a
/// permission that only a journal needs is not stored.
///
/// # Errors
/// If it is not trusted.
fn check_server(
    root: &Path,
    journal: &Path,
    endpoint: &str,
    required: Vec<PermissionRequest>,
) -> Result<(), CliError> {
    let missing = stored_trust(root).missing_requests(required);
    if missing.is_empty() {
        return Ok(());
    }
    let grants: Vec<String> = missing.iter().map(|request| request.grants.to_string()).collect();
    Err(CliError::Usage(format!(
        "the journal {} names the server {}, which is not trusted ({}); to use it, repeat `--endpoint {}`",
        clean(&journal.display().to_string()),
        clean(endpoint),
        clean(&grants.join(" ")),
        clean(&quote(endpoint))
    )))
}

/// Prints the errors of the project.
pub(in crate::cli) fn eprint_errors(generation: &Generation) {
    eprint_concise(generation, |finding| finding.severity == Severity::Error, |_| true);
}

/// Prints the findings whose line satisfies `filter`.
pub(in crate::cli) fn eprint_matching_findings(generation: &Generation, filter: impl Fn(&str) -> bool) {
    eprint_concise(generation, |_| true, filter);
}

/// Prints the selected findings, one line each, errors first.
fn eprint_concise(
    generation: &Generation,
    finding_filter: impl Fn(&Diagnostic) -> bool,
    line_filter: impl Fn(&str) -> bool,
) {
    let load = &generation.load;
    let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
    let others = load.findings.iter().filter(|finding| !is_error(finding));
    let found = load.findings.iter().filter(is_error).chain(others).filter(|finding| finding_filter(finding));
    let lines = found.map(|finding| render_concise(finding, &load.sources)).filter(|line| line_filter(line));
    let mut more = 0_usize;
    for (index, line) in lines.enumerate() {
        if index < MAX_FINDINGS {
            eprint_line(&line);
        } else {
            more += 1;
        }
    }
    if more > 0 {
        eprint_line(&format!("and {more} more; run `deftool check`"));
    }
}

/// Prints the tools that are not offered to a model because of errors.
pub(in crate::cli) fn eprint_omitted_tools(generation: &Generation) {
    let is_broken = |loaded: &LoadedTool| matches!(loaded.script, ScriptState::Broken(_));
    let names = generation.load.tools.iter().map(|loaded| loaded.tool.name.value.as_str());
    let mut broken = names.filter(|name| generation.tool(name).is_none_or(is_broken));
    let Some(first) = broken.next() else { return };
    let name = clean(first);
    match broken.count() {
        0 => eprint_line(&format!("tool `{name}` is omitted")),
        more => eprint_line(&format!("tool `{name}` and {} are omitted", count(more, "other tool"))),
    }
}

/// Selects the named worker, the recorded worker, or the default one.
pub(in crate::cli) fn choose_worker(
    named: Option<&str>,
    recorded: Option<&str>,
    generation: &Generation,
) -> Result<WorkerSpec, CliError> {
    let load = &generation.load;
    let known = recorded.filter(|name| load.workers.iter().any(|worker| worker.name.value == *name));
    deftool_worker::choose_worker(load, named.or(known)).map_err(|error| {
        let advice = if matches!(error, ChooseError::Several { .. }) { " with --worker NAME" } else { "" };
        let origin = match recorded {
            Some(name) if named.is_none() && known.is_none() && !name.is_empty() => {
                format!("recorded by worker `{name}`, which no longer exists; ")
            }
            Some(_) | None => String::new(),
        };
        CliError::Usage(format!("{origin}{error}{advice}"))
    })
}
