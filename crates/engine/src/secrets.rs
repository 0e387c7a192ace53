//! The secrets that recordings must not contain: matches of `--redact`, the tokens and headers of MCP servers, and environment
//! variables that the project's tools and MCP servers get and that have a name that suggests a secret.

use deftool_lang::spec::McpServer;
use deftool_project::Generation;
use deftool_record::{Secrets, is_secret_name};

/// Returns the secrets of a run with the tools of `generation`.
///
/// # Errors
/// If a pattern is not a valid regular expression.
pub fn secrets(patterns: &[String], generation: &Generation) -> Result<Secrets, String> {
    let mut secrets = Secrets::default();
    for pattern in patterns {
        let added = secrets.add_pattern(pattern);
        added.map_err(|error| format!("--redact: {error}"))?;
    }
    let servers = &generation.load.mcp_servers;
    let granted = generation.tools().flat_map(|loaded| &loaded.tool.permissions.env);
    let granted = granted.chain(servers.iter().flat_map(|server| &server.env));
    let mut names: Vec<&String> = granted.filter(|name| is_secret_name(name)).collect();
    names.extend(servers.iter().flat_map(McpServer::url_variables));
    names.sort();
    names.dedup();
    // Names with `=` or NUL are invalid, and std panics on them.
    for name in names.into_iter().filter(|name| !name.is_empty() && !name.contains(['=', '\0'])) {
        if let Ok(value) = std::env::var(name) {
            secrets.add_value(&value);
        }
    }
    Ok(secrets)
}
