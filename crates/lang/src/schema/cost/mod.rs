//! Limits on the cost of a schema.
//!
//! References make a schema a graph, and a validator follows every path through it. A schema of one kilobyte can have
//! more paths than a program can follow in a year. Two limits prevent this:
//!
//! - [`BoundedSchema::new`] counts the steps of the compilation ([`compilation`]) and the subschemas that apply to one
//!   value, and rejects a schema with too many of them. How many subschemas the whole schema has does not matter: those
//!   of Vega-Lite are 42 million, of which at most 40 apply to one value.
//! - [`BoundedSchema::allows`] counts the steps of a validator for one value, and rejects the value if there are too
//!   many.
//!
//! Both count at least what a validator does: it may stop earlier. It remembers whether a container is valid for a
//! recursive schema, which is counted where it is certain ([`Expansion::entries`]), and it reads the tag of a union
//! first ([`union`]). When it describes errors, it does neither.

mod compilation;
mod dry_run;
mod expansion;
mod failure;
mod graph;
mod union;

use std::ops::ControlFlow::{Break, Continue};

use serde_json::{Map, Value};

use dry_run::{DryRun, Purpose};
use expansion::Expansion;
pub(super) use failure::Failure;
use failure::Search;
use graph::{Graph, length_of};

use super::walk::values_in;

/// Maximum number of subschemas that apply to one value, each as often as references lead to it. A schema may always have
/// as many as its text.
pub(super) const MAX_SUBSCHEMAS: usize = 100_000;

/// Maximum nesting of subschemas and their targets. A validator uses its stack for each level.
const MAX_DEPTH: usize = 300;

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
    /// It refers to another document.
    #[error("unresolved reference `{0}`")]
    Unresolved(String),
}

/// A schema that a validator can process in limited time.
#[derive(Debug)]
pub(super) struct BoundedSchema {
    schema: Value,
    /// Number of subschemas; `None` if the schema is recursive.
    size: Option<usize>,
}

impl BoundedSchema {
    /// Checks the size of `schema`.
    ///
    /// # Errors
    /// If it is too large, or refers to another document.
    pub(super) fn new(schema: &Value) -> Result<Self, CostError> {
        let graph = Graph::of(schema);
        let mut expansion = Expansion::new(&graph);
        let size = match expansion.measure(schema, 1) {
            Continue(measured) => measured.size,
            Break(error) => return Err(error),
        };
        compilation::check(&graph, schema)?;
        let is_recursive = expansion.is_recursive;
        Ok(Self { schema: schema.clone(), size: (!is_recursive).then_some(size) })
    }

    /// Returns the schema.
    pub(super) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns whether a validator needs at most [`MAX_STEPS`] for `value`.
    pub(super) fn allows(&self, value: &Value) -> bool {
        self.is_within(MAX_STEPS, true, value)
    }

    /// Returns whether a validator needs at most [`MAX_ERROR_STEPS`] to describe why `value` is invalid.
    pub(super) fn allows_errors(&self, value: &Value) -> bool {
        self.is_within(MAX_ERROR_STEPS, false, value)
    }

    /// Finds a part of an invalid value that is invalid. Takes at most [`MAX_STEPS`].
    pub(super) fn first_failure(&self, value: &Value) -> Failure {
        let graph = Graph::of(&self.schema);
        let mut expansion = Expansion::new(&graph);
        // Its size was checked before.
        let _ = expansion.measure(&self.schema, 1);
        Search::new(&graph, expansion.entries, &self.schema, MAX_STEPS).find(&self.schema, value)
    }

    /// `remembers`: the validator remembers results and reads tags, which it does not if it describes errors.
    fn is_within(&self, steps: usize, remembers: bool, value: &Value) -> bool {
        if self.size.is_some_and(|size| size.saturating_mul(size_of(value)) <= steps) {
            return true;
        }
        let graph = Graph::of(&self.schema);
        let mut expansion = Expansion::new(&graph);
        // Its size was checked before.
        let _ = expansion.measure(&self.schema, 1);
        let mut run = DryRun::new(&graph, steps, remembers.then_some(expansion.entries));
        run.visit(&self.schema, value, Purpose::Validate).is_continue()
    }
}

/// Describes why `schema` is too large to be used, if it is.
pub(super) fn excess(schema: &Value) -> Option<CostError> {
    BoundedSchema::new(schema).err().filter(|error| !matches!(error, CostError::Unresolved(_)))
}

/// Returns the cost of the lists of a schema.
fn cost_of_lists(members: &Map<String, Value>) -> usize {
    (length_of(members, "enum") + length_of(members, "required")) / LISTED
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

#[cfg(test)]
mod tests;
