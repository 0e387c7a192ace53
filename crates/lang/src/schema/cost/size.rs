//! The number of subschemas that apply to the values on one path through an instance.

use std::collections::HashMap;
use std::ops::ControlFlow::{self, Break, Continue};

use serde_json::{Map, Value};

use super::graph::{Graph, Scope};
use super::{CostError, MAX_DEPTH, cost_of_lists, visits_of_same};

/// Number of subschemas that cost as much as a pattern.
const PATTERN: usize = 50;

/// Measures schemas. Each is measured once, so the time is linear in the size of the text.
///
/// A reference to a schema that contains it counts as one subschema: a validator remembers whether that schema accepts a
/// container, and so visits it once for each. It remembers nothing of other references.
pub(super) struct Sizes<'g, 'v> {
    graph: &'g Graph<'v>,
    /// The visited schemas, by address; `None` while a visit is in progress.
    visited: HashMap<*const Value, Option<Measured>>,
    pub(super) is_recursive: bool,
}

/// The result of a visit.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    /// Number of subschemas.
    pub(super) size: usize,
    height: usize,
}

impl<'g, 'v> Sizes<'g, 'v> {
    pub(super) fn new(graph: &'g Graph<'v>) -> Self {
        Self { graph, visited: HashMap::new(), is_recursive: false }
    }

    pub(super) fn measure(&mut self, schema: &'v Value, depth: usize) -> ControlFlow<CostError, Measured> {
        let Value::Object(members) = schema else { return Continue(Measured { size: 1, height: 1 }) };
        let address = std::ptr::from_ref(schema);
        let known = self.visited.get(&address).copied();
        self.is_recursive |= matches!(known, Some(None));
        let known = known.map(|measured| measured.unwrap_or(Measured { size: 1, height: 1 }));
        if depth + known.map_or(1, |known| known.height) > MAX_DEPTH {
            return Break(CostError::Deep);
        }
        if let Some(known) = known {
            return Continue(known);
        }
        if let Some(reference) = self.graph.unresolved.get(&address) {
            return Break(CostError::Unresolved((*reference).to_owned()));
        }
        self.visited.insert(address, None);
        let names = members.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        let patterns = names + usize::from(members.contains_key("pattern"));
        let (mut size, mut height) = (1 + cost_of_lists(members) + PATTERN * patterns, 0);
        // Different members, or items, are on different paths.
        let mut largest_part = 0;
        let visits = visits_of_same(members);
        let graph = self.graph;
        graph.each(schema, members, |scope, inner| {
            let inner = self.measure(inner, depth + 1)?;
            match scope {
                Scope::Member(_) | Scope::Item(_) => largest_part = largest_part.max(inner.size),
                Scope::Same | Scope::Choice => size = size.saturating_add(inner.size.saturating_mul(visits)),
                Scope::Members | Scope::Names | Scope::ItemsFrom(_) => size = size.saturating_add(inner.size),
            }
            height = height.max(inner.height);
            Continue(())
        })?;
        let measured = Measured { size: size.saturating_add(largest_part), height: height + 1 };
        self.visited.insert(address, Some(measured));
        Continue(measured)
    }
}
