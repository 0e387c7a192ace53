//! The Model Context Protocol: `inputSchema` is any JSON Schema of an object. How a host uses it depends on the host.

use super::model::{Enforcer, Source, Subject, SupportEntry, SupportLevel};

const TOOLS: Source = Source {
    at: "https://modelcontextprotocol.io/specification/2025-11-25/server/tools",
    date: "2025-11-25",
};

/// The support table.
pub(super) static SUPPORT: &[SupportEntry] = &[SupportEntry::new(
    Subject::OtherKeywords,
    SupportLevel::Shown,
    Enforcer::Deftool,
    "the host forwards what its model API supports; deftool, as the server, validates the call",
    TOOLS,
)];
