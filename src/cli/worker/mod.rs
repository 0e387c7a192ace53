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
pub(in crate::cli) mod recordings;
pub(in crate::cli) mod session;
pub(in crate::cli) mod show;
pub(in crate::cli) mod timelines;
pub(in crate::cli) mod trace;

use std::path::Path;
use std::sync::Arc;

use deftool_engine::{Choice, OpenError, PreparedWorker, WorkerProject, is_usable, stored_trust};
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::spec::WorkerSpec;
use deftool_lang::text::count;
use deftool_project::{
    Generation, LoadedTool, PermissionRequest, PermissionSet, ProjectError, ScriptState, Trust, quote,
};
use deftool_worker::ChooseError;

use crate::cli::outcome::CliError;
use crate::cli::project::engine::{self, ScriptOptions};
use crate::cli::project::trust::{report_untrusted, resolve_partly};
use crate::cli::terminal::output::{clean, eprint_line, notices};
use options::{RequestOptions, WorkerOptions};

pub(in crate::cli) use client::serve_client;
pub(in crate::cli) use connect::{api_key, connect, connect_servers, secrets, with_spinner};
pub(in crate::cli) use follow::{FollowResult, Follower, Printed};
pub(in crate::cli) use managed::close;

/// Maximum number of printed findings; the others are counted.
const MAX_FINDINGS: usize = 5;

/// The origin of a request, which may name a worker or a server.
#[derive(Clone, Copy)]
pub(in crate::cli) enum Source<'s> {
    /// The command line.
    CommandLine,
    /// The command line, to go on with a session in which the user chose a worker.
    Session { worker: &'s str },
    /// Requests that run no tool of the project. A replay does not send them.
    Try { is_replay: bool },
    /// A replayed recording. A replay requires no permission for servers and keys.
    Recording { worker: &'s str },
    /// A journal. Its server must be trusted like the `:endpoint` of a spec, which it replaces. `worker`: `None` without a
    /// project.
    Journal { path: &'s Path, worker: Option<&'s str>, endpoint: Option<&'s str> },
}

impl<'s> Source<'s> {
    /// Returns the name of the worker in a stored file; empty if it names none.
    fn stored(self) -> Option<&'s str> {
        match self {
            Self::CommandLine | Self::Session { .. } | Self::Try { .. } => None,
            Self::Recording { worker } => Some(worker),
            Self::Journal { worker, .. } => Some(worker.unwrap_or_default()),
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
) -> Result<PreparedWorker, CliError> {
    let dirs = options.project.dirs()?;
    let mut named = options.worker.as_deref();
    let (recorded, stored) = match source {
        Source::CommandLine | Source::Session { .. } | Source::Try { .. } => (None, None),
        Source::Recording { worker } => (Some(worker), None),
        Source::Journal { path, worker, endpoint } => {
            named = named.or(worker);
            (None, endpoint.filter(|_| options.endpoint.is_none()).map(|endpoint| (path, endpoint)))
        }
    };
    let chosen = match source {
        Source::Session { worker } if named.is_none() => Some(worker),
        _ => None,
    };
    let names_server = options.endpoint.is_some() || stored.is_some();
    let choice = Choice {
        worker: options.worker.as_deref(),
        stored: source.stored(),
        chosen,
        user_tools: options.user_tools,
        is_optional: names_server && named.is_none() && options.project.directory().is_none(),
    };
    let opened = match WorkerProject::open(choice, &dirs.project, &dirs.current, &notices()) {
        Err(OpenError::Project(error @ ProjectError::NoProject { .. })) => {
            return Err(CliError::Usage(format!("{error}, or name a server with --endpoint URL")));
        }
        opened => opened?,
    };
    let generation = opened.project.current();
    // The errors of the user's own project are already reported.
    if !opened.is_user {
        eprint_errors(&generation);
        eprint_omitted_tools(&generation);
    }
    let usable = chosen.filter(|name| is_usable(&generation, name));
    let mut spec = choose_worker(named.or(usable), recorded, &generation)?;
    if let (Some(chosen), None) = (chosen, usable) {
        eprint_line(&format!("note: {}", unusable_worker(chosen, &spec)));
    }
    spec.params.extend(request.params.iter().cloned());
    if let Some((_, endpoint)) = stored {
        (spec.endpoint, spec.server) = (Some(endpoint.to_owned()), None);
    }
    let connection = options.connection();
    let mut plan = opened.plan(spec, &connection);
    if let Source::Try { is_replay } = source {
        plan.omit_tools();
        if is_replay {
            plan.omit_server();
        }
    }
    if recorded.is_some() {
        plan.omit_server();
    } else if let Some((path, endpoint)) = stored.filter(|_| !scripts.trust) {
        check_server(&opened.root, path, endpoint, plan.omit_server())?;
    }
    let is_new = matches!(source, Source::CommandLine | Source::Session { .. });
    let suffice = |granted: &PermissionSet| is_new && plan.is_enough(&Trust::Only(Arc::new(granted.clone())));
    let trust = resolve_partly(&opened.folder, plan.permissions(), scripts.trust, suffice)?;
    let prepared = plan.prepare(Box::new(trust), engine::start(scripts)?)?;
    report_untrusted(&prepared.untrusted);
    // A replay exports no telemetry.
    Ok(if recorded.is_some() { prepared } else { prepared.observed(&connection, &notices()) })
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

/// Returns the message about a worker that was chosen in a session and cannot be used. `used`: the one in place of it.
pub(in crate::cli) fn unusable_worker(chosen: &str, used: &WorkerSpec) -> String {
    format!(
        "the worker `{}` of this session no longer exists or has errors; `{}` is used",
        clean(chosen),
        clean(&used.name.value)
    )
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
