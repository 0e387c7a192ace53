//! The steps of a validator for one value.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow::{self, Break, Continue};

use serde_json::{Map, Value};

use super::graph::{Graph, Scope};
use super::union::{Tagged, members_before_wrong_tag};
use super::{MATCHED, MAX_DEPTH, cost_of_lists};

/// Minimum number of visits to recursive schemas after which a validator remembers the result of a visit.
const MIN_REMEMBERED: usize = 16;

/// The reason why a validator visits a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Validate,
    /// To find the members or items that a schema evaluates, for `unevaluatedProperties` and `unevaluatedItems`.
    FindEvaluated,
}

/// Stands for the name of a member.
const NAME: &Value = &Value::Null;

/// Counts the steps of a validator.
pub(super) struct DryRun<'g, 'v> {
    graph: &'g Graph<'v>,
    /// The schemas whose results are remembered for containers ([`super::Expansion::entries`]).
    entries: HashSet<*const Value>,
    /// Whether the validator reads the tags of unions first.
    reads_tags: bool,
    /// The unions with tags, by the address of their first branch.
    unions: HashMap<*const Value, Option<Tagged<'v>>>,
    steps_left: usize,
    /// The visits from the root to the current one: schema, value and purpose.
    path: Vec<(*const Value, *const Value, Purpose)>,
    /// The steps of a repeated visit, and the number of visits in it, by schema and value.
    remembered: HashMap<(*const Value, *const Value), (usize, usize)>,
    /// Number of visits whose results may be remembered.
    visits: usize,
}

impl<'g, 'v> DryRun<'g, 'v> {
    /// `entries`: the schemas whose results are remembered; `None` if the validator describes errors.
    pub(super) fn new(graph: &'g Graph<'v>, steps: usize, entries: Option<HashSet<*const Value>>) -> Self {
        Self {
            graph,
            reads_tags: entries.is_some(),
            entries: entries.unwrap_or_default(),
            unions: HashMap::new(),
            steps_left: steps,
            path: Vec::new(),
            remembered: HashMap::new(),
            visits: 0,
        }
    }

    /// Visits a schema for a value. Breaks at a limit.
    pub(super) fn visit(&mut self, schema: &'v Value, value: &Value, purpose: Purpose) -> ControlFlow<()> {
        let Value::Object(members) = schema else { return self.take(1) };
        let visit = (std::ptr::from_ref(schema), std::ptr::from_ref(value), purpose);
        let mut of_value = self.path.iter().rev().take_while(|(_, on, _)| *on == visit.1);
        // A validator ends such a cycle, too.
        if of_value.any(|known| *known == visit) {
            return Continue(());
        }
        if self.path.len() == MAX_DEPTH {
            return Break(());
        }
        if !self.is_remembered(visit) || !(value.is_object() || value.is_array()) {
            return self.visit_now(schema, members, value, purpose);
        }
        let key = (visit.0, visit.1);
        if let Some((steps, visits)) = self.remembered.get(&key).copied() {
            self.visits += visits;
            return self.take(steps);
        }
        let (steps_before, visits_before) = (self.steps_left, self.visits);
        self.visits += 1;
        self.visit_now(schema, members, value, purpose)?;
        let (steps, visits) = (steps_before - self.steps_left, self.visits - visits_before);
        self.remembered.insert(key, if visits < MIN_REMEMBERED { (steps, visits) } else { (1, 0) });
        Continue(())
    }

    /// Whether a validator may remember the result of this visit: of a reference from inside a component to its entry.
    fn is_remembered(&self, (schema, _, purpose): (*const Value, *const Value, Purpose)) -> bool {
        purpose == Purpose::Validate
            && self.entries.contains(&schema)
            && self.path.iter().any(|(visited, ..)| *visited == schema)
    }

    fn visit_now(
        &mut self,
        schema: &'v Value,
        members: &'v Map<String, Value>,
        value: &Value,
        purpose: Purpose,
    ) -> ControlFlow<()> {
        let visit = (std::ptr::from_ref(schema), std::ptr::from_ref(value), purpose);
        self.take(1 + cost_of_lists(members) + cost_of_value(members, value))?;
        self.path.push(visit);
        let graph = self.graph;
        let reads_tags = self.reads_tags && purpose == Purpose::Validate;
        let object = value.as_object().filter(|_| reads_tags);
        let before = object.and_then(|object| members_before_wrong_tag(members, object));
        let is_visited = |name: &str| before.as_ref().is_none_or(|before| before.contains(name));
        let skipped = object.map(|object| self.branches_with_other_tags(members, object)).unwrap_or_default();
        graph.each(schema, members, |scope, inner| match (scope, value) {
            // The validator visits the members first.
            (Scope::Same, _) if before.is_some() || skipped.contains(&std::ptr::from_ref(inner)) => {
                Continue(())
            }
            (Scope::Same, _) => {
                self.visit(inner, value, Purpose::Validate)?;
                if purpose == Purpose::FindEvaluated {
                    self.visit(inner, value, purpose)
                } else {
                    Continue(())
                }
            }
            _ if purpose == Purpose::FindEvaluated => Continue(()),
            (Scope::Member(name), Value::Object(named)) => named
                .get(name)
                .filter(|_| is_visited(name))
                .map_or(Continue(()), |member| self.visit(inner, member, purpose)),
            (Scope::Members, Value::Object(named)) => {
                named.values().try_for_each(|member| self.visit(inner, member, purpose))
            }
            (Scope::OtherMembers, Value::Object(named)) => {
                let properties = members.get("properties").and_then(Value::as_object);
                let is_other =
                    |name: &str| properties.is_none_or(|properties| !properties.contains_key(name));
                let others = named.iter().filter(|(name, _)| is_other(name) && is_visited(name));
                others.map(|(_, member)| member).try_for_each(|member| self.visit(inner, member, purpose))
            }
            (Scope::Names, Value::Object(named)) => named.keys().try_for_each(|name| {
                self.take(name.len() / MATCHED)?;
                self.visit(inner, NAME, purpose)
            }),
            (Scope::Item(index), Value::Array(items)) => {
                items.get(index).map_or(Continue(()), |item| self.visit(inner, item, purpose))
            }
            (Scope::ItemsFrom(start), Value::Array(items)) => {
                items.iter().skip(start).try_for_each(|item| self.visit(inner, item, purpose))
            }
            _ => Continue(()),
        })?;
        let needs_evaluated = ["unevaluatedProperties", "unevaluatedItems"];
        if purpose == Purpose::Validate
            && needs_evaluated.iter().any(|keyword| members.contains_key(*keyword))
        {
            self.visit(schema, value, Purpose::FindEvaluated)?;
        }
        self.path.pop();
        Continue(())
    }

    /// Returns the branches of unions whose tag differs from that of the value, so that the validator does not enter them.
    fn branches_with_other_tags(
        &mut self,
        members: &'v Map<String, Value>,
        value: &Map<String, Value>,
    ) -> HashSet<*const Value> {
        let mut skipped = HashSet::new();
        for branches in ["anyOf", "oneOf"].iter().filter_map(|keyword| members.get(*keyword)?.as_array()) {
            let graph = self.graph;
            let union = self.unions.entry(branches.as_ptr()).or_insert_with(|| Tagged::of(graph, branches));
            if let Some(union) = union {
                let entered = union.branch_for(value);
                let others = branches.iter().map(std::ptr::from_ref);
                skipped.extend(others.filter(|branch| Some(*branch) != entered));
            }
        }
        skipped
    }

    /// Returns the number of steps that are left.
    pub(super) fn steps_left(&self) -> usize {
        self.steps_left
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

/// Returns the steps that a schema needs for its own keywords on a large value.
fn cost_of_value(members: &Map<String, Value>, value: &Value) -> usize {
    match value {
        Value::String(text) if members.contains_key("pattern") => text.len() / MATCHED,
        Value::Array(items) if members.contains_key("uniqueItems") => items.len(),
        _ => 0,
    }
}
