//! The size of a schema whose references are replaced by their targets.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow::{self, Break, Continue};

use serde_json::{Map, Value};

use super::graph::Graph;
use super::{CostError, MAX_DEPTH, cost_of_lists};

/// Number of subschemas that cost as much as a pattern.
const PATTERN: usize = 50;

/// Measures schemas. Each is measured once, so the time is linear in the size of the text.
///
/// Schemas that refer to each other are a component, which is found with Tarjan's algorithm. It counts once: how often a
/// validator repeats it depends on the value.
pub(super) struct Expansion<'g, 'v> {
    graph: &'g Graph<'v>,
    /// The visited schemas, by address.
    visited: HashMap<*const Value, Visited>,
    /// The visited schemas that may still belong to a component with an earlier one.
    open: Vec<*const Value>,
    pub(super) is_recursive: bool,
    /// The first schemas of the components that are reached from outside only through this schema. A validator stops
    /// at a reference to it from inside, and remembers the result.
    pub(super) entries: HashSet<*const Value>,
}

struct Visited {
    number: usize,
    is_open: bool,
    /// Number of subschemas: of the component, or of this schema without the component while it is open.
    size: usize,
    height: usize,
    /// The first visited schema of the component.
    entry: *const Value,
}

/// The result of a visit.
pub(super) struct Measured {
    /// Number of subschemas, 0 for a schema in an open component.
    pub(super) size: usize,
    height: usize,
    /// The number of the earliest open schema that this one leads to.
    earliest: Option<usize>,
}

impl<'g, 'v> Expansion<'g, 'v> {
    pub(super) fn new(graph: &'g Graph<'v>) -> Self {
        let (visited, open, entries) = (HashMap::new(), Vec::new(), HashSet::new());
        Self { graph, visited, open, is_recursive: false, entries }
    }

    pub(super) fn measure(&mut self, schema: &'v Value, depth: usize) -> ControlFlow<CostError, Measured> {
        let Value::Object(members) = schema else {
            return Continue(Measured { size: 1, height: 1, earliest: None });
        };
        let address = std::ptr::from_ref(schema);
        let known = self.visited.get(&address);
        if depth + known.map_or(1, |known| known.height) > MAX_DEPTH {
            return Break(CostError::Deep);
        }
        match known {
            Some(known) if known.is_open => {
                self.is_recursive = true;
                return Continue(Measured { size: 0, height: 1, earliest: Some(known.number) });
            }
            Some(known) => {
                if known.entry != address {
                    self.entries.remove(&known.entry);
                }
                return Continue(Measured { size: known.size, height: known.height, earliest: None });
            }
            None => {}
        }
        if let Some(reference) = self.graph.unresolved.get(&address) {
            return Break(CostError::Unresolved((*reference).to_owned()));
        }
        let (number, start) = (self.visited.len(), self.open.len());
        let entry = address;
        self.visited.insert(address, Visited { number, is_open: true, size: 0, height: 1, entry });
        self.open.push(address);
        let names = members.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        let patterns = names + usize::from(members.contains_key("pattern"));
        let (mut size, mut height) = (1 + cost_of_lists(members) + PATTERN * patterns, 0);
        let (mut earliest, mut refers_to_itself) = (number, false);
        let graph = self.graph;
        graph.each(schema, members, |_, inner| {
            let inner = self.measure(inner, depth + 1)?;
            size = size.saturating_add(inner.size);
            height = height.max(inner.height);
            refers_to_itself |= inner.earliest == Some(number);
            earliest = earliest.min(inner.earliest.unwrap_or(number));
            Continue(())
        })?;
        height += 1;
        if earliest < number {
            self.visited.insert(address, Visited { number, is_open: true, size, height, entry });
            return Continue(Measured { size: 0, height, earliest: Some(earliest) });
        }
        let component = self.open.split_off(start);
        if refers_to_itself {
            self.entries.insert(address);
        }
        let sizes = component.iter().filter_map(|address| self.visited.get(address)).map(|known| known.size);
        size = sizes.fold(size, usize::saturating_add);
        for address in component {
            let close = |known: &mut Visited| (known.is_open, known.size, known.entry) = (false, size, entry);
            self.visited.entry(address).and_modify(close);
        }
        self.visited.insert(address, Visited { number, is_open: false, size, height, entry });
        Continue(Measured { size, height, earliest: None })
    }
}
