//! Conversion between MCP and deftool: tools and results.

use std::collections::HashSet;
use std::sync::Arc;

use deftool_lang::schema::{ArgumentValidator, Confirmation, ToolEntry, ToolKind};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};

use super::connection::RemoteServer;

/// Maximum length of a tool name in requests to models.
const MAX_NAME: usize = 64;

/// A tool of a server.
pub(super) struct RemoteTool {
    /// The name that the server gives it.
    pub(super) remote_name: String,
    pub(super) entry: Arc<ToolEntry>,
}

/// Converts the tools that a server lists. Returns the usable ones, and a clause for each problem.
pub(super) fn tools_of(server: &RemoteServer, listed: Vec<Tool>) -> (Vec<RemoteTool>, Vec<String>) {
    let mut problems = Vec::new();
    if let Some(wanted) = &server.tools {
        let known: HashSet<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
        let missing = wanted.iter().filter(|name| !known.contains(name.as_str()));
        problems.extend(missing.map(|name| format!("offers no tool `{name}`, which `:tools` lists")));
    }
    let is_wanted =
        |tool: &Tool| server.tools.as_ref().is_none_or(|wanted| wanted.iter().any(|name| *name == tool.name));
    let mut seen = HashSet::new();
    let mut tools = Vec::new();
    for tool in listed.into_iter().filter(is_wanted) {
        let name = tool.name.clone();
        match convert(server, tool, &mut problems) {
            Ok(tool) if server.only.as_ref().is_some_and(|only| !only.contains(&tool.entry.name)) => {}
            Ok(tool) if seen.insert(tool.entry.name.clone()) => tools.push(tool),
            Ok(tool) => {
                problems.push(format!("offers two tools `{}`; only the first is used", tool.entry.name));
            }
            Err(problem) => problems.push(format!("offers `{name}`, which is left out: {problem}")),
        }
    }
    (tools, problems)
}

fn convert(server: &RemoteServer, tool: Tool, problems: &mut Vec<String>) -> Result<RemoteTool, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let allowed: String = tool.name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let name = format!("{}__{allowed}", server.name);
    if name.len() > MAX_NAME {
        return Err(format!(
            "the name `{name}` is longer than {MAX_NAME} characters; shorten the server's `:name`"
        ));
    }
    let definition = json!({"type": "function", "function": {
        "name": name,
        "description": tool.description.unwrap_or_default(),
        "parameters": Value::Object(Arc::unwrap_or_clone(tool.input_schema)),
    }});
    let mut entry =
        ToolEntry::new(ToolKind::Normal, definition, server.timeout).map_err(|error| error.to_string())?;
    if server.confirm {
        entry.confirm = Confirmation::Always;
    }
    let output = tool.output_schema.map(|schema| Value::Object(Arc::unwrap_or_clone(schema)));
    match output.map(|schema| ArgumentValidator::compile(&name, &schema)).transpose() {
        Ok(schema) => entry.returns = schema,
        Err(error) => problems.push(format!("results of `{}` are not checked: {error}", tool.name)),
    }
    Ok(RemoteTool { remote_name: tool.name.into_owned(), entry: Arc::new(entry) })
}

/// Returns the result of a call: the structured result, a single text as it is, or the array of all content blocks.
///
/// # Errors
/// If a block is not JSON.
pub(super) fn value_of(result: CallToolResult) -> Result<Value, serde_json::Error> {
    if let Some(structured) = result.structured_content {
        return Ok(structured);
    }
    match result.content.as_slice() {
        [ContentBlock::Text(text)] => Ok(Value::String(text.text.clone())),
        blocks => blocks.iter().map(block).collect::<Result<_, _>>().map(Value::Array),
    }
}

/// Returns a content block without its metadata for hosts.
fn block(block: &ContentBlock) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(block)?;
    if let Value::Object(members) = &mut value {
        members.shift_remove("annotations");
        members.shift_remove("_meta");
    }
    Ok(value)
}

/// Returns the text of a failed call, for the model.
pub(super) fn text_of(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.is_empty() { String::from("the tool failed without a message") } else { text }
}
