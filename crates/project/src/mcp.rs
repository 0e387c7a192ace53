//! Findings about what MCP servers offer.

use deftool_lang::spec::{McpServer, WorkerSpec};
use deftool_lang::text::{Location, one_line};

use crate::model::Load;
use crate::rules;

/// The usable tools of an MCP server, and the problems of its tools.
#[derive(Debug, Clone, Default)]
pub struct McpOffer {
    /// The names of the usable tools, as `NAME__TOOL`.
    pub names: Vec<String>,
    /// The problems of the tools, one clause each: `offers no tool …`.
    pub problems: Vec<String>,
    /// What is not sent to model APIs, one clause for each tool.
    pub changes: Vec<String>,
}

impl Load {
    /// Adds the findings about a server. `offer`: what it offers, or why it cannot be used, as a clause.
    pub fn report_mcp_server(&mut self, server: &McpServer, offer: Result<McpOffer, String>) {
        let name = &server.name.value;
        let at = Location { source: server.source, span: server.name.span };
        let McpOffer { names, problems, changes } = match offer {
            Ok(offer) => offer,
            Err(reason) => {
                return self.findings.push(rules::mcp_unavailable::finding(at, name, &one_line(reason)));
            }
        };
        let problems =
            problems.into_iter().map(|problem| rules::mcp_tool::finding(at, name, &one_line(problem)));
        let changes =
            changes.into_iter().map(|change| rules::mcp_schema::finding(at, name, &one_line(change)));
        self.findings.extend(problems.chain(changes));
        // The tool `c` of the server `a__b` also looks like a tool of the server `a`.
        let is_of_other = |tool: &String| {
            self.mcp_servers.iter().any(|other| other.name.value != *name && other.is_named_by(tool))
        };
        let is_offered = |tool: &String| {
            tool == name || !server.is_named_by(tool) || names.contains(tool) || is_of_other(tool)
        };
        for worker in &self.workers {
            let WorkerSpec { source: Some(source), tools: Some(tools), .. } = worker else { continue };
            for tool in tools.iter().filter(|tool| !is_offered(&tool.value)) {
                let at = Location { source: *source, span: tool.span };
                let problem = format!("offers no tool `{}`", tool.value);
                self.findings.push(rules::mcp_tool::finding(at, name, &problem));
            }
        }
    }
}
