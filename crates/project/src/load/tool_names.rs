//! The names of tools: duplicates, and names that differ only in case or dashes.
//!
//! Tools are grouped by their names without case and dashes. What is reported about a tool depends on its group alone, so a
//! load after an edit compares only the groups of the edited tools.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::rules::{duplicate_definition, near_name};
use deftool_lang::spec::{Origin, Tool, ToolKind};
use deftool_lang::text::{Location, SourceId};

use super::model::Slot;
use super::specs::Specs;
use crate::model::Scope;
use crate::rules;

/// The scope, and the name without case and dashes.
pub(super) type GroupKey = (Scope, String);

/// The places of the tools of all files, by their names and in order.
#[derive(Default)]
pub(super) struct ToolNames {
    groups: HashMap<GroupKey, Vec<Slot>>,
    /// The findings of each group that has some.
    findings: HashMap<GroupKey, Vec<Diagnostic>>,
}

/// What follows for a tool from the others of its group.
#[derive(Clone, Copy, Default)]
pub(super) struct Standing {
    /// Whether another tool is used in place of it.
    pub(super) is_duplicate: bool,
    /// The name of an earlier tool with the same name, if Emacs can hold both.
    pub(super) shadowed_by: Option<Location>,
}

impl ToolNames {
    /// Returns the groups of the tools of a file.
    pub(super) fn keys(specs: &Specs, source: SourceId) -> impl Iterator<Item = GroupKey> {
        let scope = specs.scope_of(source);
        specs.tools_of(source).iter().map(move |loaded| (scope, folded(&loaded.tool.name.value)))
    }

    /// Adds the tools of a file.
    pub(super) fn add(&mut self, specs: &Specs, source: SourceId) {
        for (index, key) in Self::keys(specs, source).enumerate() {
            let slot = Slot { source, index };
            let group = self.groups.entry(key).or_default();
            group.insert(group.partition_point(|other| *other < slot), slot);
        }
    }

    /// Removes the tools of a file.
    pub(super) fn remove(&mut self, specs: &Specs, source: SourceId) {
        for key in Self::keys(specs, source).collect::<HashSet<_>>() {
            if let Entry::Occupied(mut group) = self.groups.entry(key) {
                group.get_mut().retain(|slot| slot.source != source);
                if group.get().is_empty() {
                    group.remove();
                }
            }
        }
    }

    /// Returns the groups with several tools.
    pub(super) fn shared(&self) -> HashSet<GroupKey> {
        let shared = self.groups.iter().filter(|(_, group)| group.len() > 1);
        shared.map(|(key, _)| key.clone()).collect()
    }

    /// Compares the tools of each of these groups with each other. Returns what follows for each of them.
    pub(super) fn compare(&mut self, specs: &Specs, keys: HashSet<GroupKey>) -> Vec<(Slot, Standing)> {
        let mut standings = Vec::new();
        for key in keys {
            self.findings.remove(&key);
            let group = self.groups.get(&key).into_iter().flatten();
            let tools = group.filter_map(|slot| Some((*slot, &*specs.tool(*slot)?.tool)));
            let (of_group, findings) = compare_group(specs, &tools.collect::<Vec<_>>());
            standings.extend(of_group);
            if !findings.is_empty() {
                self.findings.insert(key, findings);
            }
        }
        standings
    }

    /// Returns the findings of all groups.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.findings.values().flatten()
    }

    /// Returns whether a scope has a tool of this kind with this name.
    pub(super) fn contains(&self, specs: &Specs, scope: Scope, kind: ToolKind, name: &str) -> bool {
        let group = self.groups.get(&(scope, folded(name))).into_iter().flatten();
        let mut tools = group.filter_map(|slot| specs.tool(*slot));
        tools.any(|loaded| loaded.tool.kind == kind && loaded.tool.name.value == name)
    }
}

/// The first tool of a name is used, except in an Emacs Lisp file, which is evaluated in order: the later definition of a
/// name and category replaces the earlier one.
fn compare_group(specs: &Specs, group: &[(Slot, &Tool)]) -> (Vec<(Slot, Standing)>, Vec<Diagnostic>) {
    let mut standings: Vec<(Slot, Standing)> =
        group.iter().map(|(slot, _)| (*slot, Standing::default())).collect();
    let mut findings = Vec::new();
    let mut used: HashMap<&str, (usize, &Tool)> = HashMap::new();
    let Some((_, first)) = group.first() else { return (standings, findings) };
    for (index, (slot, tool)) in group.iter().enumerate() {
        let (name, here) = (tool.name.value.as_str(), name_of(tool));
        // Equal names are reported as duplicates.
        if first.name.value != name {
            findings.push(near_name(here, name, (&first.name.value, name_of(first))));
        }
        let mut entry = match used.entry(name) {
            Entry::Vacant(vacant) => {
                vacant.insert((index, tool));
                continue;
            }
            Entry::Occupied(entry) => entry,
        };
        let (other_index, other) = *entry.get();
        if can_coexist(tool, other) {
            if let Some((_, standing)) = standings.get_mut(index) {
                standing.shadowed_by = Some(name_of(other));
            }
            continue;
        }
        let duplicate = if specs.is_code(slot.source) && tool.source == other.source {
            entry.insert((index, tool));
            findings.push(rules::replaced_tool::finding(here, name, name_of(other)));
            other_index
        } else {
            findings.push(duplicate_definition(here, "tool", name, name_of(other)));
            index
        };
        if let Some((_, standing)) = standings.get_mut(duplicate) {
            standing.is_duplicate = true;
        }
    }
    (standings, findings)
}

fn name_of(tool: &Tool) -> Location {
    Location { source: tool.source, span: tool.name.span }
}

/// Returns a name without case and dashes.
fn folded(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

/// Whether Emacs can contain two tools with the same name: it registers tools under their category and name, and a tool
/// that a call returns is not registered.
fn can_coexist(one: &Tool, other: &Tool) -> bool {
    let is_emacs = |tool: &Tool| tool.origin != Origin::Spec;
    let is_returned = one.origin == Origin::Returned || other.origin == Origin::Returned;
    is_emacs(one) && is_emacs(other) && (is_returned || category_of(one) != category_of(other))
}

fn category_of(tool: &Tool) -> &str {
    tool.category.as_ref().map_or("misc", |name| name.value.as_str())
}
