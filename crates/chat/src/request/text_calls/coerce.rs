//! Conversion of the arguments of calls written as text to the types in the tool's schema.
//!
//! In some formats every value is text: `5` may be a number or the title of a book. If the schema accepts a string, the
//! value remains a string. Otherwise it is parsed as JSON or as a Python literal. Positional values are assigned to the
//! schema's properties in order. The result is validated afterwards, like the arguments of any other call.

use deftool_lang::schema::ToolSet;
use serde_json::{Map, Value};

use crate::RawArguments;
use crate::fallback::{TextArguments, TextCall, TextMember, read_literal};

/// Maximum number of schemas that are visited to determine the types of a property.
const MAX_STEPS: u32 = 256;

/// Converts the arguments of `call`. The arguments for an unknown tool are not converted.
pub(crate) fn coerce_call(call: &TextCall, tools: &ToolSet) -> RawArguments {
    let tool = tools.get(&call.name);
    let parameters = tool.and_then(|tool| tool.definition.pointer("/function/parameters"));
    coerce_arguments(call, parameters.unwrap_or(&Value::Null))
}

/// Converts the arguments of `call`. `root` is the schema of the tool's parameters, or null if it is unknown.
pub fn coerce_arguments(call: &TextCall, root: &Value) -> RawArguments {
    match &call.arguments {
        TextArguments::Json(arguments) => arguments.clone(),
        TextArguments::Members(members) => {
            let read = |member: &TextMember| (member.key.clone(), coerce_member(member, root));
            RawArguments::Object { value: members.iter().map(read).collect() }
        }
        TextArguments::Literals { positional, named } => coerce_literals(positional, named, root),
    }
}

fn coerce_member(member: &TextMember, root: &Value) -> Value {
    let text = &member.text;
    let accepted_types = match member.is_string {
        Some(true) => return Value::String(text.clone()),
        Some(false) => AcceptedTypes { string: false, null: true, other: true },
        None => {
            let mut steps = MAX_STEPS;
            property(root, &member.key)
                .map_or(AcceptedTypes::default(), |schema| accepted_types(schema, root, &mut steps))
        }
    };
    let trimmed = text.trim();
    if accepted_types.null && matches!(trimmed, "null" | "None") {
        return Value::Null;
    }
    if accepted_types.string || !accepted_types.other {
        return Value::String(text.clone());
    }
    serde_json::from_str(trimmed)
        .ok()
        .or_else(|| read_literal(trimmed).ok())
        .unwrap_or_else(|| Value::String(text.clone()))
}

/// The types that a schema accepts, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
struct AcceptedTypes {
    string: bool,
    null: bool,
    other: bool,
}

impl AcceptedTypes {
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

/// Returns the accepted types. `steps` limits the visited schemas, because recursive unions grow exponentially.
fn accepted_types(schema: &Value, root: &Value, steps: &mut u32) -> AcceptedTypes {
    let Some(left) = steps.checked_sub(1) else { return AcceptedTypes::default() };
    *steps = left;
    if let Some(name) = schema.get("type") {
        return match name {
            Value::Array(names) => {
                names.iter().map(AcceptedTypes::type_name).fold(AcceptedTypes::default(), AcceptedTypes::or)
            }
            name => AcceptedTypes::type_name(name),
        };
    }
    if let Some(value) = schema.get("const") {
        return AcceptedTypes::value(value);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(AcceptedTypes::value).fold(AcceptedTypes::default(), AcceptedTypes::or);
    }
    if let Some(target) = schema.get("$ref").and_then(|reference| resolve(root, reference)) {
        return accepted_types(target, root, steps);
    }
    ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|key| schema.get(*key).and_then(Value::as_array))
        .flatten()
        .map(|branch| accepted_types(branch, root, steps))
        .fold(AcceptedTypes::default(), AcceptedTypes::or)
}

fn property<'s>(root: &'s Value, key: &str) -> Option<&'s Value> {
    let found = root.get("properties").and_then(|properties| properties.get(key));
    found.or_else(|| root.get("additionalProperties"))
}

fn resolve<'s>(root: &'s Value, reference: &Value) -> Option<&'s Value> {
    root.pointer(reference.as_str()?.strip_prefix('#')?)
}

fn coerce_literals(positional: &[Value], named: &Map<String, Value>, root: &Value) -> RawArguments {
    let names: Vec<&String> =
        root.get("properties").and_then(Value::as_object).map(|all| all.keys().collect()).unwrap_or_default();
    let mut value = Map::new();
    let mut problem = None;
    for (index, item) in positional.iter().enumerate() {
        match names.get(index) {
            Some(name) if named.contains_key(name.as_str()) => {
                problem = Some(format!("duplicate argument `{name}`"));
            }
            Some(name) => {
                value.insert((*name).clone(), item.clone());
            }
            None => {
                problem = Some(format!(
                    "expected at most {} positional arguments, found {}",
                    names.len(),
                    positional.len()
                ));
            }
        }
    }
    match problem {
        None => {
            value.extend(named.clone());
            RawArguments::Object { value: value.into() }
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
    fn a_recursive_union_is_processed_quickly() {
        let branches = vec![json!({"$ref": "#/$defs/any"}); 2_000];
        let root = json!({
            "properties": {"a": {"$ref": "#/$defs/any"}, "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/count"}]}},
            "$defs": {"any": {"anyOf": branches}, "count": {"type": "integer"}},
        });
        let member = |key: &str| TextMember { key: key.to_owned(), text: String::from("5"), is_string: None };
        assert_eq!(coerce_member(&member("a"), &root), json!("5"));
        assert_eq!(coerce_member(&member("b"), &root), json!(5));
    }
}
