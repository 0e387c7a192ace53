//! The Model Context Protocol: `inputSchema` is any JSON Schema of an object; what a host makes of it is the host's.

use super::{Claim, Enforcer, Fate, Source, Subject};

const TOOLS: Source = Source {
    at: "https://modelcontextprotocol.io/specification/2025-11-25/server/tools",
    date: "2025-11-25",
};

/// The table.
pub(super) static CLAIMS: &[Claim] = &[Claim::new(
    Subject::OtherKeywords,
    Fate::Shown,
    Enforcer::Deftool,
    "the host passes it on to its model's API as far as that takes it; deftool, as the server, validates the call",
    TOOLS,
)];
