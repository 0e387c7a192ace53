//! Arguments of calls written as text: conversion of text values by the schema, and positional values.

use std::sync::Arc;

use deftool_chat::ChatEvent;
use deftool_chat::request::{BiosV1, Fallback, Step};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use serde_json::{Value, json};

use super::play::{definition, play, reply_with};

/// Returns the arguments that a tool `put` with these parameters receives for a call written as text, or the failure.
fn arguments(parameters: &Value, written: &str) -> Result<Value, String> {
    let entry = ToolEntry::new(ToolKind::Normal, definition("put", parameters), None).unwrap();
    let tools = ToolSet::new([Arc::new(entry)]);
    let mut run = play().with(|config| config.fallback = Fallback::On).start();
    run.next_step(&tools, &BiosV1);
    run.on_event(ChatEvent::Text { text: written.to_owned() }, &tools, 1);
    run.on_event(ChatEvent::Ended { reply: reply_with("").reply }, &tools, 2);
    match run.next_step(&tools, &BiosV1) {
        Step::AnswerCalls(calls) => Ok(calls[0].call.arguments.to_value()),
        _ => Err(run.outcome().unwrap().detail.clone().unwrap_or_default()),
    }
}

#[test]
fn a_text_value_is_converted_to_a_type_of_the_schema() {
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
        // The same for additional properties.
        let any = json!({"type": "object", "additionalProperties": schema.clone()});
        assert_eq!(arguments(&any, &call), Ok(json!({"a": expected})), "{schema}: {text}");
    }
}

/// Neither value of a repeated argument is certain.
#[test]
fn a_repeated_argument_is_malformed_unless_the_values_are_equal() {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for form in [
        "<tool_call>\n<function=put>\n<parameter=a>\n{1}\n</parameter>\n<parameter=a>\n{2}\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>put\n<arg_key>a</arg_key>\n<arg_value>{1}</arg_value>\n<arg_key>a</arg_key>\n<arg_value>{2}</arg_value>\n</tool_call>",
        "<invoke name=\"put\">\n<parameter name=\"a\">{1}</parameter>\n<parameter name=\"a\">{2}</parameter>\n</invoke>",
    ] {
        let call = |first: &str, second: &str| form.replace("{1}", first).replace("{2}", second);
        assert_eq!(arguments(&parameters, &call("x", "x")), Ok(json!({"a": "x"})), "{form}");
        let detail = arguments(&parameters, &call("x", "y")).unwrap_err();
        assert!(detail.contains("duplicate argument `a`"), "{form}: {detail}");
    }
    let gemma = "<|tool_call>call:put{a:<|\"|>x<|\"|>,a:<|\"|>y<|\"|>}<tool_call|>";
    let detail = arguments(&parameters, gemma).unwrap_err();
    assert!(detail.contains("duplicate argument `a`"), "{detail}");
}

/// One damaged tag between two arguments does not make them one.
#[test]
fn a_value_with_a_damaged_tag_of_its_own_is_malformed() {
    let parameters =
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let qwen = "<tool_call>\n<function=put>\n<parameter=a>\nx\n</parameter>\n<parameter=b>\ny\n</parameter>\n</function>\n</tool_call>";
    let glm = "<tool_call>put\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>b</arg_key>\n<arg_value>y</arg_value>\n</tool_call>";
    let invoke = "<invoke name=\"put\">\n<parameter name=\"a\">x</parameter>\n<parameter name=\"b\">y</parameter>\n</invoke>";
    for (call, open, close) in [
        (qwen, "<parameter=b>", "</parameter>"),
        (glm, "<arg_key>b", "</arg_value>"),
        (invoke, "<parameter name=\"b\">", "</parameter>"),
    ] {
        assert_eq!(arguments(&parameters, call), Ok(json!({"a": "x", "b": "y"})), "{call}");
        let name = close.trim_matches(['<', '>', '/']);
        let damaged = [
            call.replacen(open, &open[1..], 1),
            call.replacen(close, &close[1..], 1),
            call.replacen(close, &format!("</{name}"), 1),
            call.replacen(close, &format!("<{name}>"), 1),
        ];
        for call in damaged {
            assert!(arguments(&parameters, &call).is_err(), "{call}: {:?}", arguments(&parameters, &call));
        }
    }
    // The first closing tag belongs to the value.
    let nested = invoke.replace(">x<", "><parameter>\n<n></n>\n</parameter><");
    assert!(arguments(&parameters, &nested).is_err(), "{nested}: {:?}", arguments(&parameters, &nested));
    // A document about such tags.
    let text = "see </parameter> and <parameter=b>\n<parameter=k>\nv\n</parameter>\nend";
    let call = qwen.replace("\nx\n", &format!("\n{text}\n"));
    assert_eq!(arguments(&parameters, &call), Ok(json!({"a": text, "b": "y"})), "{call}");
}

#[test]
fn positional_values_are_assigned_to_properties_in_order() {
    let parameters = json!({
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]
    });
    for (call, expected) in [
        ("[put(1, b=2)]", Ok(json!({"a": 1, "b": 2}))),
        ("[put(1, 2, b=3)]", Err("duplicate argument `b`")),
        ("[put(1, a=2)]", Err("duplicate argument `a`")),
        ("[put(1, 2, 3, b=4)]", Err("expected at most 2 positional arguments, found 3")),
    ] {
        match (arguments(&parameters, call), expected) {
            (Ok(arguments), Ok(expected)) => assert_eq!(arguments, expected, "{call}"),
            (Err(detail), Err(expected)) => assert!(detail.contains(expected), "{call}: {detail}"),
            (found, expected) => panic!("{call}: expected {expected:?}, found {found:?}"),
        }
    }
}
