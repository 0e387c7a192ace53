//! Conversion of the arguments of calls written as text to the types in the tool's schema.
//!
//! In some formats every value is text: `5` may be a number or the title of a book. If the schema accepts a string, the
//! value remains a string. Otherwise it is parsed as JSON or as a Python literal. Positional values are assigned to the
//! schema's properties in order. The result is validated and repaired afterwards, like the arguments of any other call.

use std::collections::HashMap;

use deftool_lang::schema::{ToolSet, accepts_type};
use serde_json::{Map, Value};

use crate::RawArguments;
use crate::fallback::{TextArguments, TextCall, TextMember, read_literal};

/// The types of JSON Schema other than strings and null.
const OTHER_TYPES: [&str; 5] = ["integer", "number", "boolean", "array", "object"];

/// Converts the arguments of `call`. The arguments for an unknown tool are not converted.
pub(crate) fn coerce_call(call: &TextCall, tools: &ToolSet) -> RawArguments {
    let tool = tools.called(&call.name);
    let parameters = tool.and_then(|(tool, _)| tool.definition.pointer("/function/parameters"));
    coerce_arguments(call, parameters.unwrap_or(&Value::Null))
}

/// Converts the arguments of `call`. `root` is the schema of the tool's parameters, or null if it is unknown.
pub fn coerce_arguments(call: &TextCall, root: &Value) -> RawArguments {
    match &call.arguments {
        TextArguments::Json(arguments) => arguments.clone(),
        TextArguments::Members(members) => coerce_members(members, root),
        TextArguments::Literals { positional, named } => coerce_literals(positional, named, root),
    }
}

fn coerce_members(members: &[TextMember], root: &Value) -> RawArguments {
    let mut known = HashMap::new();
    let mut is_other = |member: &TextMember| {
        known.insert(member.key.clone(), member.text.clone()).is_some_and(|text| text != member.text)
    };
    match members.iter().find(|member| is_other(member)) {
        None => {
            let read = |member: &TextMember| (member.key.clone(), coerce_member(member, root));
            RawArguments::Object { value: members.iter().map(read).collect() }
        }
        Some(member) => {
            let all = members.iter().map(|member| format!("{}={:?}", member.key, member.text));
            malformed(all, duplicate(&member.key))
        }
    }
}

/// Returns the error for an argument with two values. Neither of them is certain.
fn duplicate(name: &str) -> String {
    format!("duplicate argument `{name}`")
}

fn malformed(all: impl Iterator<Item = String>, error: String) -> RawArguments {
    let text = format!("({})", all.collect::<Vec<_>>().join(", "));
    RawArguments::Malformed { text, error, truncated: false }
}

fn coerce_member(member: &TextMember, root: &Value) -> Value {
    let trimmed = member.text.trim();
    let stays_text = member.is_string.unwrap_or_else(|| {
        let schema = property(root, &member.key);
        let accepts = |word: &str| schema.is_some_and(|schema| accepts_type(root, schema, word));
        let others = OTHER_TYPES.iter().filter(|word| accepts(word)).count();
        // A schema that accepts every type does not mention null.
        let is_null = matches!(trimmed, "null" | "None") && accepts("null") && others < OTHER_TYPES.len();
        !is_null && (others == 0 || accepts("string"))
    });
    let parsed = if stays_text {
        None
    } else {
        serde_json::from_str(trimmed).ok().or_else(|| read_literal(trimmed).ok())
    };
    parsed.unwrap_or_else(|| Value::String(member.text.clone()))
}

fn property<'s>(root: &'s Value, key: &str) -> Option<&'s Value> {
    let found = root.get("properties").and_then(|properties| properties.get(key));
    found.or_else(|| root.get("additionalProperties"))
}

fn coerce_literals(positional: &[Value], named: &Map<String, Value>, root: &Value) -> RawArguments {
    let names: Vec<&String> =
        root.get("properties").and_then(Value::as_object).map(|all| all.keys().collect()).unwrap_or_default();
    let mut value = Map::new();
    let mut problem = None;
    for (index, item) in positional.iter().enumerate() {
        match names.get(index) {
            Some(name) if named.contains_key(name.as_str()) => {
                problem = Some(duplicate(name));
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
            let named = named.iter().map(|(name, value)| format!("{name}={value}"));
            malformed(positional.iter().map(Value::to_string).chain(named), error)
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
