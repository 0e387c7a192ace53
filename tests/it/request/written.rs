//! Arguments of calls written as text: what a schema makes of values that are text, and of values without a name.

use std::sync::Arc;

use deftool::chat::ChatEvent;
use deftool::request::{BiosV1, Fallback, Step};
use deftool::schema::{ToolEntry, ToolKind, ToolSet};
use serde_json::{Value, json};

use super::play::{definition, play, says};

/// The arguments that a tool `put` with these parameters gets for a call that is written so; else why it fails.
fn arguments(parameters: &Value, written: &str) -> Result<Value, String> {
    let entry = ToolEntry::new(ToolKind::Normal, definition("put", parameters), None).unwrap();
    let tools = ToolSet::new([Arc::new(entry)]);
    let mut run = play().with(|config| config.fallback = Fallback::On).start();
    run.next_step(&tools, &BiosV1);
    run.on_event(ChatEvent::Text { text: written.to_owned() }, &tools, 1);
    run.on_event(ChatEvent::Ended { reply: says("").reply }, &tools, 2);
    match run.next_step(&tools, &BiosV1) {
        Step::AnswerCalls(calls) => Ok(Value::Object(calls[0].call.arguments.clone())),
        _ => Err(run.outcome().unwrap().detail.clone().unwrap_or_default()),
    }
}

#[test]
fn a_value_that_is_text_becomes_what_the_schema_takes() {
    for (schema, text, expected) in [
        (json!({"type": "string"}), "5", json!("5")),
        (json!({"type": "integer"}), "5", json!(5)),
        (json!({"type": "boolean"}), "True", json!(true)),
        (json!({"type": ["string", "null"]}), "null", json!(null)),
        (json!({"type": ["string", "null"]}), "None", json!(null)),
        (json!({"type": ["string", "null"]}), "nothing", json!("nothing")),
        (json!({"type": "string"}), "None", json!("None")),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "5", json!(5)),
        (json!({"oneOf": [{"const": 5}, {"const": 6}]}), "5", json!(5)),
        (json!({"allOf": [{"type": "integer"}, {"minimum": 1}]}), "5", json!(5)),
        (json!({"enum": ["5", "6"]}), "5", json!("5")),
    ] {
        let call = format!(
            "<tool_call>\n<function=put>\n<parameter=a>\n{text}\n</parameter>\n</function>\n</tool_call>"
        );
        let named = json!({"type": "object", "properties": {"a": schema.clone()}});
        assert_eq!(arguments(&named, &call), Ok(json!({"a": expected.clone()})), "{schema}: {text}");
        // A property of any name.
        let any = json!({"type": "object", "additionalProperties": schema.clone()});
        assert_eq!(arguments(&any, &call), Ok(json!({"a": expected})), "{schema}: {text}");
    }
}

#[test]
fn a_value_without_a_name_has_the_place_of_its_property() {
    let parameters = json!({
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]
    });
    for (call, expected) in [
        ("[put(1, b=2)]", Ok(json!({"a": 1, "b": 2}))),
        ("[put(1, 2, b=3)]", Err("`b` is given twice")),
        ("[put(1, a=2)]", Err("`a` is given twice")),
        ("[put(1, 2, 3, b=4)]", Err("3 values without a name, but the tool takes 2")),
    ] {
        match (arguments(&parameters, call), expected) {
            (Ok(arguments), Ok(expected)) => assert_eq!(arguments, expected, "{call}"),
            (Err(detail), Err(expected)) => assert!(detail.contains(expected), "{call}: {detail}"),
            (found, expected) => panic!("{call}: {found:?}, not {expected:?}"),
        }
    }
}
