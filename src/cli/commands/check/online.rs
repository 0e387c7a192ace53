//! `check --online`: starts or contacts the MCP servers of the specs, and checks what they offer, with `--target` also
//! whether the APIs accept it.

use std::path::Path;

use deftool_lang::schema::support::{Subject, SupportLevel};
use deftool_lang::schema::{Limitation, Target, limitations};
use deftool_lang::spec::McpServer;
use deftool_mcp::Offer;
use deftool_project::{Load, McpOffer};
use serde_json::Value;

use crate::cli::outcome::{CliError, runtime};
use crate::cli::worker::offer::offer_of;

/// Adds the findings about the MCP servers in the checked files.
///
/// # Errors
/// If a server is not trusted.
pub(in crate::cli) fn check(load: &mut Load, targets: &[Target]) -> Result<(), CliError> {
    let is_checked = |server: &&McpServer| load.checked.contains(&server.source);
    let servers: Vec<McpServer> = load.mcp_servers.iter().filter(is_checked).cloned().collect();
    let runtime = runtime()?;
    for server in servers {
        let root = load.root_of(server.source).unwrap_or(Path::new(".")).to_owned();
        let offer = runtime.block_on(offer_of(load, &server, &root))?;
        load.report_mcp_server(&server, offer.map(|offer| describe(offer, targets)));
    }
    Ok(())
}

/// Returns what workers can use of an offer, and what the targets do not accept.
fn describe(offer: Offer, targets: &[Target]) -> McpOffer {
    let names = offer.names;
    let mut problems = offer.problems;
    for (target, tool) in targets.iter().flat_map(|target| offer.tools.iter().map(move |tool| (target, tool)))
    {
        let parameters = tool.definition.pointer("/function/parameters").unwrap_or(&Value::Null);
        let description = tool.definition.pointer("/function/description").and_then(Value::as_str);
        let length = description.map_or(0, |text| text.chars().count());
        problems.extend(target.support_table().iter().filter_map(|support| {
            let is_over = matches!(support.subject, Subject::DescriptionOver(limit) if length > limit);
            let what = is_over.then(|| support.about())?;
            Some(format!(
                "offers `{}`, of which {} rejects {what}: {}",
                tool.name,
                target.as_str(),
                support.detail
            ))
        }));
        let refused = limitations(*target, parameters).into_iter();
        let refused = refused.filter(|limitation| limitation.support.level == SupportLevel::Refused);
        problems.extend(refused.map(|Limitation { support, pointer, word }| {
            let what = if word.is_empty() { support.about() } else { format!("`{word}`") };
            let place = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
            format!(
                "offers `{}`, of which {} rejects {what}{place}: {}",
                tool.name,
                target.as_str(),
                support.detail
            )
        }));
    }
    let changes = if targets.is_empty() { Vec::new() } else { offer.changes };
    McpOffer { names, problems, changes }
}
