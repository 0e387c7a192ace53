//! Schemas that refer to themselves through references and the branches of `anyOf` and `oneOf` only.
//!
//! All cycles of a root are found in one pass, in time linear in its size. The algorithm is Gabow's search for strongly
//! connected components, without recursion, because a chain of references may be as long as a file.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::pointer::resolve;
use super::walk::values_in;

/// The schemas of one root that belong to a cycle, by address.
pub(crate) struct ReferenceCycles(HashSet<*const Value>);

impl ReferenceCycles {
    pub(crate) fn of(root: &Value) -> Self {
        let mut search = Search::default();
        // Every cycle contains a reference.
        for schema in values_in(root).filter(|value| value.get("$ref").is_some()) {
            search.start(root, schema);
        }
        Self(search.cycles)
    }

    /// Returns whether `schema` belongs to a cycle. It must be part of the root itself, not a copy.
    pub(crate) fn contains(&self, schema: &Value) -> bool {
        self.0.contains(&std::ptr::from_ref(schema))
    }
}

/// Returns the schemas that apply to the same value as `schema`: the target of `$ref` and the branches.
fn next_of<'v>(root: &'v Value, schema: &'v Value) -> Vec<&'v Value> {
    let target = schema.get("$ref").and_then(|reference| resolve(root, reference));
    let branches = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
    target.into_iter().chain(branches.flatten()).collect()
}

/// The number that marks a schema of a complete component.
const DONE: usize = usize::MAX;

#[derive(Default)]
struct Search {
    /// Schemas in the order of discovery.
    numbers: HashMap<*const Value, usize>,
    /// Schemas that may still belong to a cycle.
    open: Vec<*const Value>,
    /// The number of the first schema of each possible cycle.
    heads: Vec<usize>,
    cycles: HashSet<*const Value>,
}

/// A schema on the current path.
struct Visit<'v> {
    number: usize,
    /// Number of open schemas before it.
    before: usize,
    schema: *const Value,
    pending: Vec<&'v Value>,
}

impl Search {
    fn start(&mut self, root: &Value, schema: &Value) {
        if self.numbers.contains_key(&std::ptr::from_ref(schema)) {
            return;
        }
        let mut path = vec![self.visit(root, schema)];
        while let Some(visit) = path.last_mut() {
            let Some(next) = visit.pending.pop() else {
                let (number, before) = (visit.number, visit.before);
                path.pop();
                self.leave(number, before);
                continue;
            };
            if std::ptr::eq(next, visit.schema) {
                self.cycles.insert(visit.schema);
            }
            match self.numbers.get(&std::ptr::from_ref(next)) {
                Some(&seen) => self.heads.truncate(self.heads.partition_point(|head| *head <= seen)),
                None => path.push(self.visit(root, next)),
            }
        }
    }

    fn visit<'v>(&mut self, root: &'v Value, schema: &'v Value) -> Visit<'v> {
        let (number, before) = (self.numbers.len(), self.open.len());
        self.numbers.insert(schema, number);
        self.open.push(schema);
        self.heads.push(number);
        Visit { number, before, schema, pending: next_of(root, schema) }
    }

    fn leave(&mut self, number: usize, before: usize) {
        if self.heads.last() != Some(&number) {
            return;
        }
        self.heads.pop();
        let component = self.open.split_off(before);
        if component.len() > 1 {
            self.cycles.extend(&component);
        }
        self.numbers.extend(component.into_iter().map(|schema| (schema, DONE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn named(root: &Value) -> Vec<&str> {
        let cycles = ReferenceCycles::of(root);
        let named = root.as_object().unwrap().iter();
        named.filter(|(_, schema)| cycles.contains(schema)).map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn only_schemas_that_refer_to_themselves_are_cycles() {
        let root = json!({
            "self": {"$ref": "#/self"},
            "into": {"$ref": "#/self"},
            "between": {"anyOf": [{"$ref": "#/self"}, {"$ref": "#/c"}]},
            "a": {"$ref": "#/b"},
            "b": {"oneOf": [{"type": "null"}, {"$ref": "#/between"}, {"$ref": "#/a"}]},
            "c": {"anyOf": [{"anyOf": [{"$ref": "#/c"}]}]},
            "tree": {"type": "object", "properties": {"kids": {"items": {"$ref": "#/tree"}}}},
            "twice": {"anyOf": [{"$ref": "#/leaf"}, {"$ref": "#/leaf"}]},
            "leaf": {"type": "string"},
            "lost": {"$ref": "#/nowhere"}
        });
        assert_eq!(named(&root), ["self", "a", "b", "c"]);
    }

    /// Compares with the definition: a node that is reachable from itself.
    #[test]
    fn random_graphs_have_the_cycles_that_a_plain_search_finds() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..300 {
            let count = random.usize(1..9);
            let edges: Vec<Vec<usize>> = (0..count)
                .map(|_| (0..random.usize(0..3)).map(|_| random.usize(0..count)).collect())
                .collect();
            let schema = |edges: &Vec<usize>| {
                let branches = edges.iter().map(|to| json!({"$ref": format!("#/s{to}")}));
                json!({"anyOf": branches.collect::<Vec<_>>()})
            };
            let root: Map<String, Value> =
                edges.iter().enumerate().map(|(from, edges)| (format!("s{from}"), schema(edges))).collect();
            let is_cyclic = |start: usize| {
                let (mut seen, mut pending) = (HashSet::new(), edges[start].clone());
                while let Some(at) = pending.pop() {
                    if seen.insert(at) {
                        pending.extend(&edges[at]);
                    }
                }
                seen.contains(&start)
            };
            let expected: Vec<String> =
                (0..count).filter(|at| is_cyclic(*at)).map(|at| format!("s{at}")).collect();
            assert_eq!(named(&Value::Object(root.clone())), expected, "{}", Value::Object(root));
        }
    }
}
