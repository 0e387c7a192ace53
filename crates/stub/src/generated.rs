//! Generated replies for requests without a scripted reply: text, or text and calls of the offered tools.

use deftool_lang::schema::{ArgumentValidator, generate_arguments};
use serde_json::{Map, Value, json};

use super::fault::Needs;
use super::reply::Reply;
use super::request::{Received, last_message, parameters, tools};

/// The text of a reply without calls.
const TEXT: &str = "This is a generated reply of the stub server. It is long enough to be cut in half.";
/// The text before a call.
const BEFORE: &str = "Let me look. ";
/// The text of the reply after a tool result.
const AFTER: &str = "Done. I used the tool results.";
/// The tool that is called if the request offers none.
const NO_TOOL: &str = "example";

/// Returns a generated reply with the content that its faults need. After a tool result, the reply is text.
pub(super) fn generated_reply(needs: impl Iterator<Item = Needs>, request: &Received) -> Reply {
    if last_message(request).is_some_and(|last| last.role == "tool") {
        return Reply::new().text(AFTER);
    }
    let needs = needs.max_by_key(|needs| match needs {
        Needs::Text => 0,
        Needs::EmptyCall => 1,
        Needs::Call => 2,
        Needs::TwoCalls => 3,
    });
    let called = match needs {
        None | Some(Needs::Text) => return Reply::new().text(TEXT),
        Some(Needs::EmptyCall) => (1, false),
        Some(Needs::Call) => (1, true),
        Some(Needs::TwoCalls) => (2, true),
    };
    let (count, has_arguments) = called;
    let (name, schema) = choose(request, has_arguments);
    let schema = schema.unwrap_or_else(|| json!({"type": "object"}));
    let validator = ArgumentValidator::compile(&name, &schema).ok();
    (0..count).fold(Reply::new().text(BEFORE), |reply, number| {
        let arguments = arguments(&schema, validator.as_ref(), number);
        reply.call(name.clone(), &Value::Object(arguments))
    })
}

/// Returns the first offered tool that has required arguments, or that has none if `has_arguments` is false. If there
/// is no such tool, returns the first offered tool.
fn choose(request: &Received, has_arguments: bool) -> (String, Option<Value>) {
    let functions = || tools(request).filter(|tool| tool.get("name").is_some());
    let needs_some = |function: &&Value| {
        let required = parameters(function).and_then(|schema| schema.get("required")?.as_array());
        required.is_some_and(|required| !required.is_empty())
    };
    let chosen =
        functions().find(|function| needs_some(function) == has_arguments).or_else(|| functions().next());
    let name = chosen.and_then(|function| function.get("name")?.as_str()).unwrap_or(NO_TOOL);
    (name.to_owned(), chosen.and_then(parameters).cloned())
}

/// Returns readable arguments if the schema allows them, otherwise generated arguments. Calls of one
/// reply get different arguments if the schema makes this easy.
fn arguments(schema: &Value, validator: Option<&ArgumentValidator>, number: usize) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let plain: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), plain(schema, number)?)))
        .collect();
    let Some(validator) = validator else { return plain };
    if validator.is_valid(&Value::Object(plain.clone())) {
        return plain;
    }
    generate_arguments(schema, validator, number + 1).unwrap_or(plain)
}

fn plain(schema: &Value, number: usize) -> Option<Value> {
    let allowed = schema.get("enum").and_then(Value::as_array);
    if let Some(first) = allowed.and_then(|allowed| allowed.get(number % allowed.len().max(1))) {
        return Some(first.clone());
    }
    Some(match schema.get("type").and_then(Value::as_str)? {
        "string" => json!(if number == 0 { "an example of a text" } else { "another example of a text" }),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(number + 1)),
        "boolean" => json!(true),
        "array" => json!([]),
        _ => return None,
    })
}
