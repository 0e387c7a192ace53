//! Limits on the cost of a schema.
//!
//! References make a schema a graph, and a validator follows every path through it. A schema of one kilobyte can have
//! more paths than a program can follow in a year. So the number of subschemas that apply to each value is limited
//! ([`BoundedSchema::new`]). How many subschemas the whole schema has does not matter: those of Vega-Lite are 42 million,
//! of which at most 40 apply to one value.
//!
//! Two properties of `jsonschema` 0.60 make this a limit for the validation of a whole instance: each subschema is compiled
//! once, and a validator remembers for containers whether a schema accepts them that a reference inside of it leads to
//! (`PendingSchemaNode::is_valid`). For a recursive schema of more kinds, and to describe errors, the paths through the
//! instance are counted ([`Paths::of_instance`]).

mod graph;
mod paths;
mod size;

use std::ops::ControlFlow::{Break, Continue};

use serde_json::{Map, Value};

use graph::{Graph, length_of};
use paths::Paths;
use size::Sizes;

use super::walk::values_in;

/// Maximum number of subschemas that apply to the values on one path through an instance, each as often as references lead
/// to it.
const MAX_SUBSCHEMAS: usize = 100_000;

/// Maximum number of subschemas that apply to the same value, in total for each subschema as the first. Each is a step of
/// the compilation of unions with tags and of `unevaluatedProperties`. A schema may always have ten times its text.
const MAX_COMPILED: usize = 500_000;

/// Maximum nesting of subschemas and their targets. A validator uses its stack for each level.
const MAX_DEPTH: usize = 300;

/// Maximum nesting of subschemas of a recursive schema for the levels of a value. They need less of the stack than errors.
const MAX_RECURSION: usize = 1_500;

/// Maximum number of steps for the validation of one value.
const MAX_STEPS: usize = 10_000_000;

/// Maximum number of steps to describe why a value is invalid. Each takes a hundred times as long.
const MAX_ERROR_STEPS: usize = 500_000;

/// Number of listed values, such as those of an `enum`, that cost as much as a subschema.
const LISTED: usize = 32;

/// Number of bytes that a pattern matches in one step.
const MATCHED: usize = 16;

/// The reason why a schema is rejected.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum CostError {
    /// It has too many subschemas.
    #[error("its references expand to more than {MAX_SUBSCHEMAS} subschemas for one value")]
    Large,
    /// It is nested too deeply.
    #[error("its subschemas and references are nested more than {MAX_DEPTH} levels deep")]
    Deep,
    /// It contains itself for the same value.
    #[error("its references lead back to the same subschema for the same value")]
    Endless,
    /// It refers to another document.
    #[error("unresolved reference `{0}`")]
    Unresolved(String),
}

/// A schema that a validator can process in limited time.
#[derive(Debug)]
pub(super) struct BoundedSchema {
    schema: Value,
    /// Maximum number of subschemas that apply to one value.
    size: usize,
    /// Maximum nesting of subschemas for one level of a value.
    height: usize,
    is_recursive: bool,
}

impl BoundedSchema {
    /// Checks the size of `schema`.
    ///
    /// # Errors
    /// If it is too large, or refers to another document.
    pub(super) fn new(schema: &Value) -> Result<Self, CostError> {
        let graph = Graph::of(schema);
        let mut sizes = Sizes::new(&graph);
        let measured = match sizes.measure(schema, 1) {
            Continue(measured) => measured,
            Break(error) => return Err(error),
        };
        let mut paths = Paths::new(&graph, MAX_COMPILED.max(10 * graph.values));
        let mut most = 1;
        for value in values_in(schema).filter(|value| value.is_object()) {
            most = most.max(paths.of_one_value(value)?);
        }
        let size = if paths.has_cycle { measured.size.saturating_mul(most) } else { measured.size };
        if !sizes.is_recursive && size > MAX_SUBSCHEMAS.max(graph.values) {
            return Err(CostError::Large);
        }
        let (height, is_recursive) = (paths.height + 1, sizes.is_recursive);
        Ok(Self { schema: schema.clone(), size, height, is_recursive })
    }

    /// Returns the schema.
    pub(super) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns whether a validator needs a limited number of steps, and a limited stack, for `value`.
    pub(super) fn allows(&self, value: &Value) -> bool {
        let is_flat = || !self.is_recursive || self.height.saturating_mul(depth_of(value)) <= MAX_RECURSION;
        let is_small = self.size.saturating_mul(size_of(value)) <= MAX_STEPS;
        is_small && is_flat() || self.is_recursive && self.has_few_paths(MAX_STEPS, value)
    }

    /// Returns whether a validator needs a limited number of steps to describe why `value` is invalid.
    pub(super) fn allows_errors(&self, value: &Value) -> bool {
        let is_small = self.size.saturating_mul(size_of(value)) <= MAX_ERROR_STEPS;
        is_small && !self.is_recursive || self.has_few_paths(MAX_ERROR_STEPS, value)
    }

    fn has_few_paths(&self, steps: usize, value: &Value) -> bool {
        let graph = Graph::of(&self.schema);
        Paths::new(&graph, steps).of_instance(&self.schema, value).is_continue()
    }
}

/// Describes why `schema` is too large to be used, if it is.
pub(super) fn excess(schema: &Value) -> Option<CostError> {
    BoundedSchema::new(schema)
        .err()
        .filter(|error| !matches!(error, CostError::Unresolved(_) | CostError::Endless))
}

/// Returns the cost of the lists of a schema.
fn cost_of_lists(members: &Map<String, Value>) -> usize {
    (length_of(members, "enum") + length_of(members, "required")) / LISTED
}

/// Returns how often a validator visits the subschemas that apply to the same value: again to find the members and items that
/// they evaluate.
fn visits_of_same(members: &Map<String, Value>) -> usize {
    let searches = ["unevaluatedProperties", "unevaluatedItems"];
    1 + searches.iter().filter(|keyword| members.contains_key(**keyword)).count()
}

/// Returns the number of values in `value`. A long text counts as several values.
pub(super) fn size_of(value: &Value) -> usize {
    let size = |value: &Value| match value {
        Value::String(text) => 1 + text.len() / MATCHED,
        Value::Object(members) => 1 + members.keys().map(|name| name.len() / MATCHED).sum::<usize>(),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    };
    values_in(value).map(size).sum()
}

/// Returns the nesting of a value, 1 for a scalar.
fn depth_of(value: &Value) -> usize {
    let mut deepest = 0;
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Object(members) => pending.extend(members.values().map(|member| (member, depth + 1))),
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests;
