//! The server of each worker: which one, from where, whether it answers, and what it says of its models.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;

use super::{Line, environment, model};
use crate::cli::CliError;
use crate::cli::args::DoctorOptions;
use crate::cli::trust::{endpoint_wish, not_remembered};
use crate::cli::worker::choose_worker;
use crate::project::{Generation, Wish};
use crate::spec::WorkerSpec;
use crate::worker::{
    Credentials, EndpointOptions, Examination, ExamineOptions, ProbeError, examine_endpoint, find_endpoint,
    is_remote, names_key,
};

/// Each question to a server may take so long.
const PATIENCE: Duration = Duration::from_secs(3);
/// More servers than this are not asked.
const MAX_SERVERS: usize = 16;

/// A server, as one or several workers use it.
struct Server {
    base: String,
    /// Who names it.
    source: String,
    key_env: String,
    /// Whether it was only found, and is sent no key.
    is_found: bool,
    /// Whether a spec names it and it is not on this machine.
    is_remote: bool,
    /// What the project is not trusted with: to ask this server, or to send it the key that is set.
    untrusted: Option<Wish>,
    workers: Vec<WorkerSpec>,
}

pub(super) fn check(options: &DoctorOptions, generation: Option<&Generation>) -> Result<Vec<Line>, CliError> {
    let mut managed = Vec::new();
    let mut workers = workers(options, generation)?;
    if let (None, Some(generation)) = (&options.endpoint, generation) {
        workers.retain(|worker| match &worker.server {
            Some(server) => {
                managed.push(super::managed::check(worker, server, generation));
                false
            }
            None => true,
        });
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let lines = runtime.block_on(async {
        let mut lines = managed;
        let (servers, without) = servers(options, generation, workers).await;
        if without {
            lines.push(Line::warning(
                "endpoint",
                "none: nothing is configured, and nobody listens on 127.0.0.1:8080 (llama.cpp) or :11434 (Ollama)",
                "give --endpoint URL, set OPENAI_BASE_URL or the worker's :endpoint, or start a server",
            ));
        }
        if servers.len() > MAX_SERVERS {
            let more = servers.len() - MAX_SERVERS;
            lines.push(Line::ok("endpoint", format!("{more} more are not asked; `--worker NAME` asks one")));
        }
        let (asked, strangers): (Vec<&Server>, Vec<&Server>) =
            servers.iter().take(MAX_SERVERS).partition(|server| !server.is_stranger());
        lines.extend(strangers.into_iter().filter_map(not_asked));
        let found = join_all(asked.iter().map(|server| examine(server, options))).await;
        for (server, found) in asked.into_iter().zip(found) {
            lines.extend(tell(server, &found, options, generation));
        }
        lines
    });
    // A name that is still looked up is not waited for.
    runtime.shutdown_background();
    Ok(lines)
}

/// The worker that was named, all that are valid, or the one that every project has.
fn workers(options: &DoctorOptions, generation: Option<&Generation>) -> Result<Vec<WorkerSpec>, CliError> {
    let all = generation.map(|generation| generation.load.workers.as_slice()).unwrap_or_default();
    if let Some(name) = &options.worker {
        let Some(generation) = generation else {
            return Err(CliError::Usage(format!("no worker called `{name}`; there is no project here")));
        };
        return Ok(vec![choose_worker(Some(name), None, generation)?]);
    }
    let mut chosen: Vec<WorkerSpec> = all.iter().filter(|worker| worker.valid).cloned().collect();
    if chosen.is_empty() {
        chosen.push(WorkerSpec::named("default"));
    }
    Ok(chosen)
}

/// The servers of `workers`, and whether one of them has none.
async fn servers(
    options: &DoctorOptions,
    generation: Option<&Generation>,
    workers: Vec<WorkerSpec>,
) -> (Vec<Server>, bool) {
    let mut servers: BTreeMap<(String, String, bool), Server> = BTreeMap::new();
    let mut local: Option<Option<String>> = None;
    let mut without = false;
    for worker in workers {
        let mut is_found = false;
        let told = if let Some(base) = &options.endpoint {
            Some((base.clone(), String::from("--endpoint")))
        } else if let Some(base) = &worker.endpoint {
            Some((base.clone(), format!("worker `{}`", worker.name.value)))
        } else if let Some(base) = environment("OPENAI_BASE_URL") {
            Some((base, String::from("OPENAI_BASE_URL")))
        } else {
            if local.is_none() {
                local = Some(find_endpoint(EndpointOptions::default()).await.ok().map(|found| found.base));
            }
            is_found = !names_key(&worker);
            local.clone().flatten().map(|base| (base, String::from("found on this machine")))
        };
        let Some((base, source)) = told else {
            without = true;
            continue;
        };
        let key_env = worker.api_key_env.clone();
        let same = servers.entry((base.clone(), key_env.clone(), is_found));
        let server = same.or_insert_with(|| Server {
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
    (servers.into_values().collect(), without)
}

/// What the project is not trusted with of what `worker` wants to send where.
fn untrusted(options: &DoctorOptions, generation: Option<&Generation>, worker: &WorkerSpec) -> Option<Wish> {
    let has_key = environment(&worker.api_key_env).is_some();
    let wish = endpoint_wish(&generation?.load, worker, options.endpoint.as_deref(), has_key)?;
    not_remembered(generation?, vec![wish]).pop()
}

impl Server {
    /// Whether it is not on this machine and the project is not trusted to talk to it.
    fn is_stranger(&self) -> bool {
        self.untrusted.as_ref().is_some_and(|wish| !wish.grants.net.is_empty()) && self.is_remote
    }
}

/// What is said of a server that nothing is sent to.
fn not_asked(server: &Server) -> Option<Line> {
    let wish = server.untrusted.as_ref()?;
    let message =
        format!("{} ({}) was not asked, which needs trust: {wish}", shown(&server.base), server.source);
    Some(Line::warning("endpoint", message, "read the spec, then `deftool trust grant`"))
}

async fn examine(server: &Server, options: &DoctorOptions) -> Examination {
    let key = environment(&server.key_env).filter(|_| server.untrusted.is_none() && !server.is_found);
    let spoken = server.workers.iter().find_map(|worker| worker.dialect);
    let named = server.workers.iter().find_map(|worker| worker.model.as_deref());
    let asked = ExamineOptions {
        key: key.as_deref().map(str::trim),
        model: options.model.as_deref().or(named),
        dialect: spoken,
    };
    examine_endpoint(&server.base, asked, PATIENCE).await
}

fn tell(
    server: &Server,
    found: &Examination,
    options: &DoctorOptions,
    generation: Option<&Generation>,
) -> Vec<Line> {
    let Server { source, key_env, .. } = server;
    let models = match &found.models {
        Ok(models) => models,
        Err(error) => {
            let mut lines = vec![failed(error, source, key_env)];
            lines.extend(server.untrusted.as_ref().map(|_| key_line(server)));
            return lines;
        }
    };
    let base = shown(&server.base);
    let mut lines = vec![Line::ok("endpoint", format!("{base} ({source}) answers"))];
    lines.push(match &found.contradicts {
        Some(says) => {
            let message = format!("{}, and the server says otherwise: {says}", found.found);
            Line::warning("dialect", message, "leave :dialect out, unless you know better")
        }
        None => Line::ok("dialect", found.found.to_string()),
    });
    lines.push(key_line(server));
    for worker in &server.workers {
        let named = options.model.as_ref().or(worker.model.as_ref());
        lines.extend(model::check(worker, named, models, found, generation));
    }
    lines
}

fn failed(error: &ProbeError, source: &str, key_env: &str) -> Line {
    let next = error.next_step();
    let is_about_key =
        matches!(error, ProbeError::Unauthorized { sent: Credentials::Key | Credentials::None, .. });
    let next = if is_about_key { format!("{next}: {key_env}") } else { next.to_owned() };
    Line::error("endpoint", format!("{error} ({source})"), next)
}

/// Whether there is a key; never which.
fn key_line(server: &Server) -> Line {
    let name = &server.key_env;
    if let Some(wish) = &server.untrusted {
        let message = format!("{name} is set and was not sent, which takes trust: {wish}");
        return Line::warning("key", message, "read the spec, then `deftool trust grant`");
    }
    if has_user(&server.base) {
        let message = format!("the endpoint's user and password are sent, and {name} is not");
        return Line::ok("key", message);
    }
    let is_sendable = |key: &String| key.trim().bytes().all(|byte| byte.is_ascii_graphic());
    match environment(name) {
        Some(key) if !is_sendable(&key) => {
            let message = format!("{name} holds a blank or a character that no HTTP header takes");
            Line::error("key", message, "copy the key anew, whole and alone")
        }
        Some(_) if server.is_found => {
            let message =
                format!("{name} is set, and not sent to a server that was only found; --endpoint names it");
            Line::ok("key", message)
        }
        Some(_) => Line::ok("key", format!("{name} is set")),
        None if server.base.starts_with("https:") => {
            let message = format!("{name} is not set, and the server lists its models without a key");
            Line::warning("key", message, format!("set {name} if requests are refused"))
        }
        None => Line::ok("key", format!("{name} is not set, and the server asks for none")),
    }
}

/// Whether a URL has a user or a password.
fn has_user(base: &str) -> bool {
    let rest = base.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// A URL without user, password and query, which may be secrets.
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
