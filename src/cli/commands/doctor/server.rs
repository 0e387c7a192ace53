//! The server of each worker: its URL and source, whether it answers, and its models.

use std::collections::BTreeMap;
use std::time::Duration;

use deftool_chat::Dialects;
use deftool_engine::{Connection, EndpointOrigin, user_dialects};
use deftool_lang::spec::{Api, DialectSpec, WorkerSpec};
use deftool_project::{Generation, PermissionRequest};
use deftool_worker::{
    Credentials, EndpointOptions, Examination, ExamineOptions, ProbeError, api_of, examine_endpoint,
    find_endpoint, is_remote, names_key,
};
use futures_util::future::join_all;

use super::line::Line;
use super::{DoctorOptions, managed, model};
use crate::cli::outcome::{CliError, environment, runtime};
use crate::cli::project::trust::{endpoint_permission_request, missing_permissions};
use crate::cli::worker::choose_worker;

/// Time limit of each request to a server.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of servers that are checked.
const MAX_SERVERS: usize = 16;

/// A server that one or more workers use.
struct Server {
    base: String,
    /// Where the URL comes from.
    source: String,
    key_env: String,
    /// Whether the server was detected on this machine. Detected servers receive no key.
    is_found: bool,
    /// Whether the server is named in a spec and is on another machine.
    is_remote: bool,
    /// The missing permission to contact this server, or to send it the key.
    untrusted: Option<PermissionRequest>,
    workers: Vec<WorkerSpec>,
}

pub(super) fn check(options: &DoctorOptions, generation: Option<&Generation>) -> Result<Vec<Line>, CliError> {
    let mut managed = Vec::new();
    let mut workers = workers(options, generation)?;
    if let (None, Some(generation)) = (&options.endpoint, generation) {
        workers.retain(|worker| match &worker.server {
            Some(server) => {
                managed.push(managed::check(worker, server, generation));
                false
            }
            None => true,
        });
    }
    let runtime = runtime()?;
    let lines = runtime.block_on(async {
        let mut lines = managed;
        let (servers, any_missing) = servers(options, generation, workers).await;
        if any_missing {
            lines.push(Line::warning(
                "endpoint",
                "none configured, and no server found on 127.0.0.1:8080 (llama.cpp) and :11434 (Ollama)",
                "use --endpoint URL, set OPENAI_BASE_URL or :endpoint of the worker, or start a server",
            ));
        }
        if servers.len() > MAX_SERVERS {
            let more = servers.len() - MAX_SERVERS;
            lines.push(Line::ok(
                "endpoint",
                format!("{more} more not checked; use `--worker NAME` to check one"),
            ));
        }
        let (trusted, untrusted): (Vec<&Server>, Vec<&Server>) =
            servers.iter().take(MAX_SERVERS).partition(|server| !server.is_untrusted_remote());
        lines.extend(untrusted.into_iter().filter_map(skipped_line));
        let own = generation.map_or(&[][..], |generation| &generation.load.dialects);
        let found = join_all(trusted.iter().map(|server| examine(server, options, own))).await;
        for (server, found) in trusted.into_iter().zip(found) {
            lines.extend(server_lines(server, &found, options, generation));
        }
        lines
    });
    // Do not wait for pending DNS lookups.
    runtime.shutdown_background();
    Ok(lines)
}

/// Returns the named worker, or all valid workers, or the default worker.
fn workers(options: &DoctorOptions, generation: Option<&Generation>) -> Result<Vec<WorkerSpec>, CliError> {
    let all = generation.map(|generation| generation.load.workers.as_slice()).unwrap_or_default();
    if let Some(name) = &options.worker {
        let Some(generation) = generation else {
            return Err(CliError::Usage(format!("unknown worker `{name}`; no project found")));
        };
        return Ok(vec![choose_worker(Some(name), None, generation)?]);
    }
    let mut chosen: Vec<WorkerSpec> = all.iter().filter(|worker| worker.valid).cloned().collect();
    if chosen.is_empty() {
        chosen.push(WorkerSpec::named("default"));
    }
    Ok(chosen)
}

/// Returns the servers of `workers`, and whether a worker has no server.
async fn servers(
    options: &DoctorOptions,
    generation: Option<&Generation>,
    workers: Vec<WorkerSpec>,
) -> (Vec<Server>, bool) {
    let mut servers: BTreeMap<(String, String, bool), Server> = BTreeMap::new();
    let mut local: Option<Option<String>> = None;
    let mut any_missing = false;
    let connection = Connection { endpoint: options.endpoint.clone(), ..Connection::default() };
    for worker in workers {
        let mut is_found = false;
        let endpoint = match connection.endpoint_of(&worker) {
            Some((base, EndpointOrigin::Caller)) => Some((base, String::from("--endpoint"))),
            Some((base, EndpointOrigin::Worker)) => Some((base, format!("worker `{}`", worker.name.value))),
            Some((base, EndpointOrigin::Environment)) => Some((base, String::from("OPENAI_BASE_URL"))),
            None => {
                if local.is_none() {
                    local =
                        Some(find_endpoint(EndpointOptions::default()).await.ok().map(|found| found.base));
                }
                is_found = !names_key(&worker);
                local.clone().flatten().map(|base| (base, String::from("detected on this machine")))
            }
        };
        let Some((base, source)) = endpoint else {
            any_missing = true;
            continue;
        };
        let key_env = worker.api_key_env.clone();
        let entry = servers.entry((base.clone(), key_env.clone(), is_found));
        let server = entry.or_insert_with(|| Server {
            base,
            source,
            key_env,
            is_found,
            is_remote: is_remote(&worker, options.endpoint.as_deref()),
            untrusted: None,
            workers: Vec::new(),
        });
        if server.untrusted.is_none() {
            server.untrusted = untrusted(options, generation, &worker);
        }
        server.workers.push(worker);
    }
    (servers.into_values().collect(), any_missing)
}

/// Returns the missing permission to contact the server of `worker`, or to send it the key.
fn untrusted(
    options: &DoctorOptions,
    generation: Option<&Generation>,
    worker: &WorkerSpec,
) -> Option<PermissionRequest> {
    let has_key = environment(&worker.api_key_env).is_some();
    let request =
        endpoint_permission_request(&generation?.load, worker, options.endpoint.as_deref(), has_key)?;
    missing_permissions(generation?, vec![request]).pop()
}

impl Server {
    /// Returns the API of the first worker.
    fn api(&self) -> Api {
        self.workers.first().map(|worker| api_of(worker, Some(&self.base))).unwrap_or_default()
    }

    /// Returns whether the server is on another machine and the project may not contact it.
    fn is_untrusted_remote(&self) -> bool {
        self.untrusted.as_ref().is_some_and(|request| !request.grants.net.is_empty()) && self.is_remote
    }
}

/// Returns the line of a server that was not contacted.
fn skipped_line(server: &Server) -> Option<Line> {
    let request = server.untrusted.as_ref()?;
    let message = format!(
        "{} ({}) was not contacted, which requires trust: {request}",
        shown(&server.base),
        server.source
    );
    Some(Line::warning("endpoint", message, "review the spec, then run `deftool trust grant`"))
}

async fn examine(server: &Server, options: &DoctorOptions, own: &[DialectSpec]) -> Examination {
    let of_user = user_dialects();
    let key = environment(&server.key_env).filter(|_| server.untrusted.is_none() && !server.is_found);
    let named = server.workers.iter().find_map(|worker| worker.dialect.as_ref());
    let dialect = named.and_then(|name| Dialects::with(&[own, &of_user].concat()).named(&name.value));
    let dialects = Dialects::with(&of_user);
    let named = server.workers.iter().find_map(|worker| worker.model.as_deref());
    let options = ExamineOptions {
        key: key.as_deref().map(str::trim),
        model: options.model.as_deref().or(named),
        dialect,
        dialects: Some(&dialects),
    };
    examine_endpoint(&server.base, options, TIMEOUT).await
}

/// Returns the lines of an examined server and its workers.
fn server_lines(
    server: &Server,
    found: &Examination,
    options: &DoctorOptions,
    generation: Option<&Generation>,
) -> Vec<Line> {
    let api = server.api();
    let models = match &found.models {
        Ok(models) => models,
        Err(error) => {
            let mut lines = vec![failed(error, server)];
            lines.extend(server.untrusted.as_ref().map(|_| key_line(server)));
            return lines;
        }
    };
    let base = shown(&server.base);
    let mut lines = vec![Line::ok("endpoint", format!("{base} ({}) answers", server.source))];
    lines.push(match &found.contradicts {
        Some(detected) => {
            let (configured, detected) = (found.found.describe(api), detected.describe(api));
            let message = format!("{configured}, but the server reports {detected}");
            Line::warning("dialect", message, "remove :dialect, unless it is set on purpose")
        }
        None => Line::ok("dialect", found.found.describe(api)),
    });
    lines.push(key_line(server));
    for worker in &server.workers {
        let named = options.model.as_ref().or(worker.model.as_ref());
        lines.extend(model::check(worker, named, models, found, generation));
    }
    lines
}

/// Returns the line of a server that could not be used.
fn failed(error: &ProbeError, server: &Server) -> Line {
    let Server { source, key_env, workers, .. } = server;
    let next = error.next_step();
    let is_about_key =
        matches!(error, ProbeError::Unauthorized { sent: Credentials::Key | Credentials::None, .. });
    let next = match (is_about_key, server.api()) {
        (false, _) => next.to_owned(),
        (true, Api::Messages) if !workers.iter().any(names_key) => {
            format!(
                "{next}: name it with `:api-key-env`, such as ANTHROPIC_API_KEY; the default is {key_env}"
            )
        }
        (true, _) => format!("{next}: {key_env}"),
    };
    Line::error("endpoint", format!("{error} ({source})"), next)
}

/// Reports whether the key is set, but never its value.
fn key_line(server: &Server) -> Line {
    let name = &server.key_env;
    if let Some(request) = &server.untrusted {
        let message = format!("{name} is set but was not sent, which requires trust: {request}");
        return Line::warning("key", message, "review the spec, then run `deftool trust grant`");
    }
    if has_user(&server.base) {
        let message = format!("the user and password of the endpoint are sent instead of {name}");
        return Line::ok("key", message);
    }
    let is_sendable = |key: &String| key.trim().bytes().all(|byte| byte.is_ascii_graphic());
    match environment(name) {
        Some(key) if !is_sendable(&key) => {
            let message =
                format!("{name} contains whitespace or a character that is invalid in HTTP headers");
            Line::error("key", message, "copy the key again, without other text")
        }
        Some(_) if server.is_found => {
            let message =
                format!("{name} is set but not sent to a detected server; use --endpoint to send it");
            Line::ok("key", message)
        }
        Some(_) => Line::ok("key", format!("{name} is set")),
        None if server.base.starts_with("https:") => {
            let message = format!("{name} is not set, but the server lists its models without a key");
            Line::warning("key", message, format!("set {name} if requests are refused"))
        }
        None => Line::ok("key", format!("{name} is not set; the server does not require a key")),
    }
}

/// Returns whether a URL contains a user or a password.
fn has_user(base: &str) -> bool {
    let rest = base.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// Returns the URL without user, password and query, which may be secrets.
fn shown(base: &str) -> String {
    let base = base.trim().split(['?', '#']).next().unwrap_or_default();
    match base.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => base.to_owned(),
    }
}
