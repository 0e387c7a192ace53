use crate::diagnostic::{Diagnostic, rule};
use crate::schema::ImportFormat;
use crate::text::Location;

rule! {
    /// JSON to import that is not a known tool definition
    ///
    /// Formats are recognised by their keys: `function`, `input_schema`, `inputSchema`, `functionDeclarations`, or a
    /// JSON Schema of an object. A tool that the provider runs itself (`web_search`, `bash_20250124`, `googleSearch`)
    /// has no schema, so it cannot be converted to a spec.
    ///
    /// ```json fails
    /// [{"type": "web_search_preview"}]
    /// ```
    ///
    /// ```json repaired
    /// [{"type": "function", "name": "web_search", "description": "Search the web.", "parameters": {"type": "object", "properties": {}}}]
    /// ```
    pub(crate) UNKNOWN_TOOL_SHAPE, "DT602", "unknown-tool-shape", Error
}

/// Not a known tool definition, with a specific message.
pub(crate) fn finding(location: Location, message: String) -> Diagnostic {
    Diagnostic::new(&UNKNOWN_TOOL_SHAPE, location, message)
}

/// Not a known tool definition.
pub(crate) fn unknown(location: Location) -> Diagnostic {
    finding(location, String::from("unknown tool definition format"))
        .note("supported formats: tools of OpenAI, Anthropic, Gemini and MCP, and a JSON Schema of an object")
        .note("use `--from` if the format cannot be detected")
}

/// The definition looks like `detected` although `--from` specifies `expected`.
pub(crate) fn other_format(location: Location, expected: ImportFormat, detected: ImportFormat) -> Diagnostic {
    let (expected, detected) = (expected.as_str(), detected.as_str());
    finding(location, format!("expected {expected}, found {detected}; omit `--from`"))
        .note("reading it in the wrong format would drop its arguments")
}
