//! The branches and members that a validator does not visit, because a tag in the value decides.
//!
//! The validator compares the tag before the rest: it enters only the branch of a union whose tag matches, and stops at
//! the first member of an object that is invalid. Source: `keywords/discriminator.rs`, `keywords/properties.rs` and
//! `keyword_priority` of `jsonschema` 0.60.2.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::graph::Graph;

/// Minimum number of branches of a union with a tag.
const MIN_BRANCHES: usize = 3;

/// Maximum nesting of references and `allOf` in which a validator searches for the tag of a branch.
pub(super) const MAX_TAG_DEPTH: usize = 16;

/// A union whose branches each require a member with a string of their own.
pub(super) struct Tagged<'v> {
    key: &'v str,
    branches: HashMap<&'v str, *const Value>,
}

impl<'v> Tagged<'v> {
    /// Returns the tags of the branches of `anyOf` or `oneOf`, if the validator uses them.
    pub(super) fn of(graph: &Graph<'v>, branches: &'v [Value]) -> Option<Self> {
        if branches.len() < MIN_BRANCHES {
            return None;
        }
        let tags = branches.iter().map(|branch| {
            let mut pins = Pins::default();
            pins.collect(graph, branch, 0);
            pins.tags(graph)
        });
        let tags: Vec<HashMap<&str, &str>> = tags.collect();
        let mut keys: Vec<&str> = tags.first()?.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().find_map(|key| {
            let mut by_tag = HashMap::new();
            for (tags, branch) in tags.iter().zip(branches) {
                if by_tag.insert(*tags.get(key)?, std::ptr::from_ref(branch)).is_some() {
                    return None;
                }
            }
            Some(Self { key, branches: by_tag })
        })
    }

    /// Returns the branch that the validator enters for an object.
    pub(super) fn branch_for(&self, value: &Map<String, Value>) -> Option<*const Value> {
        self.branches.get(value.get(self.key)?.as_str()?).copied()
    }

    /// Returns the key and the tags.
    pub(super) fn into_tags(self) -> (String, Vec<String>) {
        let mut tags: Vec<String> = self.branches.into_keys().map(str::to_owned).collect();
        tags.sort_unstable();
        (self.key.to_owned(), tags)
    }
}

/// What a branch requires for certain.
#[derive(Default)]
struct Pins<'v> {
    required: HashSet<&'v str>,
    properties: Vec<&'v Map<String, Value>>,
}

impl<'v> Pins<'v> {
    fn collect(&mut self, graph: &Graph<'v>, schema: &'v Value, depth: usize) {
        if depth > MAX_TAG_DEPTH || !schema.is_object() {
            return;
        }
        if let Some(target) = target_of(graph, schema) {
            self.collect(graph, target, depth + 1);
        }
        let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        self.required.extend(list("required").filter_map(Value::as_str));
        self.properties.extend(schema.get("properties").and_then(Value::as_object));
        for part in list("allOf") {
            self.collect(graph, part, depth + 1);
        }
    }

    /// Returns the required members that have only one value, a string.
    fn tags(self, graph: &Graph<'v>) -> HashMap<&'v str, &'v str> {
        let tag =
            |name: &&'v str| self.properties.iter().find_map(|named| only_value(graph, named.get(*name)?, 0));
        self.required.iter().filter_map(|name| Some((*name, tag(name)?))).collect()
    }
}

/// Returns the only string that a schema accepts.
fn only_value<'v>(graph: &Graph<'v>, schema: &'v Value, depth: usize) -> Option<&'v str> {
    if depth > MAX_TAG_DEPTH {
        return None;
    }
    let found = target_of(graph, schema).and_then(|target| only_value(graph, target, depth + 1));
    found.or_else(|| match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(Value::String(only)), _) => Some(only.as_str()),
        (_, Some(values)) => match values.as_slice() {
            [Value::String(only)] => Some(only.as_str()),
            _ => None,
        },
        _ => None,
    })
}

/// Returns the target of the only reference of a schema, `$ref`.
fn target_of<'v>(graph: &Graph<'v>, schema: &'v Value) -> Option<&'v Value> {
    schema.get("$ref")?;
    match graph.targets.get(&std::ptr::from_ref(schema))?.as_slice() {
        [target] => Some(target),
        _ => None,
    }
}

/// Returns the names of the members that a validator may visit before it finds a wrong tag: those before it in the schema
/// or in the value, in whose orders it visits them. `None`: no tag is wrong.
pub(super) fn members_before_wrong_tag<'v>(
    schema: &'v Map<String, Value>,
    value: &'v Map<String, Value>,
) -> Option<HashSet<&'v str>> {
    // The validator may check these before the other members.
    if schema.contains_key("patternProperties") {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    let is_wrong = |(name, schema): &(&String, &Value)| {
        value.get(*name).is_some_and(|value| is_wrong_tag(schema, value))
    };
    let wrong = properties.iter().find(is_wrong)?.0;
    let before = properties.keys().take_while(|name| *name != wrong);
    let before = before.chain(value.keys().take_while(|name| *name != wrong));
    Some(before.map(String::as_str).chain([wrong.as_str()]).collect())
}

/// Returns whether a schema lists strings, of which the value is none.
fn is_wrong_tag(schema: &Value, value: &Value) -> bool {
    match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(only @ Value::String(_)), _) => only != value,
        (_, Some(values)) => values.iter().all(|known| known.is_string() && known != value),
        _ => false,
    }
}
