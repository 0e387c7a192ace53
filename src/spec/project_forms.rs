//! What a project says beside its tools and workers.

use crate::text::{SourceId, Span, Spanned};

/// An MCP server whose tools workers may come to use: `defmcp`.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Which file it stands in.
    pub source: SourceId,
    /// The whole form.
    pub span: Span,
    /// Its name.
    pub name: Spanned<String>,
    /// What it is for; empty where the form has none.
    pub description: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Names of the environment variables that a started server gets.
    pub env: Vec<String>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that is started, and its arguments; never empty.
    Command(Vec<String>),
    /// An address.
    Url(String),
}

/// Rules that are silenced or raised in the whole project: `deflint`. Codes or names, as they were written.
#[derive(Debug, Clone)]
pub struct Lint {
    /// Which file it stands in.
    pub source: SourceId,
    /// The whole form.
    pub span: Span,
    /// Silenced.
    pub allow: Vec<Spanned<String>>,
    /// Errors for `check`.
    pub deny: Vec<Spanned<String>>,
}
