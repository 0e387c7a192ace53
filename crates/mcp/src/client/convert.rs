//! The tools of a server, item by item: one that cannot be used is left out and named.

use std::collections::HashSet;
use std::sync::Arc;

use deftool_lang::schema::{
    ArgumentValidator, Confirmation, ToolEntry, ToolKind, offered_parameters, to_current_draft,
};
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::connection::RemoteServer;

/// Maximum length of a tool name in requests to models.
const MAX_NAME: usize = 64;

/// Keywords that model APIs reject at the top of a schema.
const UNSENT: [&str; 6] = ["anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// A tool of a server.
pub(super) struct RemoteTool {
    /// The name that the server gives it.
    pub(super) remote_name: String,
    pub(super) entry: Arc<ToolEntry>,
    /// The keywords at the top of its schema that are not sent.
    unsent: Vec<String>,
}

impl RemoteTool {
    /// Describes what is not sent, if anything.
    pub(super) fn change(&self) -> Option<String> {
        let unsent = (!self.unsent.is_empty()).then(|| self.unsent.join(", "))?;
        let name = &self.entry.name;
        Some(format!(
            "offers `{name}` with {unsent} at the top, which is not sent; calls are validated against it"
        ))
    }
}

/// Converts the tools that a server lists. Returns the usable ones, and a clause for each problem.
pub(super) fn tools_of(server: &RemoteServer, listed: &[Value]) -> (Vec<RemoteTool>, Vec<String>) {
    let mut problems = Vec::new();
    let (named, nameless): (Vec<_>, Vec<_>) =
        listed.iter().map(|tool| (name_of(tool), tool)).partition(|(name, _)| name.is_some());
    if !nameless.is_empty() {
        problems.push(match nameless.len() {
            1 => String::from("offers a tool without a name, which is left out"),
            count => format!("offers {count} tools without a name, which are left out"),
        });
    }
    if let Some(wanted) = &server.tools {
        let known: HashSet<&str> = named.iter().filter_map(|(name, _)| *name).collect();
        let missing = wanted.iter().filter(|name| !known.contains(name.as_str()));
        problems.extend(missing.map(|name| format!("offers no tool `{name}`, which `:tools` lists")));
    }
    let is_wanted =
        |name: &str| server.tools.as_ref().is_none_or(|wanted| wanted.iter().any(|known| known == name));
    let mut tools: Vec<RemoteTool> = Vec::new();
    for (name, tool) in named.iter().filter_map(|(name, tool)| Some(((*name)?, *tool))) {
        if !is_wanted(name) {
            continue;
        }
        match convert(server, name, tool, &mut problems) {
            Ok(tool) if server.only.as_ref().is_some_and(|only| !only.contains(&tool.entry.name)) => {}
            // The official SDKs check results with the last definition, and `import` keeps it.
            Ok(tool) => match tools.iter_mut().find(|known| known.entry.name == tool.entry.name) {
                None => tools.push(tool),
                Some(known) => {
                    let name = &tool.entry.name;
                    let problem = format!("offers several tools `{name}`; only the last is used");
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                    *known = tool;
                }
            },
            Err(problem) => problems.push(format!("offers `{name}`, which is left out: {problem}")),
        }
    }
    (tools, problems)
}

fn name_of(tool: &Value) -> Option<&str> {
    tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
}

fn convert(
    server: &RemoteServer,
    remote_name: &str,
    tool: &Value,
    problems: &mut Vec<String>,
) -> Result<RemoteTool, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let allowed: String = remote_name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let name = format!("{}__{allowed}", server.name);
    if name.len() > MAX_NAME {
        return Err(format!(
            "the name `{name}` is longer than {MAX_NAME} characters; shorten the server's `:name`"
        ));
    }
    let schema = match tool.get("inputSchema") {
        // A tool without arguments; PHP writes an empty object as a list.
        None | Some(Value::Null | Value::Bool(true)) => json!({"type": "object"}),
        Some(Value::Array(items)) if items.is_empty() => json!({"type": "object"}),
        Some(schema @ Value::Object(_)) => to_current_draft(schema),
        Some(_) => return Err(String::from("its `inputSchema` is not an object")),
    };
    let validator = ArgumentValidator::compile(&name, &schema).map_err(|error| error.to_string())?;
    let parameters =
        offered_parameters(&schema).ok_or("the arguments in its `inputSchema` are not an object")?;
    let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
    let definition = json!({"type": "function", "function": {
        "name": name,
        "description": description,
        "parameters": parameters,
    }});
    let kind = ToolKind::Normal;
    let mut entry = ToolEntry::with_validator(name.clone(), kind, definition, validator, server.timeout);
    entry.text_results = true;
    if server.confirm {
        entry.confirm = Confirmation::Always;
    }
    if let Err(error) = serde_json::from_value::<Tool>(tool.clone()) {
        problems.push(format!(
            "offers `{remote_name}`, which breaks the protocol and is used without the bad part: {error}"
        ));
    }
    let output = tool.get("outputSchema").filter(|schema| schema.is_object()).map(to_current_draft);
    match output.map(|schema| ArgumentValidator::compile(&name, &schema)).transpose() {
        Ok(schema) => entry.returns = schema,
        Err(error) => problems.push(format!("results of `{remote_name}` are not checked: {error}")),
    }
    let unsent = UNSENT.iter().filter(|keyword| schema.get(**keyword).is_some());
    let unsent = unsent.map(|keyword| format!("`{keyword}`")).collect();
    Ok(RemoteTool { remote_name: remote_name.to_owned(), entry: Arc::new(entry), unsent })
}
