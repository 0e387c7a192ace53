//! Permission requests of a worker's own spec, in addition to those of its tools: to contact a remote server, to send a
//! key to it, to start a server program, and to read a BIOS outside of the project.
//!
//! The author of the spec chooses these, so they must be granted before a project of another author runs
//! ([`deftool_project::Trust`]).
//!
//! - Endpoint and key: a server on this machine needs no permission, because no data leaves the machine. An endpoint
//!   from the command line or from `OPENAI_BASE_URL`, with the default key variable, never needs a permission.
//! - Server program: unlike a `:run` permission, the request covers the whole command, its environment, its working
//!   directory and its port. A change to any of them requires a new permission.
//! - BIOS: a file in the project needs no permission. Any other is a `:read` permission.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use deftool_lang::spec::{HomeFolder, ServerSpec, WorkerSpec};
use deftool_lang::text::Location;
use deftool_project::{Load, PermissionRequest, PermissionSet, outside_bios, quote};
use deftool_script::{PathGrant, ScriptPermissions};
use reqwest::Url;

use crate::transport::{has_user, is_on_this_machine};

/// Returns the permissions that `worker` needs to contact its server. `named` is the user's endpoint, which replaces
/// the endpoint of the spec; `has_key`: whether the key variable is set.
pub fn endpoint_permission_request(
    load: &Load,
    worker: &WorkerSpec,
    named: Option<&str>,
    has_key: bool,
) -> Option<PermissionRequest> {
    // A server that the worker starts has its own permission request.
    let server = if named.is_some() || worker.server.is_some() { None } else { worker.endpoint.as_deref() };
    let parsed = |base: &str| Url::parse(base.trim()).ok();
    let to = named.or(server).and_then(parsed);
    let is_chosen = server.is_some() || names_key(worker);
    // A URL with a user or a password sends them instead of the key.
    let sends_key = has_key && is_chosen && !to.as_ref().is_some_and(has_user);
    let server = server.and_then(parsed).filter(|url| sends_key || !is_on_this_machine(url));
    let grants = PermissionSet {
        net: server.as_ref().and_then(host_of).into_iter().collect(),
        env: sends_key.then(|| worker.api_key_env.clone()).into_iter().collect(),
        ..PermissionSet::default()
    };
    if grants.is_empty() { None } else { Some(request_of(load, worker, grants)) }
}

/// Whether `worker` contacts a server that the spec names and that is not on this machine.
pub fn is_remote(worker: &WorkerSpec, named: Option<&str>) -> bool {
    let base = worker.endpoint.as_deref().filter(|_| named.is_none() && worker.server.is_none());
    base.and_then(|base| Url::parse(base.trim()).ok()).is_some_and(|url| !is_on_this_machine(&url))
}

/// Whether the spec selects a key variable other than the default.
pub fn names_key(worker: &WorkerSpec) -> bool {
    worker.api_key_env != WorkerSpec::named("").api_key_env
}

/// Returns the permission requests of a project's workers. `is_set` returns whether a variable is set.
pub fn endpoint_permission_requests(load: &Load, is_set: impl Fn(&str) -> bool) -> Vec<PermissionRequest> {
    let workers = load.workers.iter().filter(|worker| worker.valid);
    workers
        .filter_map(|worker| endpoint_permission_request(load, worker, None, is_set(&worker.api_key_env)))
        .collect()
}

/// Returns host and port.
fn host_of(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

/// Returns the permission that `worker` needs to start its server; `None` if the user set an endpoint instead
/// (`named`).
pub fn server_permission_request(
    load: &Load,
    worker: &WorkerSpec,
    named: Option<&str>,
) -> Option<PermissionRequest> {
    let server = worker.server.as_ref().filter(|_| named.is_none())?;
    let server = BTreeSet::from([format_server(server)]);
    Some(request_of(load, worker, PermissionSet { server, ..PermissionSet::default() }))
}

/// Returns the permission that `worker` needs to read its BIOS; `None` if it is in the project.
pub fn bios_permission_request(load: &Load, worker: &WorkerSpec) -> Option<PermissionRequest> {
    let root = load.root_of(worker.source?)?;
    let read = vec![PathGrant::new("", outside_bios(root, worker)?)];
    let permissions = ScriptPermissions { read, ..ScriptPermissions::default() };
    Some(request_of(load, worker, PermissionSet::of(&permissions, root)))
}

/// Returns the permission requests of all BIOS files in a project.
pub fn bios_permission_requests(load: &Load) -> impl Iterator<Item = PermissionRequest> {
    let workers = load.workers.iter().filter(|worker| worker.valid);
    workers.filter_map(|worker| bios_permission_request(load, worker))
}

fn request_of(load: &Load, worker: &WorkerSpec, grants: PermissionSet) -> PermissionRequest {
    let at = worker.source.map(|source| Location { source, span: worker.name.span });
    let place = at.map(|at| load.sources.describe(at)).unwrap_or_default();
    PermissionRequest { tool: format!("worker `{}`", worker.name.value), place, grants, command: None }
}

/// Returns the permission requests of all servers in a project.
pub fn server_permission_requests(load: &Load) -> Vec<PermissionRequest> {
    load.workers
        .iter()
        .filter(|worker| worker.valid)
        .filter_map(|worker| server_permission_request(load, worker, None))
        .collect()
}

/// Formats a server like a shell command. Different servers have different texts.
fn format_server(server: &ServerSpec) -> String {
    let ServerSpec { command, env, cwd, port } = server;
    let port = port.map(|port| port.to_string());
    let cwd = cwd.as_deref().map(shown_folder);
    let fixed = [("cwd", cwd.as_deref()), ("port", port.as_deref())];
    let fixed = fixed.into_iter().filter_map(|(name, value)| Some(format!(":{name}={}", quote(value?))));
    let env = env.iter().map(|(name, value)| format!("{}={}", quote(name), quote(value)));
    // After `--`, every word belongs to the command.
    let settings: Vec<String> = fixed.chain(env).collect();
    let command = command.iter().map(|part| quote(part));
    let separator = if settings.is_empty() { None } else { Some(String::from("--")) };
    settings.into_iter().chain(separator).chain(command).collect::<Vec<_>>().join(" ")
}

/// Returns the working directory of a server for display and comparison. A folder of the user is resolved, because another
/// environment may lead to a different one.
fn shown_folder(cwd: &str) -> String {
    let is_in_home = matches!(HomeFolder::split(cwd), Ok(Some(_)));
    let resolved = if is_in_home { PathGrant::of_spec(cwd, Path::new("")).ok() } else { None };
    let escaped = |path: &Path| format!("\"{}\"", path.as_os_str().as_encoded_bytes().escape_ascii());
    let text = |path: PathBuf| path.to_str().map_or_else(|| escaped(&path), str::to_owned);
    resolved.map_or_else(|| cwd.to_owned(), |grant| text(grant.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(endpoint: Option<&str>, key: &str, named: Option<&str>, has_key: bool) -> String {
        let mut worker = WorkerSpec::named("w");
        worker.endpoint = endpoint.map(str::to_owned);
        worker.api_key_env = key.to_owned();
        let request = endpoint_permission_request(&Load::default(), &worker, named, has_key);
        request.map(|request| request.grants.to_string()).unwrap_or_default()
    }

    /// Tests the spellings of remote hosts and of this machine.
    #[test]
    fn a_remote_server_needs_permission_with_or_without_a_key() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:8080/v1", ""),
            ("http://127.9.9.9/v1", ""),
            ("http://localhost:1234/v1", ""),
            ("http://LOCALHOST/v1", ""),
            ("http://[::1]:8080/v1", ""),
            ("http://2130706433/v1", ""),
            (" http://127.0.0.1/v1 ", ""),
            ("https://llm.example/v1", "llm.example:443"),
            ("HTTP://LLM.example/v1", "llm.example:80"),
            ("http://127.0.0.1.evil.example/v1", "127.0.0.1.evil.example:80"),
            ("http://localhost.evil.example/v1", "localhost.evil.example:80"),
            ("http://127.0.0.1@evil.example/v1", "evil.example:80"),
            ("http://user:password@evil.example/v1", "evil.example:80"),
            ("http://evil.example#127.0.0.1/v1", "evil.example:80"),
            ("http://evil.example\\@127.0.0.1/v1", "evil.example:80"),
            ("http://0.0.0.0:8080/v1", "0.0.0.0:8080"),
            ("http://[::ffff:127.0.0.1]/v1", "[::ffff:7f00:1]:80"),
            ("http://192.168.0.7:8080/v1", "192.168.0.7:8080"),
            ("http://169.254.169.254/v1", "169.254.169.254:80"),
            ("http://localhost./v1", "localhost.:80"),
            ("http://\u{430}pple.example/v1", "xn--pple-43d.example:80"),
        ] {
            let expected = if expected.is_empty() { String::new() } else { format!(":net [\"{expected}\"]") };
            assert_eq!(request(Some(endpoint), "OPENAI_API_KEY", None, false), expected, "{endpoint}");
            let named = request(Some(endpoint), "OPENAI_API_KEY", Some("https://mine.example/v1"), true);
            assert_eq!(named, "", "{endpoint}: the user set another endpoint");
        }
    }

    #[test]
    fn a_key_needs_permission_if_the_spec_selects_its_variable_or_server() {
        for (endpoint, key, named, expected) in [
            (None, "OPENAI_API_KEY", None, ""),
            (None, "TOKEN", None, ":env [\"TOKEN\"]"),
            (None, "TOKEN", Some("https://mine.example/v1"), ":env [\"TOKEN\"]"),
            (Some("http://127.0.0.1:80/v1"), "TOKEN", None, ":net [\"127.0.0.1:80\"] :env [\"TOKEN\"]"),
            (Some("http://a.example/v1"), "TOKEN", None, ":net [\"a.example:80\"] :env [\"TOKEN\"]"),
            (Some("http://u@127.0.0.1:80/v1"), "TOKEN", None, ""),
            (Some("http://u@a.example/v1"), "TOKEN", None, ":net [\"a.example:80\"]"),
            (Some("no URL"), "TOKEN", None, ":env [\"TOKEN\"]"),
        ] {
            assert_eq!(request(endpoint, key, named, true), expected, "{endpoint:?} {key} {named:?}");
        }
    }

    #[test]
    fn different_servers_have_different_texts() {
        let server = |command: &[&str], env: &[(&str, &str)], cwd: Option<&str>, port| ServerSpec {
            command: command.iter().map(|part| (*part).to_owned()).collect(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            cwd: cwd.map(str::to_owned),
            port,
        };
        let rows = [
            (server(&["serve", "--port", "{port}"], &[], None, None), "serve --port {port}"),
            (server(&["sh", "-c", "a b"], &[], None, None), "sh -c 'a b'"),
            (server(&["sh", "-c", "a", "b"], &[], None, None), "sh -c a b"),
            (server(&["sh", "-c", "a' 'b"], &[], None, None), r"sh -c 'a\' \'b'"),
            (server(&["a"], &[("X", "1")], None, None), "X=1 -- a"),
            (server(&["X=1", "--", "a"], &[], None, None), "'X=1' '--' a"),
            (
                server(&["a"], &[("X", "1 --"), ("Y", "")], Some("b c"), Some(80)),
                ":cwd='b c' :port=80 X='1 --' Y='' -- a",
            ),
            (server(&[":cwd=b", "a"], &[], None, None), "':cwd=b' a"),
        ];
        for (server, expected) in &rows {
            assert_eq!(format_server(server), *expected);
        }
    }
}
