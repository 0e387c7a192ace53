//! Limits on the cost of a schema.
//!
//! References make a schema a graph, and a validator follows every path through it. A schema of one kilobyte can have
//! more paths than a program can follow in a year. Two limits prevent this:
//!
//! - [`BoundedSchema::new`] replaces each reference by its target, counts the subschemas of the result without building
//!   it, and rejects a schema with too many of them.
//! - [`BoundedSchema::allows`] counts the steps of a validator for one value, and rejects the value if there are too
//!   many. A recursive schema has no size, so its cost depends on the value.
//!
//! Both count at least what a validator does: it may stop earlier. It remembers whether a container is valid for a
//! recursive schema, which is counted where it is certain ([`Expansion::entries`]).

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow::{self, Break, Continue};

use serde_json::{Map, Value};
use url::Url;

use super::pointer::of_reference;

/// Maximum number of subschemas of a schema whose references are replaced by their targets. A schema without repeated
/// references may always have as many as its text.
pub(super) const MAX_SUBSCHEMAS: usize = 100_000;

/// Maximum nesting of subschemas and their targets. A validator uses its stack for each level.
const MAX_DEPTH: usize = 300;

/// Maximum number of steps for the validation of one value.
const MAX_STEPS: usize = 10_000_000;

/// Maximum number of steps to describe why a value is invalid. Each takes a hundred times as long.
const MAX_ERROR_STEPS: usize = 500_000;

/// Number of subschemas that cost as much as the compilation of a pattern.
const PATTERN: usize = 50;

/// Number of listed values, such as those of an `enum`, that cost as much as a subschema.
const LISTED: usize = 32;

/// Minimum number of visits to recursive schemas after which a validator remembers the result of a visit.
const MIN_REMEMBERED: usize = 16;

/// Number of bytes that a pattern matches in one step.
const MATCHED: usize = 16;

/// The reason why a schema is rejected.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum CostError {
    /// It has too many subschemas.
    #[error("its references expand to more than {MAX_SUBSCHEMAS} subschemas")]
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
        if size > MAX_SUBSCHEMAS.max(graph.values) {
            return Err(CostError::Large);
        }
        let is_recursive = expansion.is_recursive;
        Ok(Self { schema: schema.clone(), size: (!is_recursive).then_some(size) })
    }

    /// Returns whether a validator needs at most [`MAX_STEPS`] for `value`.
    pub(super) fn allows(&self, value: &Value) -> bool {
        self.is_within(MAX_STEPS, true, value)
    }

    /// Returns whether a validator needs at most [`MAX_ERROR_STEPS`] to describe why `value` is invalid.
    pub(super) fn allows_errors(&self, value: &Value) -> bool {
        self.is_within(MAX_ERROR_STEPS, false, value)
    }

    /// `remembers`: the validator remembers results, which it does not if it describes errors.
    fn is_within(&self, steps: usize, remembers: bool, value: &Value) -> bool {
        if self.size.is_some_and(|size| size.saturating_mul(size_of(value)) <= steps) {
            return true;
        }
        let graph = Graph::of(&self.schema);
        let mut expansion = Expansion::new(&graph);
        // Its size was checked before.
        let _ = expansion.measure(&self.schema, 1);
        let entries = if remembers { expansion.entries } else { HashSet::new() };
        let (path, remembered) = (Vec::new(), HashMap::new());
        let mut run = DryRun { graph: &graph, entries, steps_left: steps, path, remembered, visits: 0 };
        run.visit(&self.schema, value, Purpose::Validate).is_continue()
    }
}

/// Describes why `schema` is too large to be used, if it is.
pub(super) fn excess(schema: &Value) -> Option<CostError> {
    BoundedSchema::new(schema).err().filter(|error| !matches!(error, CostError::Unresolved(_)))
}

/// The values to which a subschema applies, relative to the value of the schema that contains it.
enum Scope<'v> {
    /// The same value.
    Same,
    /// The member with this name.
    Member(&'v str),
    /// All members.
    Members,
    /// All members that are not in `properties`.
    OtherMembers,
    /// The names of all members.
    Names,
    /// The item at this index.
    Item(usize),
    /// All items from this index.
    ItemsFrom(usize),
}

/// A schema and the targets of its references.
struct Graph<'v> {
    /// The targets of the references in a schema, by the address of the schema.
    targets: HashMap<*const Value, Vec<&'v Value>>,
    /// The reference of a schema to another document, by the address of the schema. The object may also be data.
    unresolved: HashMap<*const Value, &'v str>,
    /// Number of values in the text of the schema.
    values: usize,
}

/// A schema with its own URI: the whole schema, and each subschema with an `$id`.
struct Resource<'v> {
    uri: Option<Url>,
    schema: &'v Value,
}

impl<'v> Graph<'v> {
    fn of(root: &'v Value) -> Self {
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
    fn each<B>(
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
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    schemas.iter().try_for_each(|schema| visit(Scope::Same, schema))?;
                }
                ("not" | "if" | "then" | "else", schema) => visit(Scope::Same, schema)?,
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    schemas.values().try_for_each(|schema| visit(Scope::Same, schema))?;
                }
                ("properties", Value::Object(named)) => {
                    named.iter().try_for_each(|(name, schema)| visit(Scope::Member(name), schema))?;
                }
                ("patternProperties", Value::Object(named)) => {
                    named.values().try_for_each(|schema| visit(Scope::Members, schema))?;
                }
                ("additionalProperties" | "unevaluatedProperties", schema) => {
                    visit(Scope::OtherMembers, schema)?;
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
fn length_of(members: &Map<String, Value>, keyword: &str) -> usize {
    members.get(keyword).and_then(Value::as_array).map_or(0, Vec::len)
}

/// Returns the cost of the lists of a schema.
fn cost_of_lists(members: &Map<String, Value>) -> usize {
    (length_of(members, "enum") + length_of(members, "required")) / LISTED
}

/// Measures schemas. Each is measured once, so the time is linear in the size of the text.
///
/// Schemas that refer to each other are a component, which is found with Tarjan's algorithm. It counts once: how often a
/// validator repeats it depends on the value.
struct Expansion<'g, 'v> {
    graph: &'g Graph<'v>,
    /// The visited schemas, by address.
    visited: HashMap<*const Value, Visited>,
    /// The visited schemas that may still belong to a component with an earlier one.
    open: Vec<*const Value>,
    is_recursive: bool,
    /// The first schemas of the components that are reached from outside only through this schema. A validator stops
    /// at a reference to it from inside, and remembers the result.
    entries: HashSet<*const Value>,
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
struct Measured {
    /// Number of subschemas, 0 for a schema in an open component.
    size: usize,
    height: usize,
    /// The number of the earliest open schema that this one leads to.
    earliest: Option<usize>,
}

impl<'g, 'v> Expansion<'g, 'v> {
    fn new(graph: &'g Graph<'v>) -> Self {
        let (visited, open, entries) = (HashMap::new(), Vec::new(), HashSet::new());
        Self { graph, visited, open, is_recursive: false, entries }
    }

    fn measure(&mut self, schema: &'v Value, depth: usize) -> ControlFlow<CostError, Measured> {
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

/// Returns the number of values in `value`. A long text counts as several values.
fn size_of(value: &Value) -> usize {
    let mut size = 0;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        size += 1;
        match value {
            Value::String(text) => size += text.len() / MATCHED,
            Value::Object(members) => {
                size += members.keys().map(|name| name.len() / MATCHED).sum::<usize>();
                pending.extend(members.values());
            }
            Value::Array(items) => pending.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    size
}

/// The reason why a validator visits a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Validate,
    /// To find the members or items that a schema evaluates, for `unevaluatedProperties` and `unevaluatedItems`.
    FindEvaluated,
}

/// Stands for the name of a member.
const NAME: &Value = &Value::Null;

/// Counts the steps of a validator.
struct DryRun<'g, 'v> {
    graph: &'g Graph<'v>,
    /// The schemas whose results are remembered for containers ([`Expansion::entries`]).
    entries: HashSet<*const Value>,
    steps_left: usize,
    /// The visits from the root to the current one: schema, value and purpose.
    path: Vec<(*const Value, *const Value, Purpose)>,
    /// The steps of a repeated visit, and the number of visits in it, by schema and value.
    remembered: HashMap<(*const Value, *const Value), (usize, usize)>,
    /// Number of visits whose results may be remembered.
    visits: usize,
}

impl<'v> DryRun<'_, 'v> {
    /// Visits a schema for a value. Breaks at a limit.
    fn visit(&mut self, schema: &'v Value, value: &Value, purpose: Purpose) -> ControlFlow<()> {
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
        graph.each(schema, members, |scope, inner| match (scope, value) {
            (Scope::Same, _) => {
                self.visit(inner, value, Purpose::Validate)?;
                if purpose == Purpose::FindEvaluated {
                    self.visit(inner, value, purpose)
                } else {
                    Continue(())
                }
            }
            _ if purpose == Purpose::FindEvaluated => Continue(()),
            (Scope::Member(name), Value::Object(named)) => {
                named.get(name).map_or(Continue(()), |member| self.visit(inner, member, purpose))
            }
            (Scope::Members, Value::Object(named)) => {
                named.values().try_for_each(|member| self.visit(inner, member, purpose))
            }
            (Scope::OtherMembers, Value::Object(named)) => {
                let properties = members.get("properties").and_then(Value::as_object);
                let is_other =
                    |name: &str| properties.is_none_or(|properties| !properties.contains_key(name));
                let others = named.iter().filter(|(name, _)| is_other(name));
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

#[cfg(test)]
mod tests;
