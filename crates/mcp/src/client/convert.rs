//! The tools of a server, item by item: one that cannot be used is left out and named.
//!
//! A tool is called `SERVER__TOOL` if this is short enough, and only this tool has this name, whatever other servers offer.
//! Other names have a hash of the names of the server and the tool, so that they do not depend on the list.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use deftool_lang::schema::{
    ArgumentValidator, Confirmation, ToolEntry, ToolKind, offered_parameters, to_current_draft,
};
use deftool_lang::text::{MAX_NAME, distinct, portable};
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::connection::RemoteServer;

/// Keywords that model APIs reject at the top of a schema.
const UNSENT: [&str; 6] = ["anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// A tool of a server.
pub(super) struct RemoteTool {
    /// The name that the server gives it.
    pub(super) remote_name: String,
    /// The names by which a worker may select it.
    pub(super) names: [String; 3],
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
    let wanted = named.iter().filter_map(|(name, tool)| Some(((*name)?, *tool)));
    let wanted: Vec<_> = wanted.filter(|(name, _)| is_wanted(name)).collect();
    let names = Names::new(format!("{}__", server.name), wanted.iter().map(|(name, _)| *name));
    let is_left_out = |tool: &RemoteTool| {
        server.only.as_ref().is_some_and(|only| !only.iter().any(|name| tool.names.contains(name)))
    };
    let mut tools: Vec<RemoteTool> = Vec::new();
    for (name, tool) in wanted {
        match convert(server, name, &names, tool, &mut problems) {
            Ok(tool) if is_left_out(&tool) => {}
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

pub(super) fn name_of(tool: &Value) -> Option<&str> {
    tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// The names of the tools of a server in requests and specs.
pub(super) struct Names<'s> {
    /// `SERVER__`, or nothing.
    prefix: String,
    /// The names of the server for each portable name.
    own: HashMap<String, HashSet<&'s str>>,
}

impl<'s> Names<'s> {
    pub(super) fn new(prefix: String, tools: impl IntoIterator<Item = &'s str>) -> Self {
        let mut own: HashMap<String, HashSet<&str>> = HashMap::new();
        for tool in tools {
            own.entry(portable(tool)).or_default().insert(tool);
        }
        Self { prefix, own }
    }

    /// Returns the name of a tool, its portable name without a hash, and the name that the server gives it.
    pub(super) fn of(&self, tool: &str) -> [String; 3] {
        let (prefix, allowed) = (&self.prefix, portable(tool));
        let is_shared = allowed != tool && self.own.get(&allowed).is_some_and(|tools| tools.len() > 1);
        // The tool `c` of the server `a__b` and the tool `b__c` of the server `a`.
        let is_ambiguous =
            prefix.strip_suffix("__").is_some_and(|server| server.contains("__") || server.ends_with('_'));
        let plain = format!("{prefix}{allowed}");
        let is_distinct = plain.len() <= MAX_NAME && !is_shared && !is_ambiguous;
        let name = if is_distinct { plain.clone() } else { distinct(&plain, &format!("{prefix}\0{tool}")) };
        [name, plain, format!("{prefix}{tool}")]
    }
}

fn convert(
    server: &RemoteServer,
    remote_name: &str,
    names: &Names,
    tool: &Value,
    problems: &mut Vec<String>,
) -> Result<RemoteTool, String> {
    let names = names.of(remote_name);
    let [name, ..] = &names;
    let schema = match tool.get("inputSchema") {
        // A tool without arguments; PHP writes an empty object as a list.
        None | Some(Value::Null | Value::Bool(true)) => json!({"type": "object"}),
        Some(Value::Array(items)) if items.is_empty() => json!({"type": "object"}),
        Some(schema @ Value::Object(_)) => to_current_draft(schema),
        Some(_) => return Err(String::from("its `inputSchema` is not an object")),
    };
    let validator = ArgumentValidator::compile(name, &schema).map_err(|error| error.to_string())?;
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
    match output.map(|schema| ArgumentValidator::compile(name, &schema)).transpose() {
        Ok(schema) => entry.returns = schema,
        Err(error) => problems.push(format!("results of `{remote_name}` are not checked: {error}")),
    }
    let unsent = UNSENT.iter().filter(|keyword| schema.get(**keyword).is_some());
    let unsent = unsent.map(|keyword| format!("`{keyword}`")).collect();
    Ok(RemoteTool { remote_name: remote_name.to_owned(), names, entry: Arc::new(entry), unsent })
}
