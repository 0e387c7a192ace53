//! The forms of a project other than tools and workers.

use crate::text::{SourceId, Span, Spanned};

/// An MCP server with tools for workers: `defmcp`.
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
    /// How to connect to the server.
    pub transport: McpTransport,
    /// Names of the environment variables passed to a started server.
    pub env: Vec<String>,
}

/// How to connect to an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program to start with its arguments; never empty.
    Command(Vec<String>),
    /// A URL.
    Url(String),
}

/// Rules that are silenced or raised in the whole project: `deflint`. Codes or names, as written.
#[derive(Debug, Clone)]
pub struct Lint {
    /// The file that defines it.
    pub source: SourceId,
    /// The whole form.
    pub span: Span,
    /// Silenced rules.
    pub allow: Vec<Spanned<String>>,
    /// Rules that `check` reports as errors.
    pub deny: Vec<Spanned<String>>,
}
