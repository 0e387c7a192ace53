//! What a spec gives as values of its own schemas: `:default`, `:examples`, `:accepts` and `:rejects`.
//!
//! A default that is a plain value of a plain type is held against the type and the `:enum` at once; only for others a
//! validator is compiled. A schema with a `$ref` is left alone: what it refers to stands elsewhere.

use std::cell::OnceCell;

use serde_json::Value;

use super::ArgumentValidator;
use super::rules;
use crate::diagnostic::Diagnostic;
use crate::spec::keywords::{self, Takes};
use crate::spec::schema::is_of_type;
use crate::spec::{Json, JsonKind, Member, Tool, members_to_map, nearest};
use crate::text::{Location, Span};

/// A value that its schema refuses.
pub(in crate::schema) struct Misfit {
    /// Why.
    pub(in crate::schema) message: String,
    /// Where it stands and what it may be meant for.
    meant: Option<(Span, String)>,
}

impl Misfit {
    /// With what may be meant.
    pub(in crate::schema) fn suggest(&self, finding: Diagnostic) -> Diagnostic {
        match &self.meant {
            Some((span, known)) => finding.labelled(format!("did you mean {known}?")).maybe_fixed_by(
                format!("write {known}"),
                *span,
                known.clone(),
            ),
            None => finding,
        }
    }
}

/// Holds every `:default` and `:examples` of a tool against the schema that it stands in.
pub(super) fn check_defaults(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    for argument in &tool.arguments {
        check_members(tool, &argument.schema, findings);
    }
}

/// Holds the calls that a tool gives as examples against its parameters.
pub(super) fn check_calls(tool: &Tool, validator: &ArgumentValidator, findings: &mut Vec<Diagnostic>) {
    let at = |span| Location { source: tool.source, span };
    for example in &tool.accepts {
        if let Some((pointer, violation)) = validator.first_violation(&example.to_value()) {
            let span = span_at(example, &pointer);
            findings.push(rules::accepted_example_fails::finding(at(span), &violation));
        }
    }
    for example in &tool.rejects {
        if validator.is_valid(&example.to_value()) {
            findings.push(rules::rejected_example_passes::finding(at(example.span)));
        }
    }
}

/// The place in `value` that a JSON pointer leads to, or the nearest around it.
pub(super) fn span_at(value: &Json, pointer: &str) -> Span {
    let (mut value, mut span) = (value, value.span);
    for step in pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")) {
        let inside = match &value.kind {
            JsonKind::Object(members) => {
                members.iter().find(|member| member.key == step).map(|member| &member.value)
            }
            JsonKind::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => None,
        };
        let Some(inside) = inside else { break };
        (value, span) = (inside, inside.span);
    }
    span
}

fn check_members(tool: &Tool, schema: &[Member], findings: &mut Vec<Diagnostic>) {
    let judge = Judge::new(schema);
    for member in schema {
        let at = |span| Location { source: tool.source, span };
        match (member.key.as_str(), &member.value.kind) {
            ("default", _) if !is_nil_elsewhere(schema, &member.value) => {
                if let Some(misfit) = judge.misfit(&member.value) {
                    findings.push(rules::default_misfit::finding(at(member.value.span), &misfit));
                }
            }
            ("examples", JsonKind::Array(values)) => {
                for value in values {
                    if let Some(misfit) = judge.misfit(value) {
                        findings.push(rules::example_misfit::finding(at(value.span), &misfit));
                    }
                }
            }
            _ => {}
        }
        for inside in schemas_in(member) {
            check_members(tool, inside, findings);
        }
    }
}

/// The schemas that a keyword holds.
pub(super) fn schemas_in(member: &Member) -> Vec<&[Member]> {
    let Some(keyword) = keywords::find(&member.key) else { return Vec::new() };
    match (keyword.takes, &member.value.kind) {
        (Takes::Schema, JsonKind::Object(members)) => vec![members.as_slice()],
        (Takes::Schema | Takes::Schemas, JsonKind::Array(items)) => items.iter().filter_map(object).collect(),
        (Takes::Named, JsonKind::Object(named)) => {
            named.iter().filter_map(|member| object(&member.value)).collect()
        }
        _ => Vec::new(),
    }
}

fn object(value: &Json) -> Option<&[Member]> {
    match &value.kind {
        JsonKind::Object(members) => Some(members),
        JsonKind::Null
        | JsonKind::Bool(_)
        | JsonKind::Number(_)
        | JsonKind::String(_)
        | JsonKind::Array(_) => None,
    }
}

/// nil is told by a rule of its own.
fn is_nil_elsewhere(schema: &[Member], value: &Json) -> bool {
    let type_name =
        schema.iter().find(|member| member.key == "type").and_then(|member| member.value.as_str());
    matches!(&value.kind, JsonKind::Object(members) if members.is_empty())
        && type_name.is_some_and(|name| name != "object" && name != "null")
}

/// Holds values against one schema.
struct Judge<'s> {
    schema: &'s [Member],
    validator: OnceCell<Option<ArgumentValidator>>,
}

impl<'s> Judge<'s> {
    fn new(schema: &'s [Member]) -> Self {
        Self { schema, validator: OnceCell::new() }
    }

    fn misfit(&self, value: &Json) -> Option<Misfit> {
        let plain = ["type", "description", "title", "enum", "default", "examples", "deprecated"];
        let is_plain = self.schema.iter().all(|member| plain.contains(&member.key.as_str()));
        let get = |key: &str| self.schema.iter().find(|member| member.key == key).map(|member| &member.value);
        let type_name = get("type").and_then(Json::as_str);
        if let Some(name) = type_name
            && !is_of_type(&value.kind, name)
        {
            return Some(Misfit { message: format!("it is no {name}"), meant: None });
        }
        if let Some(Json { kind: JsonKind::Array(known), .. }) = get("enum") {
            let wanted = value.to_value();
            if !known.iter().any(|known| known.to_value() == wanted) {
                let near =
                    value.as_str().and_then(|word| nearest(word, known.iter().filter_map(Json::as_str)));
                let meant = near.map(|known| (value.span, Value::from(known).to_string()));
                return Some(Misfit { message: String::from("it is not in the `:enum`"), meant });
            }
        }
        if is_plain && get("type").is_none_or(|value| value.as_str().is_some()) {
            return None;
        }
        let schema = self.schema;
        let validator = self.validator.get_or_init(|| {
            let schema = Value::Object(members_to_map(schema));
            if has_reference(&schema) {
                return None;
            }
            // A schema that does not compile was told.
            ArgumentValidator::compile("", &schema).ok()
        });
        let (_, violation) = validator.as_ref()?.first_violation(&value.to_value())?;
        Some(Misfit { message: violation.to_string(), meant: None })
    }
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("$ref") || members.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
