//! The location of a failure, for a value whose errors are too many to describe.
//!
//! The search enters one invalid part of the value after the other. It validates each with the subschema that applies to
//! it, and enters a branch of a union only if the tag of the value selects it.

use std::collections::{HashMap, HashSet};

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

use super::dry_run::{DryRun, Purpose};
use super::graph::Graph;
use super::union::{Tagged, members_before_wrong_tag};
use crate::schema::pointer::{escape, of_reference, to_reference};
use crate::spec::keywords;

/// Maximum number of subschemas that are compiled.
const MAX_COMPILED: usize = 100;

/// The URI of the schema, if it has none.
const URI: &str = "urn:deftool:schema";

/// A part of a value that is invalid, while no part of it was found to be.
pub(in crate::schema) struct Failure {
    /// JSON pointer into the value.
    pub(in crate::schema) instance: String,
    /// JSON pointer into the schema.
    pub(in crate::schema) schema: String,
    /// The subschema without the schemas in it.
    pub(in crate::schema) assertions: Value,
    /// The key and the tags of a union, if the value has none of them.
    pub(in crate::schema) tags: Option<(String, Vec<String>)>,
}

/// A subschema and the part of the value to which it applies.
struct Part<'s, 'v> {
    schema: &'s Value,
    pointer: String,
    value: &'v Value,
    instance: String,
}

impl<'s, 'v> Part<'s, 'v> {
    /// The same value under another subschema.
    fn under(&self, schema: &'s Value, pointer: String) -> Self {
        Self { schema, pointer, value: self.value, instance: self.instance.clone() }
    }

    /// A member or an item.
    fn inside(&self, schema: &'s Value, keyword: &str, value: &'v Value, step: &str) -> Self {
        let pointer = format!("{}/{keyword}", self.pointer);
        Self { schema, pointer, value, instance: format!("{}/{}", self.instance, escape(step)) }
    }
}

pub(super) struct Search<'g, 's> {
    graph: &'g Graph<'s>,
    entries: HashSet<*const Value>,
    /// The schema, with a reference to the subschema that is validated.
    wrapped: Value,
    uri: String,
    steps_left: usize,
    compiled: HashMap<String, Validator>,
}

impl<'g, 's> Search<'g, 's> {
    pub(super) fn new(
        graph: &'g Graph<'s>,
        entries: HashSet<*const Value>,
        root: &'s Value,
        steps: usize,
    ) -> Self {
        let mut root = root.clone();
        let uri = root.get("$id").and_then(Value::as_str).unwrap_or(URI).to_owned();
        if let Some(members) = root.as_object_mut() {
            members.insert(String::from("$id"), Value::from(uri.as_str()));
        }
        let wrapped = json!({"$ref": "", "$defs": {"root": root}});
        Self { graph, entries, wrapped, uri, steps_left: steps, compiled: HashMap::new() }
    }

    /// Finds a failure of `value`, which is invalid for `root`.
    pub(super) fn find(mut self, root: &'s Value, value: &Value) -> Failure {
        let mut part = Part { schema: root, pointer: String::new(), value, instance: String::new() };
        while let Some(next) = self.narrower(&part) {
            part = next;
        }
        let members = part.schema.as_object();
        let tags = members.zip(part.value.as_object()).and_then(|(members, value)| {
            let unions = branches(members).filter_map(|(_, list)| Tagged::of(self.graph, list));
            unions.into_iter().find(|union| union.branch_for(value).is_none()).map(Tagged::into_tags)
        });
        Failure {
            instance: part.instance,
            schema: part.pointer,
            assertions: members.map_or_else(|| part.schema.clone(), assertions),
            tags,
        }
    }

    /// Returns an invalid part of an invalid part.
    fn narrower<'v>(&mut self, part: &Part<'s, 'v>) -> Option<Part<'s, 'v>> {
        let members = part.schema.as_object()?;
        let mut parts = Vec::new();
        let named = |keyword: &str| members.get(keyword).and_then(Value::as_object).into_iter().flatten();
        let list = |keyword: &str| members.get(keyword).and_then(Value::as_array).into_iter().flatten();
        for (name, schema) in named("properties") {
            if let Some(value) = part.value.get(name) {
                parts.push(part.inside(schema, &format!("properties/{}", escape(name)), value, name));
            }
        }
        if let Some(schema) = members.get("additionalProperties").filter(|schema| schema.is_object()) {
            for (name, value) in part.value.as_object().into_iter().flatten() {
                if !named("properties").any(|(known, _)| known == name) {
                    parts.push(part.inside(schema, "additionalProperties", value, name));
                }
            }
        }
        let first = list("prefixItems").count();
        for (index, value) in part.value.as_array().into_iter().flatten().enumerate() {
            if let Some(schema) = list("prefixItems").nth(index) {
                parts.push(part.inside(schema, &format!("prefixItems/{index}"), value, &index.to_string()));
            } else if let Some(schema) = members.get("items").filter(|_| index >= first) {
                parts.push(part.inside(schema, "items", value, &index.to_string()));
            }
        }
        if let Some(target) = self.target_of(part.schema) {
            parts.push(part.under(target.0, target.1));
        }
        for (index, schema) in list("allOf").enumerate() {
            parts.push(part.under(schema, format!("{}/allOf/{index}", part.pointer)));
        }
        for (keyword, list) in branches(members) {
            if let Some(index) = self.selected(list, part.value) {
                let schema = list.get(index)?;
                parts.push(part.under(schema, format!("{}/{keyword}/{index}", part.pointer)));
            }
        }
        parts.into_iter().find_map(|part| match self.is_valid(&part) {
            Some(false) => Some(Some(part)),
            Some(true) => None,
            // The rest was not examined.
            None => Some(None),
        })?
    }

    /// Returns the branch that the tag of a value selects: the only one without a wrong tag.
    fn selected(&self, branches: &'s [Value], value: &Value) -> Option<usize> {
        let value = value.as_object()?;
        let is_possible = |branch: &'s Value| {
            let mut schemas = vec![branch];
            while let Some((target, _)) = schemas.last().and_then(|last| self.target_of(last))
                && !schemas.iter().any(|known| std::ptr::eq(*known, target))
            {
                schemas.push(target);
            }
            schemas.into_iter().all(|schema| {
                let Value::Object(members) = schema else { return true };
                let is_another = members.get("type").is_some_and(|word| word.is_string() && word != "object");
                !is_another && members_before_wrong_tag(members, value).is_none()
            })
        };
        let mut possible = branches.iter().enumerate().filter(|(_, branch)| is_possible(branch));
        let index = possible.next()?.0;
        possible.next().is_none().then_some(index)
    }

    /// Returns the target of a reference and its JSON pointer.
    fn target_of(&self, schema: &'s Value) -> Option<(&'s Value, String)> {
        let pointer = of_reference(schema.get("$ref")?.as_str()?)?;
        let target = self.graph.targets.get(&std::ptr::from_ref(schema))?.first()?;
        Some((target, pointer))
    }

    /// Returns whether a part is valid; `None` if that cannot be found out within the limits.
    fn is_valid(&mut self, part: &Part<'s, '_>) -> Option<bool> {
        let mut run = DryRun::new(self.graph, self.steps_left, Some(self.entries.clone()));
        let ended = run.visit(part.schema, part.value, Purpose::Validate);
        self.steps_left = run.steps_left();
        if ended.is_break() {
            return None;
        }
        if !self.compiled.contains_key(&part.pointer) {
            if self.compiled.len() == MAX_COMPILED {
                return None;
            }
            let reference = format!("{}{}", self.uri, to_reference(&part.pointer));
            *self.wrapped.get_mut("$ref")? = Value::from(reference);
            let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
            self.compiled.insert(part.pointer.clone(), options.build(&self.wrapped).ok()?);
        }
        Some(self.compiled.get(&part.pointer)?.is_valid(part.value))
    }
}

/// Returns the unions of a schema, by keyword.
fn branches(members: &Map<String, Value>) -> impl Iterator<Item = (&'static str, &[Value])> {
    ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| Some((keyword, members.get(keyword)?.as_array()?.as_slice())))
}

/// Returns the schema without the schemas in it. It still forbids the members that it forbids.
fn assertions(members: &Map<String, Value>) -> Value {
    let assertion = |(keyword, value): (&String, &Value)| {
        let value = match (keyword.as_str(), value) {
            ("additionalProperties", Value::Bool(false)) => value.clone(),
            ("properties", Value::Object(named)) => {
                named.keys().map(|name| (name.clone(), Value::Bool(true))).collect()
            }
            ("$ref" | "$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor", _) => return None,
            (keyword, _) if keywords::value_kind(keyword).holds_schemas() => return None,
            (_, value) => value.clone(),
        };
        Some((keyword.clone(), value))
    };
    members.iter().filter_map(assertion).collect()
}
