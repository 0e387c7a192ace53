use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// an unknown key of defmcp
    ///
    /// The key is ignored, and the intended setting has no effect.
    ///
    /// ```eld fails
    /// (defmcp :name "web" :uri "https://example.org/mcp" :url "https://example.org/mcp")
    /// ```
    ///
    /// ```eld repaired
    /// (defmcp :name "web" :url "https://example.org/mcp")
    /// ```
    pub(crate) UNKNOWN_MCP_KEY, "DT305", "unknown-mcp-key", Warning
}

pub(in crate::spec) fn finding(at: Location, key: &str, known: &[&str]) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_MCP_KEY, at, format!("unknown key `:{key}` for an MCP server"));
    match nearest(key, known.iter().copied()) {
        _ if key == "args" => finding.note("write arguments in `:command`, after the program"),
        Some(near) => finding.did_you_mean(at.span, format!(":{near}")),
        None => finding.note(format!("keys: {}", known.iter().map(|key| format!(":{key}")).collect::<Vec<_>>().join(" "))),
    }
}
