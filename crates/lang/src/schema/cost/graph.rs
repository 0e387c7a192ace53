//! A schema as a graph: its subschemas, and the targets of its references.

use std::collections::HashMap;
use std::ops::ControlFlow::{self, Continue};

use serde_json::{Map, Value};
use url::Url;

use crate::schema::pointer::of_reference;

/// The values to which a subschema applies, relative to the value of the schema that contains it.
pub(super) enum Scope<'v> {
    /// The same value.
    Same,
    /// The same value, if another subschema decides so, or its result is one of several.
    Choice,
    /// The member with this name.
    Member(&'v str),
    /// All members, or those that no other keyword names.
    Members,
    /// The names of all members.
    Names,
    /// The item at this index.
    Item(usize),
    /// All items from this index.
    ItemsFrom(usize),
}

/// A schema and the targets of its references.
pub(super) struct Graph<'v> {
    /// The targets of the references in a schema, by the address of the schema.
    pub(super) targets: HashMap<*const Value, Vec<&'v Value>>,
    /// The reference of a schema to another document, by the address of the schema. The object may also be data.
    pub(super) unresolved: HashMap<*const Value, &'v str>,
    /// Number of values in the text of the schema.
    pub(super) values: usize,
}

/// A schema with its own URI: the whole schema, and each subschema with an `$id`.
struct Resource<'v> {
    uri: Option<Url>,
    schema: &'v Value,
}

impl<'v> Graph<'v> {
    pub(super) fn of(root: &'v Value) -> Self {
        let mut resources = vec![Resource { uri: Url::parse("json-schema:///").ok(), schema: root }];
        let mut anchors: HashMap<&str, Vec<&Value>> = HashMap::new();
        let mut references = Vec::new();
        let mut values = 0;
        let mut pending = vec![(root, 0)];
        while let Some((value, mut resource)) = pending.pop() {
            values += 1;
            match value {
                Value::Object(members) => {
                    let text = |keyword: &str| members.get(keyword).and_then(Value::as_str);
                    if let Some(id) = text("$id") {
                        let base = resources.get(resource).and_then(|base: &Resource<'_>| base.uri.as_ref());
                        let uri = base.and_then(|base| base.join(id).ok());
                        resource = resources.len();
                        resources.push(Resource { uri, schema: value });
                    }
                    for name in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text) {
                        anchors.entry(name).or_default().push(value);
                    }
                    let referring = ["$ref", "$dynamicRef", "$recursiveRef"].into_iter().filter_map(text);
                    references.extend(referring.map(|reference| (value, resource, reference)));
                    pending.extend(members.values().map(|member| (member, resource)));
                }
                Value::Array(items) => pending.extend(items.iter().map(|item| (item, resource))),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let by_uri: HashMap<&str, &Value> = resources
            .iter()
            .filter_map(|resource| Some((without_fragment(resource.uri.as_ref()?), resource.schema)))
            .collect();
        let mut targets: HashMap<*const Value, Vec<&Value>> = HashMap::new();
        let mut unresolved = HashMap::new();
        for (schema, resource, reference) in references {
            let Some(base) = resources.get(resource) else { continue };
            let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
            let target = if uri.is_empty() {
                base.schema
            } else {
                let uri = base.uri.as_ref().and_then(|base| base.join(uri).ok());
                match uri.as_ref().and_then(|uri| by_uri.get(without_fragment(uri))) {
                    Some(target) => target,
                    // The validator contains the meta-schemas.
                    None if uri.is_some_and(|uri| uri.host_str() == Some("json-schema.org")) => continue,
                    None => {
                        unresolved.insert(std::ptr::from_ref(schema), reference);
                        continue;
                    }
                }
            };
            // The validator reports a pointer or an anchor without a target.
            let found = targets.entry(schema).or_default();
            match of_reference(&format!("#{fragment}")) {
                Some(pointer) => found.extend(target.pointer(&pointer)),
                None => found.extend(anchors.get(fragment).into_iter().flatten()),
            }
        }
        Self { targets, unresolved, values }
    }

    /// Calls `visit` for each subschema of `schema`, and for the targets of its references.
    pub(super) fn each<B>(
        &self,
        schema: &'v Value,
        members: &'v Map<String, Value>,
        mut visit: impl FnMut(Scope<'v>, &'v Value) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        for target in self.targets.get(&std::ptr::from_ref(schema)).into_iter().flatten() {
            visit(Scope::Same, target)?;
        }
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("allOf", Value::Array(schemas)) => {
                    schemas.iter().try_for_each(|schema| visit(Scope::Same, schema))?;
                }
                ("anyOf" | "oneOf", Value::Array(schemas)) => {
                    schemas.iter().try_for_each(|schema| visit(Scope::Choice, schema))?;
                }
                ("not" | "if" | "then" | "else", schema) => visit(Scope::Choice, schema)?,
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    schemas.values().try_for_each(|schema| visit(Scope::Choice, schema))?;
                }
                ("properties", Value::Object(named)) => {
                    named.iter().try_for_each(|(name, schema)| visit(Scope::Member(name), schema))?;
                }
                ("patternProperties", Value::Object(named)) => {
                    named.values().try_for_each(|schema| visit(Scope::Members, schema))?;
                }
                ("additionalProperties" | "unevaluatedProperties", schema) => {
                    visit(Scope::Members, schema)?;
                }
                ("propertyNames", schema) => visit(Scope::Names, schema)?,
                ("items" | "prefixItems", Value::Array(schemas)) => {
                    let mut numbered = schemas.iter().enumerate();
                    numbered.try_for_each(|(index, schema)| visit(Scope::Item(index), schema))?;
                }
                ("items", schema) => {
                    visit(Scope::ItemsFrom(length_of(members, "prefixItems")), schema)?;
                }
                ("additionalItems" | "contains" | "unevaluatedItems", schema) => {
                    visit(Scope::ItemsFrom(0), schema)?;
                }
                _ => {}
            }
        }
        Continue(())
    }
}

fn without_fragment(uri: &Url) -> &str {
    let uri = uri.as_str();
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}

/// Returns the length of the list under a keyword.
pub(super) fn length_of(members: &Map<String, Value>, keyword: &str) -> usize {
    members.get(keyword).and_then(Value::as_array).map_or(0, Vec::len)
}
