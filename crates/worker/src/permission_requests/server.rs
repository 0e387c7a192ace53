//! The server that a worker starts: a program of the spec's choice, with the user's rights.
//!
//! This is a permission request like those of tools. It covers more than `:run`: the whole command, its environment and
//! its working directory. A change of any of them requires a new permission.

use std::collections::BTreeSet;

use deftool_lang::spec::{ServerSpec, WorkerSpec};
use deftool_lang::text::Location;
use deftool_project::{Load, PermissionRequest, PermissionSet};

/// Returns the permission that `worker` needs to start its server; `None` if the user set an endpoint instead
/// (`named`).
pub fn server_permission_request(
    load: &Load,
    worker: &WorkerSpec,
    named: Option<&str>,
) -> Option<PermissionRequest> {
    let server = worker.server.as_ref().filter(|_| named.is_none())?;
    let grants = PermissionSet { server: BTreeSet::from([written(server)]), ..PermissionSet::default() };
    let at = worker.source.map(|source| Location { source, span: worker.name.span });
    let place = at.map(|at| load.sources.describe(at)).unwrap_or_default();
    Some(PermissionRequest { tool: format!("worker `{}`", worker.name.value), place, grants })
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
fn written(server: &ServerSpec) -> String {
    let ServerSpec { command, env, cwd, port } = server;
    let port = port.map(|port| port.to_string());
    let fixed = [("cwd", cwd.as_deref()), ("port", port.as_deref())];
    let fixed = fixed.into_iter().filter_map(|(name, value)| Some(format!(":{name}={}", word(value?))));
    let env = env.iter().map(|(name, value)| format!("{}={}", word(name), word(value)));
    // After `--`, every word belongs to the command.
    let settings: Vec<String> = fixed.chain(env).collect();
    let command = command.iter().map(|part| word(part));
    let separator = if settings.is_empty() { None } else { Some(String::from("--")) };
    settings.into_iter().chain(separator).chain(command).collect::<Vec<_>>().join(" ")
}

fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+{}".contains(c);
    // A plain `--` would be read as the separator.
    if !text.is_empty() && text != "--" && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(written(server), *expected);
        }
    }
}
