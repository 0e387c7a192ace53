//! The state from which the next load starts, and what has changed since.
//!
//! The first load finds everything changed. A load after edits reads the changed files again, and looks only at their
//! tools, at tools with the same names, and at tools with changed scripts. Both then follow the same steps, so that they have
//! the same result.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::text::SourceId;

use super::cache::{Cache, key_of};
use super::model::{CachedTool, Slot, SpecFile, address, users_of};
use super::scripts::file::script_candidates;
use super::scripts::unused::UnusedScripts;
use super::specs::Specs;
use super::tool_names::{GroupKey, ToolNames};
use crate::model::{Input, LoadedTool};

/// The parts of a load that the next one updates.
pub(crate) struct LoadState {
    inputs: Vec<Input>,
    pub(super) specs: Specs,
    /// The sources of the spec files, by the keys of their paths.
    sources: HashMap<u64, SourceId>,
    /// The position of the first tool of each spec file in `tools`.
    starts: Vec<usize>,
    /// All tools in order, with their scripts.
    pub(super) tools: Vec<Arc<LoadedTool>>,
    pub(super) names: ToolNames,
    /// The keys of the paths that tools use or would use, with the tools.
    pub(super) users: BTreeSet<(u64, Slot)>,
    /// The tools with findings about their scripts, even suppressed ones.
    pub(super) unclean: BTreeSet<Slot>,
    /// The files that no tool uses.
    pub(super) unused: Option<UnusedScripts>,
    /// What the APIs do not support of each tool.
    pub(super) losses: BTreeMap<Slot, Vec<Diagnostic>>,
    /// Whether it was made from the state before it.
    is_reused: bool,
    uses_same_files: bool,
}

/// A state, and what has changed in it.
pub(super) struct Update {
    pub(super) state: LoadState,
    /// The tools to look at. Those in `state` have no scripts yet.
    pub(super) changed: BTreeSet<Slot>,
    /// The scripts that the changed tools had, by the addresses of their definitions.
    pub(super) previous: HashMap<usize, CachedTool>,
    /// The paths that the changed tools used, as in `users`.
    pub(super) used_before: Vec<(u64, Slot)>,
    /// Whether files other than specs have changed.
    pub(super) has_other_changes: bool,
}

impl LoadState {
    fn of(inputs: &[Input], specs: Specs) -> Self {
        Self {
            inputs: inputs.to_vec(),
            specs,
            sources: HashMap::new(),
            starts: Vec::new(),
            tools: Vec::new(),
            names: ToolNames::default(),
            users: BTreeSet::new(),
            unclean: BTreeSet::new(),
            unused: None,
            losses: BTreeMap::new(),
            is_reused: false,
            uses_same_files: false,
        }
    }

    /// Returns whether it was made from the state before it.
    #[cfg(test)]
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Returns whether the tools use the same files as in the load before it.
    pub(crate) fn uses_same_files(&self) -> bool {
        self.uses_same_files
    }

    /// Returns the position of a tool in the list of all tools.
    pub(super) fn position(&self, slot: Slot) -> usize {
        self.starts.get(slot.source.index()).map_or(usize::MAX, |start| start + slot.index)
    }

    fn number_tools(&mut self) {
        let mut next = 0;
        self.starts.clear();
        for source in self.specs.ids() {
            self.starts.push(next);
            next += self.specs.tools_of(source).len();
        }
    }

    /// Returns the keys of the paths at which the script of a tool may be.
    pub(super) fn candidate_keys(&self, slot: Slot, loaded: &LoadedTool) -> Vec<u64> {
        let candidates = self.specs.root_of(slot.source).map(|root| script_candidates(root, &loaded.tool));
        candidates.into_iter().flatten().map(|path| key_of(&path)).collect()
    }
}

impl Update {
    /// Returns the update in which everything is new.
    pub(super) fn first(cache: &mut Cache, inputs: &[Input], specs: Specs) -> Self {
        let mut state = LoadState::of(inputs, specs);
        let mut changed = BTreeSet::new();
        for source in state.specs.ids().collect::<Vec<_>>() {
            state.names.add(&state.specs, source);
            let tools = state.specs.tools_of(source);
            changed.extend((0..tools.len()).map(|index| Slot { source, index }));
            state.tools.extend_from_slice(tools);
        }
        if !cache.is_single_load() {
            state.sources = state.specs.paths().map(|(path, source)| (key_of(path), source)).collect();
        }
        state.number_tools();
        let previous = std::mem::take(&mut cache.tools);
        let mut update = Self { state, changed, previous, used_before: Vec::new(), has_other_changes: true };
        let shared = update.state.names.shared();
        update.compare_names(cache, shared);
        update
    }

    /// Returns the update of the last load by the files that changed since. Returns `None` if the files to load are others, or
    /// if it is unknown what the changes affect.
    pub(super) fn after(cache: &mut Cache, state: LoadState, inputs: &[Input], from: &Path) -> Option<Self> {
        let [Input { whole_project: true, .. }] = inputs else { return None };
        let keys = cache.changed().filter(|_| state.inputs == inputs)?;
        let (mut edited, mut used) = (Vec::new(), Vec::new());
        for key in keys {
            match state.sources.get(&key) {
                Some(source) => edited.push((*source, state.specs.read_again(cache, *source, from)?)),
                None => used.push(key),
            }
        }
        let mut update = Self {
            state: LoadState { is_reused: true, ..state },
            changed: BTreeSet::new(),
            previous: HashMap::new(),
            used_before: Vec::new(),
            has_other_changes: !used.is_empty(),
        };
        for key in used {
            let users: Vec<Slot> = users_of(&update.state.users, key).collect();
            for slot in users {
                update.release(cache, slot);
            }
        }
        for slot in update.state.unclean.clone() {
            let loaded = update.state.tools.get(update.state.position(slot));
            let cached = loaded.and_then(|loaded| cache.tools.get(&address(loaded.definition())));
            if cached.is_some_and(CachedTool::depends_on_other_files) {
                update.release(cache, slot);
            }
        }
        let mut groups = HashSet::new();
        for (source, file) in edited {
            update.replace(cache, source, file, &mut groups);
        }
        update.compare_names(cache, groups);
        Some(update)
    }

    /// Replaces a file. Adds the groups of the names that it had and has to `groups`.
    fn replace(
        &mut self,
        cache: &mut Cache,
        source: SourceId,
        file: Arc<SpecFile>,
        groups: &mut HashSet<GroupKey>,
    ) {
        let Some(before) = self.state.specs.file(source).cloned() else { return };
        if Arc::ptr_eq(&before, &file) {
            return;
        }
        let is_kept = |index: usize| {
            let both = before.tools.get(index).zip(file.tools.get(index));
            both.is_some_and(|(before, now)| Arc::ptr_eq(before, now))
        };
        for index in (0..before.tools.len()).filter(|index| !is_kept(*index)) {
            self.release(cache, Slot { source, index });
        }
        self.changed.retain(|slot| slot.source != source || is_kept(slot.index));
        let state = &mut self.state;
        groups.extend(ToolNames::keys(&state.specs, source));
        state.names.remove(&state.specs, source);
        state.specs.replace(source, Arc::clone(&file));
        state.names.add(&state.specs, source);
        groups.extend(ToolNames::keys(&state.specs, source));
        let start = state.position(Slot { source, index: 0 });
        let now = file.tools.iter().enumerate().map(|(index, loaded)| {
            let known = state.tools.get(start + index).filter(|_| is_kept(index));
            Arc::clone(known.unwrap_or(loaded))
        });
        let now: Vec<_> = now.collect();
        self.changed
            .extend((0..now.len()).filter(|index| !is_kept(*index)).map(|index| Slot { source, index }));
        state.tools.splice(start..start + before.tools.len(), now);
        state.number_tools();
    }

    /// Compares the tools of each of these groups with each other.
    fn compare_names(&mut self, cache: &mut Cache, groups: HashSet<GroupKey>) {
        for (slot, standing) in self.state.names.compare(&self.state.specs, groups) {
            let position = self.state.position(slot);
            let Some(alone) = self.state.specs.tool(slot).cloned() else { continue };
            let Some(loaded) = self.state.tools.get(position) else { continue };
            let valid = alone.tool.valid && !standing.is_duplicate;
            if loaded.tool.valid == valid && loaded.shadowed_by == standing.shadowed_by {
                continue;
            }
            self.release(cache, slot);
            let mut compared = LoadedTool::clone(&alone);
            compared.shadowed_by = standing.shadowed_by;
            if alone.tool.valid != valid {
                Arc::make_mut(&mut compared.tool).valid = valid;
            }
            if let Some(loaded) = self.state.tools.get_mut(position) {
                *loaded = Arc::new(compared);
            }
        }
    }

    /// Marks a tool as changed, and takes its script out of the cache.
    fn release(&mut self, cache: &mut Cache, slot: Slot) {
        let state = &mut self.state;
        let Some(loaded) = state.tools.get(state.position(slot)).filter(|_| self.changed.insert(slot)) else {
            return;
        };
        let key = address(loaded.definition());
        let keys = match cache.tools.remove(&key) {
            Some(cached) => {
                let keys = cached.keys.clone();
                self.previous.insert(key, cached);
                keys
            }
            None => state.candidate_keys(slot, loaded),
        };
        self.used_before.extend(keys.into_iter().map(|key| (key, slot)));
        state.unclean.remove(&slot);
        state.losses.remove(&slot);
    }

    /// Sets the paths that the changed tools use. Returns whether they are others than before.
    pub(super) fn set_used(&mut self, mut used: Vec<(u64, Slot)>) -> bool {
        let mut before = std::mem::take(&mut self.used_before);
        before.sort_unstable();
        used.sort_unstable();
        self.state.uses_same_files = self.state.is_reused && before == used;
        if before == used {
            return false;
        }
        for user in &before {
            self.state.users.remove(user);
        }
        if self.state.users.is_empty() {
            self.state.users = used.into_iter().collect();
        } else {
            self.state.users.extend(used);
        }
        true
    }
}
