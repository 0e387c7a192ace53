//! The paths through a schema: those that apply to one value, and those that a validator follows for an instance.

use std::ops::ControlFlow::{self, Break, Continue};

use serde_json::{Map, Value};

use super::graph::{Graph, Scope};
use super::{CostError, MATCHED, MAX_DEPTH, cost_of_lists, visits_of_same};

/// Follows paths until a number of steps.
pub(super) struct Paths<'g, 'v> {
    graph: &'g Graph<'v>,
    steps_left: usize,
    /// Whether a path leads back to a subschema of the same value.
    pub(super) has_cycle: bool,
    /// Maximum number of subschemas in each other that apply to one value.
    pub(super) height: usize,
    /// The visits from the root to the current one: schema and value.
    open: Vec<(*const Value, *const Value)>,
}

impl<'g, 'v> Paths<'g, 'v> {
    pub(super) fn new(graph: &'g Graph<'v>, steps: usize) -> Self {
        Self { graph, steps_left: steps, has_cycle: false, height: 0, open: Vec::new() }
    }

    /// Returns the number of subschemas that apply to the same value as `schema`, each as often as there are paths to it.
    /// A path ends at a cycle.
    ///
    /// # Errors
    /// At the limit, and if a cycle has no end for any value.
    pub(super) fn of_one_value(&mut self, schema: &'v Value) -> Result<usize, CostError> {
        let before = self.steps_left;
        match self.follow(schema, 0) {
            Continue(()) => Ok(before - self.steps_left),
            Break(error) => Err(error),
        }
    }

    /// `last_choice`: the number of open visits at the last choice.
    fn follow(&mut self, schema: &'v Value, last_choice: usize) -> ControlFlow<CostError> {
        self.take(1).map_break(|()| CostError::Large)?;
        let Value::Object(members) = schema else { return Continue(()) };
        let visit = (std::ptr::from_ref(schema), std::ptr::null());
        if let Some(start) = self.open.iter().position(|open| *open == visit) {
            self.has_cycle = true;
            return if start < last_choice { Continue(()) } else { Break(CostError::Endless) };
        }
        // Deeper schemas are rejected if the schema uses them.
        if self.open.len() > MAX_DEPTH {
            return Continue(());
        }
        self.open.push(visit);
        self.height = self.height.max(self.open.len());
        let graph = self.graph;
        for _ in 0..visits_of_same(members) {
            graph.each(schema, members, |scope, inner| match scope {
                Scope::Same => self.follow(inner, last_choice),
                Scope::Choice => self.follow(inner, self.open.len()),
                _ => Continue(()),
            })?;
        }
        self.open.pop();
        Continue(())
    }

    /// Follows the subschemas that apply to `value` and its parts. Breaks at the limit.
    pub(super) fn of_instance(&mut self, schema: &'v Value, value: &Value) -> ControlFlow<()> {
        let Value::Object(members) = schema else { return self.take(1) };
        let visit = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if self.open.contains(&visit) {
            return Continue(());
        }
        if self.open.len() == MAX_DEPTH {
            return Break(());
        }
        self.take(1 + cost_of_lists(members) + cost_of_value(members, value))?;
        self.open.push(visit);
        let graph = self.graph;
        graph.each(schema, members, |scope, inner| match scope {
            Scope::Same | Scope::Choice => {
                (0..visits_of_same(members)).try_for_each(|_| self.of_instance(inner, value))
            }
            _ => parts_of(value, &scope).try_for_each(|part| self.of_instance(inner, part)),
        })?;
        self.open.pop();
        Continue(())
    }

    fn take(&mut self, steps: usize) -> ControlFlow<()> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Continue(())
            }
            None => Break(()),
        }
    }
}

/// Stands for the name of a member.
const NAME: &Value = &Value::Null;

/// Returns the members, names or items of `value` in `scope`.
fn parts_of<'i>(value: &'i Value, scope: &Scope<'_>) -> Box<dyn Iterator<Item = &'i Value> + 'i> {
    match (scope, value) {
        (Scope::Member(name), Value::Object(members)) => Box::new(members.get(*name).into_iter()),
        (Scope::Members, Value::Object(members)) => Box::new(members.values()),
        (Scope::Names, Value::Object(members)) => Box::new(members.keys().map(|_| NAME)),
        (Scope::Item(index), Value::Array(items)) => Box::new(items.get(*index).into_iter()),
        (Scope::ItemsFrom(start), Value::Array(items)) => Box::new(items.iter().skip(*start)),
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns the steps that a schema needs for its own keywords on a large value.
fn cost_of_value(members: &Map<String, Value>, value: &Value) -> usize {
    match value {
        Value::String(text) if members.contains_key("pattern") => text.len() / MATCHED,
        Value::Array(items) if members.contains_key("uniqueItems") => items.len(),
        _ => 0,
    }
}
