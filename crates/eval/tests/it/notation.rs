//! Asks and tools from JSON, for tests and for the example `judge`.
//!
//! An ask is `"no call"`, `{"no_call_of": TOOL}`, or `{"calls": [{"tool": TOOL, "arguments": PATTERN, "ignore": [NAME]}],
//! "ordered": true}`. A pattern is JSON, in which `{"$any": [PATTERN]}`, `{"$optional": PATTERN}` and
//! `{"$schema": SCHEMA}` are the patterns of these names.

use std::sync::Arc;

use deftool_eval::judge::ObservedCall;
use deftool_lang::schema::{Arguments, ToolEntry, ToolKind, ToolSet};
use deftool_lang::spec::{Ask, ExpectedCall, ExpectedReply, Pattern, PatternKind};
use deftool_lang::text::{SourceFile, Sources, Span, Spanned};
use serde_json::Value;

pub(crate) fn ask(expected: &Value) -> Ask {
    let calls = expected["calls"].as_array().into_iter().flatten().map(call).collect();
    let is_ordered = expected["ordered"] == true;
    Ask {
        source: Sources::new().add(SourceFile::new("asks.eld", "")),
        span: Span::default(),
        prompt: spanned(""),
        history: Vec::new(),
        expected: match (expected, &expected["no_call_of"]) {
            (Value::String(_), _) => ExpectedReply::NoCall,
            (_, Value::String(tool)) => ExpectedReply::NoCallOf(tool.clone()),
            _ => ExpectedReply::Calls { calls, is_ordered },
        },
    }
}

fn call(value: &Value) -> ExpectedCall {
    let ignored = value["ignore"].as_array().into_iter().flatten();
    ExpectedCall {
        tool: spanned(value["tool"].as_str().unwrap_or_default()),
        arguments: value.get("arguments").map(pattern),
        ignored: ignored.filter_map(Value::as_str).map(spanned).collect(),
    }
}

fn pattern(value: &Value) -> Pattern {
    let all = |values: &[Value]| values.iter().map(pattern).collect();
    let kind = match value {
        Value::Array(items) => PatternKind::Array(all(items)),
        Value::Object(members) => match members.iter().next() {
            Some((key, Value::Array(values))) if key == "$any" => PatternKind::Any(all(values)),
            Some((key, inner)) if key == "$optional" => PatternKind::Optional(Box::new(pattern(inner))),
            Some((key, schema)) if key == "$schema" => PatternKind::Schema(schema.clone().into()),
            _ => PatternKind::Object(
                members.iter().map(|(name, value)| (spanned(name), pattern(value))).collect(),
            ),
        },
        scalar => PatternKind::Scalar(scalar.clone().into()),
    };
    Pattern { span: Span::default(), kind }
}

fn spanned(text: &str) -> Spanned<String> {
    Spanned::new(text.to_owned(), Span::default())
}

/// Creates tools from their `openai` definitions.
pub(crate) fn tools(definitions: &Value) -> ToolSet {
    let definitions = definitions.as_array().cloned().unwrap_or_default();
    ToolSet::new(
        definitions
            .into_iter()
            .map(|definition| Arc::new(ToolEntry::lenient(ToolKind::Normal, definition, None).0)),
    )
}

/// Reads the calls of a reply, `[{"tool": TOOL, "arguments": {…}}]`, and validates them.
pub(crate) fn calls(reply: &Value, tools: &ToolSet) -> Vec<ObservedCall> {
    let calls = reply.as_array().into_iter().flatten();
    calls
        .map(|call| {
            let (tool, arguments) = (call["tool"].as_str().unwrap_or_default(), call["arguments"].clone());
            let error = error(tool, &arguments, tools);
            ObservedCall { tool: tool.to_owned(), arguments, error, ..ObservedCall::default() }
        })
        .collect()
}

fn error(tool: &str, arguments: &Value, tools: &ToolSet) -> Option<String> {
    let Some(tool) = tools.get(tool) else { return Some(String::from("unknown tool")) };
    let Ok(arguments) = Arguments::try_from(arguments.clone()) else {
        return Some(String::from("the arguments are not a JSON object"));
    };
    let (_, violations) = tool.accept(arguments).err()?;
    Some(violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}
