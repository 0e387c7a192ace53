use crate::diagnostic::{Diagnostic, rule};
use crate::schema::ImportFormat;
use crate::text::Location;

rule! {
    /// JSON to import that has the shape of no tool
    ///
    /// Definitions are told apart by their shape: `function`, `input_schema`, `inputSchema`, `functionDeclarations`, or a JSON Schema of an object. A tool that
    /// the provider runs itself (`web_search`, `bash_20250124`, `googleSearch`) has no schema to make a spec of.
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

/// Nothing known has this shape.
pub(crate) fn finding(location: Location, message: String) -> Diagnostic {
    Diagnostic::new(&UNKNOWN_TOOL_SHAPE, location, message)
}

/// It could be anything.
pub(crate) fn unknown(location: Location) -> Diagnostic {
    finding(location, String::from("this has the shape of no tool definition"))
        .note("known are the tools of OpenAI, Anthropic, Gemini and MCP, and a JSON Schema of an object")
        .note("where the shape does not tell, `--from` does")
}

/// It is said to be of one format and looks like another.
pub(crate) fn of_other(location: Location, said: ImportFormat, other: ImportFormat) -> Diagnostic {
    let (said, other) = (said.as_str(), other.as_str());
    finding(location, format!("this looks like {other} and not like {said}; leave `--from` out"))
        .note("read as what it is not, it would lose its arguments")
}
