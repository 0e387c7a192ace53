//! Specs: tools, exit tools and workers, lowered from syntax trees.
//!
//! Input is the text of one file; output is its [`Definitions`] and findings. A tool with an error is kept and marked
//! as invalid, so that later checks still know its name. This module reads no files and no scripts.

mod bios;
pub(crate) mod confirm;
pub(crate) mod form;
mod format;
mod host_grant;
mod json;
pub(crate) mod keywords;
mod lower;
mod nearest;
mod permissions;
mod project_forms;
pub mod rules;
pub(crate) mod schema;
mod tool;
mod units;
mod value;
mod worker;

pub use bios::{BiosPiece, Placeholder, bios_pieces};
pub use confirm::Confirm;
pub(crate) use confirm::testable_members;
pub use form::form_of_tool;
pub use format::{format, format_generated};
pub use host_grant::{HostGrant, InvalidHostGrant, host_grant};
pub use json::{Json, JsonKind, Member};
pub(crate) use json::{is_same, members_to_map, same_key};
pub use lower::is_spec_form;
pub use lower::{FileKind, lower, lower_tool};
pub use nearest::nearest;
pub use permissions::Permissions;
pub use project_forms::{Lint, McpServer, McpTransport};
pub use rules::invalid_name::is_tool_name;
pub use tool::{Argument, Effect, TargetOverride, Tool, ToolKind};
pub use units::{parse_bytes, parse_duration};
pub use value::ToolValueError;
pub use worker::{
    Api, BiosBudget, BiosSource, BudgetUnit, Dialect, Fallback, OnFailure, ServerSpec, SystemMessages,
    Timers, WorkerSpec,
};

use crate::text::Span;

/// The definitions in one file.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// Tools and exit tools, in source order.
    pub tools: Vec<Tool>,
    /// Workers, in source order.
    pub workers: Vec<WorkerSpec>,
    /// MCP servers, in source order.
    pub mcp_servers: Vec<McpServer>,
    /// Silenced and raised rules, in source order.
    pub lints: Vec<Lint>,
}

impl Definitions {
    /// Returns the spans of all definitions.
    pub fn spans(&self) -> Vec<Span> {
        let tools = self.tools.iter().map(|tool| tool.span);
        let workers = self.workers.iter().map(|worker| worker.span);
        let others = self.mcp_servers.iter().map(|server| server.span);
        tools.chain(workers).chain(others).chain(self.lints.iter().map(|lint| lint.span)).collect()
    }

    /// Removes the definitions for whose spans `keep` returns false.
    pub fn retain(&mut self, keep: impl Fn(Span) -> bool) {
        self.tools.retain(|tool| keep(tool.span));
        self.workers.retain(|worker| keep(worker.span));
        self.mcp_servers.retain(|server| keep(server.span));
        self.lints.retain(|lint| keep(lint.span));
    }
}
