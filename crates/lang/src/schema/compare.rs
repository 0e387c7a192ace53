//! Comparison of two versions of tool definitions: the changes that a model sees, and those that break callers.
//!
//! Definitions are compared in their `openai` form. A change breaks callers if arguments that the old schema accepts may
//! be rejected by the new one. Keywords without an order, such as `pattern` or `anyOf`, break callers if they change.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::pointer::escape;

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Impact {
    /// Arguments that were valid may be rejected.
    Breaking,
    /// The model sees a different definition, and all valid arguments stay valid.
    Visible,
}

/// A difference between two versions of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The name of the tool.
    pub tool: String,
    /// JSON pointer of the changed schema in the parameters; empty for the tool.
    pub path: String,
    /// The effect.
    pub impact: Impact,
    /// One clause, as in `required now`.
    pub message: String,
}

/// Compares two arrays of definitions in the `openai` form. Changes are in the order of the old, then of new tools.
pub fn compare_definitions(old: &Value, new: &Value) -> Vec<Change> {
    let list = |tools: &Value| tools.as_array().cloned().unwrap_or_default();
    let (old, new) = (list(old), list(new));
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap_or_default().to_owned();
    let by_name =
        |tools: &[Value]| tools.iter().enumerate().map(|(index, tool)| (name(tool), index)).collect();
    let (known, current): (HashMap<String, usize>, HashMap<String, usize>) = (by_name(&old), by_name(&new));
    let mut changes = Vec::new();
    let mut report = |tool: String, impact, message: &str| {
        changes.push(Change { tool, path: String::new(), impact, message: message.to_owned() });
    };
    let mut pairs = Vec::new();
    for tool in &old {
        match current.get(&name(tool)).and_then(|index| new.get(*index)) {
            Some(other) => pairs.push((tool, other)),
            None => report(name(tool), Impact::Breaking, "tool removed"),
        }
    }
    for tool in new.iter().filter(|tool| !known.contains_key(&name(tool))) {
        report(name(tool), Impact::Visible, "tool added");
    }
    for (old, new) in pairs {
        let (before, after) = (&old["function"], &new["function"]);
        let mut comparison = Comparison { tool: name(old), changes: Vec::new() };
        if before["description"] != after["description"] {
            comparison.report("", Impact::Visible, String::from("description changed"));
        }
        comparison.compare(&before["parameters"], &after["parameters"], "");
        changes.append(&mut comparison.changes);
    }
    changes
}

/// Keywords whose value limits from below; a higher value rejects more.
const LOWER: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];

/// Keywords whose value limits from above; a lower value rejects more.
const UPPER: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/// Keywords that do not affect validation.
const ANNOTATIONS: [&str; 4] = ["description", "title", "default", "examples"];

/// The changes of one tool.
struct Comparison {
    tool: String,
    changes: Vec<Change>,
}

impl Comparison {
    fn report(&mut self, path: &str, impact: Impact, message: String) {
        self.changes.push(Change { tool: self.tool.clone(), path: path.to_owned(), impact, message });
    }

    fn compare(&mut self, old: &Value, new: &Value, path: &str) {
        if old == new {
            return;
        }
        let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
            let impact = if *new == Value::Bool(true) { Impact::Visible } else { Impact::Breaking };
            return self.report(path, impact, String::from("schema changed"));
        };
        let mut keys: Vec<&String> = before.keys().collect();
        keys.extend(after.keys().filter(|key| !before.contains_key(*key)));
        for key in keys {
            let (old, new) = (before.get(key), after.get(key));
            if old == new {
                continue;
            }
            match key.as_str() {
                "type" => self.compare_sets(path, "type", types(old), types(new)),
                "enum" => self.compare_sets(path, "value", values(old), values(new)),
                "required" => self.compare_required(path, old, new),
                "properties" => self.compare_properties(path, before, after),
                "items" => {
                    let any = Value::Bool(true);
                    self.compare(old.unwrap_or(&any), new.unwrap_or(&any), &format!("{path}/items"));
                }
                "additionalProperties" if new.is_none_or(|new| *new == Value::Bool(true)) => {
                    self.report(
                        path,
                        Impact::Visible,
                        String::from("additional properties are now accepted"),
                    );
                }
                "additionalProperties" => {
                    self.report(
                        path,
                        Impact::Breaking,
                        String::from("additional properties are now restricted"),
                    );
                }
                key if ANNOTATIONS.contains(&key) => {
                    self.report(path, Impact::Visible, format!("`{key}` changed"));
                }
                key => {
                    let impact = if is_looser(key, old, new) { Impact::Visible } else { Impact::Breaking };
                    self.report(path, impact, format!("`{key}` {}", describe(old, new)));
                }
            }
        }
    }

    /// Compares sets of accepted types or values; `None` accepts all.
    fn compare_sets(&mut self, path: &str, what: &str, old: Option<Vec<Value>>, new: Option<Vec<Value>>) {
        let shown = |values: &[&Value]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match (&old, &new) {
            (None, Some(new)) => {
                let all: Vec<&Value> = new.iter().collect();
                self.report(path, Impact::Breaking, format!("{what} restricted to {}", shown(&all)));
            }
            (Some(_), None) => self.report(path, Impact::Visible, format!("any {what} is accepted now")),
            (Some(old), Some(new)) => {
                let removed: Vec<&Value> = old.iter().filter(|value| !new.contains(value)).collect();
                let added: Vec<&Value> = new.iter().filter(|value| !old.contains(value)).collect();
                if !removed.is_empty() {
                    self.report(path, Impact::Breaking, format!("{what} {} removed", shown(&removed)));
                }
                if !added.is_empty() {
                    self.report(path, Impact::Visible, format!("{what} {} added", shown(&added)));
                }
            }
            (None, None) => {}
        }
    }

    fn compare_required(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (values(old).unwrap_or_default(), values(new).unwrap_or_default());
        for name in new.iter().filter(|name| !old.contains(name)) {
            self.report(&member(path, name), Impact::Breaking, String::from("required now"));
        }
        for name in old.iter().filter(|name| !new.contains(name)) {
            self.report(&member(path, name), Impact::Visible, String::from("no longer required"));
        }
    }

    fn compare_properties(
        &mut self,
        path: &str,
        before: &serde_json::Map<String, Value>,
        after: &serde_json::Map<String, Value>,
    ) {
        let empty = serde_json::Map::new();
        let of = |schema: &'_ serde_json::Map<String, Value>| {
            schema.get("properties").and_then(Value::as_object).cloned()
        };
        let (old, new) = (of(before).unwrap_or_else(|| empty.clone()), of(after).unwrap_or(empty));
        let is_closed = after.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, schema) in &old {
            let path = member(path, &Value::from(name.as_str()));
            match new.get(name) {
                Some(other) => self.compare(schema, other, &path),
                None => {
                    let impact = if is_closed { Impact::Breaking } else { Impact::Visible };
                    self.report(&path, impact, String::from("removed"));
                }
            }
        }
        // An open object accepted any value under the name before. The parameters of a tool without arguments are open,
        // but a caller has nothing to send.
        let was_closed = old.is_empty() || before.get("additionalProperties") == Some(&Value::Bool(false));
        let impact = if was_closed { Impact::Visible } else { Impact::Breaking };
        for name in new.keys().filter(|name| !old.contains_key(*name)) {
            self.report(&member(path, &Value::from(name.as_str())), impact, String::from("added"));
        }
    }
}

fn member(path: &str, name: &Value) -> String {
    format!("{path}/properties/{}", escape(name.as_str().unwrap_or_default()))
}

/// Returns the accepted types. A number accepts integers too.
fn types(value: Option<&Value>) -> Option<Vec<Value>> {
    let mut types = match value? {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    if types.iter().any(|word| word == "number") && !types.iter().any(|word| word == "integer") {
        types.push(Value::from("integer"));
    }
    Some(types)
}

fn values(value: Option<&Value>) -> Option<Vec<Value>> {
    value.and_then(Value::as_array).cloned()
}

/// Whether the new value of a limit rejects nothing that the old one accepts.
fn is_looser(key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
    let Some(new) = new else { return true };
    let (Some(old), Some(new)) = (old.and_then(Value::as_f64), new.as_f64()) else { return false };
    (LOWER.contains(&key) && new <= old) || (UPPER.contains(&key) && new >= old)
}

/// Describes a changed keyword, as in `changed from 1 to 2`.
fn describe(old: Option<&Value>, new: Option<&Value>) -> String {
    match (old, new) {
        (Some(old), Some(new)) => format!("changed from {old} to {new}"),
        (None, Some(new)) => format!("{new} added"),
        (Some(old), None) => format!("{old} removed"),
        (None, None) => String::from("unchanged"),
    }
}
