//! The scripts of tools: locates them, compiles them with their modules and checks them against the specs. Never runs
//! them.
//!
//! Lookup runs in parallel. Findings are reported in the order of the tools. A tool with unchanged spec, script and
//! modules is not checked again and keeps its `Arc<Script>`, which owns the cached Lua states. Tools with findings are
//! reported in each load, because a finding in a shared file is reported for the first tool that uses it.

mod contracts;
pub(super) mod file;
mod findings;
mod lookup;
mod loose;
mod modules;
mod test_checks;
mod test_scripts;
mod types;
pub(super) mod unused;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::spec::{PathBase, Tool, ToolKind};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_script::Script;

use self::file::find_script;
use self::findings::ScriptReporter;
use self::unused::UnusedScripts;
use super::cache::Cache;
use super::extent::Extent;
use super::model::{CachedTool, Slot, Unit, address};
use super::state::{LoadState, Update};
use crate::model::{Load, LoadedTool, ScriptState, ToolOrigin};
use crate::parallel;

pub(super) use file::read_script;
pub use file::script_candidates;
pub(crate) use lookup::resolve_permissions;
pub use test_scripts::{TestScript, find_tests};
pub(super) use types::report_types;
pub use types::type_findings;

/// Loads the scripts of the changed normal tools in projects, except for tools that are only the context of others. Reports
/// unused scripts in whole projects, and those that the user named.
pub(super) fn load_scripts(
    cache: &mut Cache,
    load: &mut Load,
    update: &mut Update,
    extent: &Extent<'_>,
    from: &Path,
) {
    // Without the other tools it is unknown which scripts are used, and some tools need no scan.
    let none = Extent::default();
    let extent = if cache.selection.is_all() { extent } else { &none };
    if cache.selection.is_all() && update.has_other_changes {
        let roots: HashSet<&Path> = load.roots.values().map(AsRef::as_ref).collect();
        for root in roots.into_iter().chain(extent.known.iter().copied()) {
            cache.scan_scripts(root);
        }
    }
    let looked_up = look_up(cache, load, update, extent, from);
    let keys = |(slot, cached): &(Slot, Option<CachedTool>)| {
        let loaded = load.tools.get(update.state.position(*slot));
        let candidates = || loaded.map_or_else(Vec::new, |loaded| update.state.candidate_keys(*slot, loaded));
        let keys = cached.as_ref().map_or_else(candidates, |cached| cached.keys.clone());
        keys.into_iter().map(|key| (key, *slot)).collect::<Vec<_>>()
    };
    let used = looked_up.iter().flat_map(keys).collect();
    let has_other_users = update.set_used(used);
    let LoadState { users, unclean, unused, .. } = &mut update.state;
    if has_other_users || update.has_other_changes || unused.is_none() {
        *unused = Some(UnusedScripts::of(users, extent, cache.snapshot()));
    }
    let mut reporter = ScriptReporter::new(unused.clone().unwrap_or_default(), from);
    let mut to_report: BTreeMap<Slot, CachedTool> = BTreeMap::new();
    to_report.extend(looked_up.into_iter().filter_map(|(slot, cached)| Some((slot, cached?))));
    let mut tools = std::mem::take(&mut load.tools);
    for slot in std::mem::take(unclean) {
        let loaded = tools.get(update.state.position(slot));
        let cached = loaded.and_then(|loaded| cache.tools.remove(&address(loaded.definition())));
        to_report.extend(cached.map(|cached| (slot, cached)));
    }
    for (slot, mut cached) in to_report {
        let Some(loaded) = tools.get_mut(update.state.position(slot)) else { continue };
        let state = reporter.report(load, &mut cached);
        let state = in_current_folder(cache, &loaded.tool, state);
        if !cached.is_clean {
            update.state.unclean.insert(slot);
        }
        Arc::make_mut(loaded).script = state;
        cache.tools.insert(address(&cached.definition), cached);
    }
    if cache.user.is_some() {
        for slot in &update.changed {
            if let Some(loaded) = tools.get_mut(update.state.position(*slot)) {
                Arc::make_mut(loaded).origin = ToolOrigin::User;
            }
        }
    }
    load.tools = tools;
    reporter.finish(cache, load);
}

/// Looks up the scripts of the changed tools. Those that have none, and those that are reported elsewhere, are not looked
/// up.
fn look_up(
    cache: &Cache,
    load: &Load,
    update: &mut Update,
    extent: &Extent<'_>,
    from: &Path,
) -> Vec<(Slot, Option<CachedTool>)> {
    let script_roots = extent.script_roots();
    let Update { state, changed, previous, .. } = update;
    let mut known: Vec<(Slot, Option<CachedTool>)> = Vec::with_capacity(changed.len());
    let mut unknown = Vec::new();
    for &slot in changed.iter() {
        known.push((slot, None));
        let Some(loaded) = load.tools.get(state.position(slot)) else { continue };
        // An invalid spec is already reported, and a problem with its script may be a consequence.
        let has_script = loaded.tool.kind == ToolKind::Normal && loaded.tool.valid;
        let Some(root) = load.roots.get(&slot.source).filter(|_| has_script) else { continue };
        // Any tool of the project may use a script that the user named.
        if state.specs.is_context(slot.source) && !script_roots.contains(&**root) {
            continue;
        }
        let key = address(loaded.definition());
        let is_current = previous.get(&key).is_some_and(|cached| cached.is_current(cache, load, from));
        if !is_current {
            unknown.push((known.len() - 1, loaded, root));
        } else if let (Some(cached), Some(last)) = (previous.remove(&key), known.last_mut()) {
            // The tool may be at another place in its file.
            last.1 = Some(CachedTool { tool: Arc::clone(&loaded.tool), ..cached });
        }
    }
    // Spec and script must be consistent, so the spec must not change during the load.
    cache.add_dependencies(unknown.iter().filter_map(|(_, loaded, _)| load.files.get(&loaded.tool.source)));
    let scripts: HashMap<&str, &Arc<Script>> =
        previous.values().filter_map(CachedTool::named_script).collect();
    let lookups = parallel::map(&unknown, |_, (_, loaded, root)| {
        let before = scripts.get(loaded.tool.name.value.as_str()).copied();
        CachedTool::look_up(cache, loaded, root, before, from)
    });
    for ((index, ..), lookup) in unknown.into_iter().zip(lookups) {
        if let Some((_, cached)) = known.get_mut(index) {
            *cached = Some(lookup);
        }
    }
    known
}

/// Returns the paths of the script of a tool and of its modules.
pub(super) fn files_of(cache: &Cache, root: &Path, loaded: &LoadedTool, from: &Path) -> Vec<PathBuf> {
    let cached =
        cache.tools.get(&address(loaded.definition())).map(|cached| cached.unit.paths().cloned().collect());
    let cached = cached.filter(|paths: &Vec<PathBuf>| !paths.is_empty());
    let read = || {
        let is_normal = loaded.tool.kind == ToolKind::Normal;
        let path = find_script(root, loaded).filter(|_| is_normal)?;
        let file = read_script(cache, root, &path, from).ok();
        Some(match file {
            Some(file) => Unit::of(cache, root, &path, &file, from).paths().cloned().collect(),
            None => vec![path],
        })
    };
    cached.or_else(read).unwrap_or_default()
}

/// Returns the state of a script. A tool with `:base project` cannot run where the user is in no project or folder of one.
fn in_current_folder(cache: &Cache, tool: &Tool, state: ScriptState) -> ScriptState {
    match (&cache.user, &state) {
        (Some(Err(why)), ScriptState::Ready(_)) if tool.base == PathBase::Project => {
            let message = format!("`{}` works in the current project: {why}", tool.name.value);
            ScriptState::Broken(ToolError::new(ToolErrorKind::Permission, message))
        }
        _ => state,
    }
}
