//! The arguments of calls written as text, made what the tool's schema says that they are.
//!
//! In some forms a value is text: `5` may be a number or the title of a book. Where the schema takes a string it stays
//! one; otherwise it is read as JSON, or as Python writes literals. Values without a name go by the order of the
//! schema's properties. Whether all that is valid is checked afterwards, like any other call's arguments.

use serde_json::{Map, Value};

use crate::chat::RawArguments;
use crate::chat::fallback::{TextArguments, TextCall, TextMember, read_literal};
use crate::schema::ToolSet;

/// How many schemas are looked at to see what a property is.
const MAX_STEPS: u32 = 256;

/// The arguments of `call`. A tool that does not exist takes them as they stand.
pub(super) fn settle(call: &TextCall, tools: &ToolSet) -> RawArguments {
    let tool = tools.get(&call.name);
    let parameters = tool.and_then(|tool| tool.definition.pointer("/function/parameters"));
    settle_written(call, parameters.unwrap_or(&Value::Null))
}

/// The arguments of `call` of a tool whose parameters have the schema `root`; null: none is known.
pub fn settle_written(call: &TextCall, root: &Value) -> RawArguments {
    match &call.arguments {
        TextArguments::Json(arguments) => arguments.clone(),
        TextArguments::Members(members) => {
            let read = |member: &TextMember| (member.key.clone(), settle_member(member, root));
            RawArguments::Object { value: members.iter().map(read).collect() }
        }
        TextArguments::Literals { positional, named } => settle_literals(positional, named, root),
    }
}

fn settle_member(member: &TextMember, root: &Value) -> Value {
    let text = &member.text;
    let takes = match member.is_string {
        Some(true) => return Value::String(text.clone()),
        Some(false) => Takes { string: false, null: true, other: true },
        None => {
            let mut steps = MAX_STEPS;
            property(root, &member.key).map_or(Takes::default(), |schema| takes(schema, root, &mut steps))
        }
    };
    let trimmed = text.trim();
    if takes.null && matches!(trimmed, "null" | "None") {
        return Value::Null;
    }
    if takes.string || !takes.other {
        return Value::String(text.clone());
    }
    serde_json::from_str(trimmed)
        .ok()
        .or_else(|| read_literal(trimmed).ok())
        .unwrap_or_else(|| Value::String(text.clone()))
}

/// What a schema takes, as far as it says so.
#[derive(Debug, Clone, Copy, Default)]
struct Takes {
    string: bool,
    null: bool,
    other: bool,
}

impl Takes {
    fn or(self, other: Self) -> Self {
        Self {
            string: self.string || other.string,
            null: self.null || other.null,
            other: self.other || other.other,
        }
    }

    fn type_name(name: &Value) -> Self {
        match name.as_str() {
            Some("string") => Self { string: true, ..Self::default() },
            Some("null") => Self { null: true, ..Self::default() },
            Some("number" | "integer" | "boolean" | "array" | "object") => {
                Self { other: true, ..Self::default() }
            }
            Some(_) | None => Self::default(),
        }
    }

    fn value(value: &Value) -> Self {
        match value {
            Value::String(_) => Self { string: true, ..Self::default() },
            Value::Null => Self { null: true, ..Self::default() },
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Self { other: true, ..Self::default() }
            }
        }
    }
}

/// `steps` are left for all of it: unions may refer to themselves, each branch again.
fn takes(schema: &Value, root: &Value, steps: &mut u32) -> Takes {
    let Some(left) = steps.checked_sub(1) else { return Takes::default() };
    *steps = left;
    if let Some(name) = schema.get("type") {
        return match name {
            Value::Array(names) => names.iter().map(Takes::type_name).fold(Takes::default(), Takes::or),
            name => Takes::type_name(name),
        };
    }
    if let Some(value) = schema.get("const") {
        return Takes::value(value);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Takes::value).fold(Takes::default(), Takes::or);
    }
    if let Some(target) = schema.get("$ref").and_then(|reference| resolve(root, reference)) {
        return takes(target, root, steps);
    }
    ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|key| schema.get(*key).and_then(Value::as_array))
        .flatten()
        .map(|branch| takes(branch, root, steps))
        .fold(Takes::default(), Takes::or)
}

fn property<'s>(root: &'s Value, key: &str) -> Option<&'s Value> {
    let found = root.get("properties").and_then(|properties| properties.get(key));
    found.or_else(|| root.get("additionalProperties"))
}

fn resolve<'s>(root: &'s Value, reference: &Value) -> Option<&'s Value> {
    root.pointer(reference.as_str()?.strip_prefix('#')?)
}

fn settle_literals(positional: &[Value], named: &Map<String, Value>, root: &Value) -> RawArguments {
    let names: Vec<&String> =
        root.get("properties").and_then(Value::as_object).map(|all| all.keys().collect()).unwrap_or_default();
    let mut value = Map::new();
    let mut problem = None;
    for (index, item) in positional.iter().enumerate() {
        match names.get(index) {
            Some(name) if named.contains_key(name.as_str()) => {
                problem = Some(format!("`{name}` is given twice"));
            }
            Some(name) => {
                value.insert((*name).clone(), item.clone());
            }
            None => {
                problem = Some(format!(
                    "{} values without a name, but the tool takes {}",
                    positional.len(),
                    names.len()
                ));
            }
        }
    }
    match problem {
        None => {
            value.extend(named.clone());
            RawArguments::Object { value }
        }
        Some(error) => {
            let mut all: Vec<String> = positional.iter().map(Value::to_string).collect();
            all.extend(named.iter().map(|(name, value)| format!("{name}={value}")));
            RawArguments::Malformed { text: format!("({})", all.join(", ")), error, truncated: false }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_union_that_refers_to_itself_takes_little_time() {
        let branches = vec![json!({"$ref": "#/$defs/any"}); 2_000];
        let root = json!({
            "properties": {"a": {"$ref": "#/$defs/any"}, "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/count"}]}},
            "$defs": {"any": {"anyOf": branches}, "count": {"type": "integer"}},
        });
        let member = |key: &str| TextMember { key: key.to_owned(), text: String::from("5"), is_string: None };
        assert_eq!(settle_member(&member("a"), &root), json!("5"));
        assert_eq!(settle_member(&member("b"), &root), json!(5));
    }
}
