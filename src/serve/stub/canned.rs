//! The stub's own words, where nobody wrote a reply: a text, or a text and calls of what the request offers.

use serde_json::{Map, Value, json};

use super::conversation::{last_said, tools};
use super::http::Received;
use super::misbehave::Needs;
use super::reply::Reply;
use crate::schema::{ArgumentValidator, Fuzzer};

/// What is said where nothing is called.
const TEXT: &str = "This is what the stub says, word for word, so that half of it is still something.";
/// What is said beside a call.
const BEFORE: &str = "Let me look. ";
/// What is said once the results of calls came.
const AFTER: &str = "Done, with what the tools gave.";
/// The tool that is called where none is offered.
const NO_TOOL: &str = "example";

/// A reply that holds what its misbehaviours need. Once a tool's result came, it is text.
pub(super) fn canned(needs: impl Iterator<Item = Needs>, request: &Received) -> Reply {
    if last_said(request).is_some_and(|last| last.role == "tool") {
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
    let (name, parameters) = choose(request, has_arguments);
    let parameters = parameters.unwrap_or_else(|| json!({"type": "object"}));
    let validator = ArgumentValidator::compile(&name, &parameters).ok();
    (0..count).fold(Reply::new().text(BEFORE), |reply, number| {
        let arguments = arguments(&parameters, validator.as_ref(), number);
        reply.call(name.clone(), &Value::Object(arguments))
    })
}

/// The first tool that is offered and that needs arguments, or needs none; else the first.
fn choose(request: &Received, has_arguments: bool) -> (String, Option<Value>) {
    let functions = || tools(request).filter(|tool| tool.get("name").is_some());
    let needs_some = |function: &&Value| {
        let required = function.pointer("/parameters/required").and_then(Value::as_array);
        required.is_some_and(|required| !required.is_empty())
    };
    let chosen =
        functions().find(|function| needs_some(function) == has_arguments).or_else(|| functions().next());
    let name = chosen.and_then(|function| function.get("name")?.as_str()).unwrap_or(NO_TOOL);
    (name.to_owned(), chosen.and_then(|function| function.get("parameters")).cloned())
}

/// Arguments that a person would write, if the schema allows them; else what is made from the schema. Calls of one reply
/// have different ones where that is easy.
fn arguments(parameters: &Value, validator: Option<&ArgumentValidator>, number: usize) -> Map<String, Value> {
    let properties = parameters.get("properties").and_then(Value::as_object);
    let plain: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), plain(schema, number)?)))
        .collect();
    let Some(validator) = validator else { return plain };
    if validator.is_valid(&Value::Object(plain.clone())) {
        return plain;
    }
    Fuzzer::new(parameters, validator, 1).valid(number + 1).unwrap_or(plain)
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
