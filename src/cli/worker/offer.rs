//! The tools that an MCP server of the project offers.

use std::path::Path;

use deftool_engine::Servers;
use deftool_lang::spec::McpServer;
use deftool_lang::text::one_line;
use deftool_mcp::{Offer, inspect};
use deftool_project::{Load, mcp_permission_request};

use crate::cli::outcome::CliError;
use crate::cli::project::trust::stored_trust;
use crate::cli::terminal::output::clean;

/// Returns what a server of the project at `root` offers, or why it cannot be used.
///
/// # Errors
/// If the server is not trusted.
pub(in crate::cli) async fn offer_of(
    load: &Load,
    server: &McpServer,
    root: &Path,
) -> Result<Result<Offer, String>, CliError> {
    let missing = stored_trust(root).missing_requests(vec![mcp_permission_request(load, server)]);
    if let Some(missing) = missing.first() {
        let message = format!("not trusted: {missing}; review the spec, then run `deftool trust grant`");
        return Err(CliError::Usage(message));
    }
    match Servers::remote(server, None, root) {
        Ok(remote) => Ok(inspect(&remote).await.map_err(|reason| one_line(clean(&reason)))),
        Err(error) => Ok(Err(error)),
    }
}
