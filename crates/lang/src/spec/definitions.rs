//! The definitions in one file, and the forms other than tools and workers.

use std::time::Duration;

use super::ask::Ask;
use super::dialect::DialectSpec;
use super::tool::{Tool, ToolKind};
use super::tool_forms::{ToolForm, Wrapper};
use super::worker::WorkerSpec;
use crate::text::{SourceId, Span, Spanned};

/// The definitions in one file.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// Tools and exit tools, in source order.
    pub tools: Vec<Tool>,
    /// Workers, in source order.
    pub workers: Vec<WorkerSpec>,
    /// MCP servers, in source order.
    pub mcp_servers: Vec<McpServer>,
    /// Dialects, in source order.
    pub dialects: Vec<DialectSpec>,
    /// The `defask` forms, in source order.
    pub asks: Vec<Ask>,
    /// Silenced and raised rules, in source order.
    pub settings: Vec<ProjectSettings>,
    /// Functions and macros that make tools, and are not declared in `:tool-forms`.
    pub wrappers: Vec<Wrapper>,
    /// The tools that presets of gptel name.
    pub preset_tools: Vec<Spanned<String>>,
    /// The tools that were not selected, in source order.
    pub skipped: Vec<(ToolKind, String)>,
}

impl Definitions {
    /// Returns the spans of all definitions.
    pub fn spans(&self) -> Vec<Span> {
        let tools = self.tools.iter().map(|tool| tool.span);
        let workers = self.workers.iter().map(|worker| worker.span);
        let servers = self.mcp_servers.iter().map(|server| server.span);
        let asks = self.asks.iter().map(|ask| ask.span);
        let others = servers.chain(self.dialects.iter().map(|dialect| dialect.span)).chain(asks);
        tools.chain(workers).chain(others).chain(self.settings.iter().map(|settings| settings.span)).collect()
    }

    /// Keeps only the definitions for which `keep` returns true, given their spans.
    pub fn retain(&mut self, keep: impl Fn(Span) -> bool) {
        self.tools.retain(|tool| keep(tool.span));
        self.workers.retain(|worker| keep(worker.span));
        self.mcp_servers.retain(|server| keep(server.span));
        self.dialects.retain(|dialect| keep(dialect.span));
        self.asks.retain(|ask| keep(ask.span));
        self.settings.retain(|settings| keep(settings.span));
        self.wrappers.retain(|wrapper| keep(wrapper.span()));
        self.preset_tools.retain(|name| keep(name.span));
    }
}

/// An MCP server with tools for workers: `defmcp`. Its tools are called `NAME__TOOL`.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// The file that defines it.
    pub source: SourceId,
    /// The whole form.
    pub span: Span,
    /// The name.
    pub name: Spanned<String>,
    /// The description; empty if the form has none.
    pub description: String,
    /// The transport of the server.
    pub transport: McpTransport,
    /// Names of the environment variables passed to a started server.
    pub env: Vec<String>,
    /// Name of the environment variable with the bearer token for a URL.
    pub token_env: Option<String>,
    /// Headers for a URL, each with the name of the environment variable that holds its value.
    pub header_env: Vec<(String, String)>,
    /// The tools to use, by the names that the server gives them; `None`: all.
    pub tools: Option<Vec<Spanned<String>>>,
    /// Whether each call needs the user's confirmation.
    pub confirm: bool,
    /// Time limit of one call.
    pub timeout: Option<Duration>,
}

impl McpServer {
    /// The environment variables with the secrets that are sent to a URL.
    pub fn url_variables(&self) -> impl Iterator<Item = &String> {
        self.token_env.iter().chain(self.header_env.iter().map(|(_, variable)| variable))
    }

    /// Whether `name`, an element of a worker's `:tools`, is this server or one of its tools.
    pub fn is_named_by(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.name.value.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("__"))
    }
}

/// The transport of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program to start with its arguments; never empty.
    Command(Vec<String>),
    /// A URL.
    Url(String),
}

/// Settings of the whole project: `defproject`. Rules are codes or names, as written.
#[derive(Debug, Clone)]
pub struct ProjectSettings {
    /// The file that defines it.
    pub source: SourceId,
    /// The whole form.
    pub span: Span,
    /// Silenced rules.
    pub allow: Vec<Spanned<String>>,
    /// Rules that `check` reports as errors.
    pub deny: Vec<Spanned<String>>,
    /// Heads of forms in Emacs Lisp that are read like `gptel-make-tool`.
    pub tool_forms: Vec<ToolForm>,
    /// Names of preview features.
    pub previews: Vec<String>,
}
