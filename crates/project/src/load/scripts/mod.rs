//! The scripts of tools: locates them, compiles them with their modules and checks them against the specs. Never runs
//! them.
//!
//! Lookup runs in parallel. Findings are reported in the order of the tools. A tool with unchanged spec, script and
//! modules is not checked again and keeps its `Arc<Script>`, which owns the cached Lua states.

mod contracts;
mod file;
mod findings;
mod lookup;
mod loose;
mod modules;
mod test_checks;
mod test_scripts;
mod types;
mod unused;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::spec::{PathBase, Tool, ToolKind};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_script::Script;

use self::file::find_script;
use self::findings::ScriptReporter;
use super::cache::Cache;
use super::model::{CachedTool, LastLoad, Unit};
use super::named::NamedScripts;
use crate::model::{Load, LoadedTool, ScriptState, ToolOrigin};
use crate::parallel;

pub(super) use file::read_script;
pub use file::script_candidates;
pub(crate) use lookup::resolve_permissions;
pub use test_scripts::{TestScript, find_tests};
pub(super) use types::report_types;
pub use types::type_findings;

/// Loads the scripts of all normal tools in projects. Reports unused scripts in the projects of `whole`, and those in
/// `named`.
pub(super) fn load_scripts(
    cache: &mut Cache,
    load: &mut Load,
    (whole, named): (&HashSet<&Path>, &NamedScripts<'_>),
    from: &Path,
) {
    // Without the other tools it is unknown which scripts are used, and some tools need no scan.
    let none = (HashSet::new(), NamedScripts::default());
    let (whole, named) = if cache.selection.is_all() { (whole, named) } else { (&none.0, &none.1) };
    if cache.selection.is_all() {
        let roots: HashSet<&Path> = load.roots.values().map(AsRef::as_ref).collect();
        for root in roots.into_iter().chain(whole.iter().copied()).chain(named.roots()) {
            cache.scan_scripts(root);
        }
    }
    let mut previous = std::mem::take(&mut cache.tools);
    let mut known = Vec::with_capacity(load.tools.len());
    let mut unknown = Vec::new();
    for (index, loaded) in load.tools.iter().enumerate() {
        let cached = previous.remove(&address(&loaded.tool));
        let is_current = cached.as_ref().is_some_and(|cached| cached.is_current(cache, load, from));
        // An invalid spec is already reported, and a problem with its script may be a consequence.
        let has_script = loaded.tool.kind == ToolKind::Normal && loaded.tool.valid;
        let root = load.roots.get(&loaded.tool.source).filter(|_| has_script);
        if let Some(root) = root.filter(|_| !is_current) {
            unknown.push((index, &loaded.tool, root));
        }
        match cached {
            Some(cached) if is_current => known.push(Some(cached)),
            Some(cached) => {
                previous.insert(address(&loaded.tool), cached);
                known.push(None);
            }
            None => known.push(None),
        }
    }
    // Spec and script must be consistent, so the spec must not change during the load.
    cache.add_dependencies(unknown.iter().filter_map(|(_, tool, _)| load.files.get(&tool.source)));
    let previous: HashMap<&str, &Arc<Script>> =
        previous.values().filter_map(CachedTool::named_script).collect();
    let lookup = parallel::map(&unknown, |_, (_, tool, root)| {
        let previous = previous.get(tool.name.value.as_str()).copied();
        CachedTool::look_up(cache, tool, root, previous, from)
    });
    for ((index, ..), lookup) in unknown.into_iter().zip(lookup) {
        if let Some(slot) = known.get_mut(index) {
            *slot = Some(lookup);
        }
    }
    let mut reporter = ScriptReporter::new(load, &known, (whole, named), cache.snapshot(), from);
    let mut tools = std::mem::take(&mut load.tools);
    for (loaded, cached) in tools.iter_mut().zip(known) {
        let Some(mut cached) = cached else { continue };
        let state = reporter.report(load, &mut cached);
        Arc::make_mut(loaded).script = in_current_folder(cache, &loaded.tool, state);
        cache.tools.insert(address(&loaded.tool), cached);
    }
    if cache.user.is_some() {
        for loaded in &mut tools {
            Arc::make_mut(loaded).origin = ToolOrigin::User;
        }
    }
    load.tools = tools;
    reporter.finish(cache, load);
    load.sort_findings();
}

/// Makes the next load from the last one if only scripts and modules changed. Returns `None` if anything else changed,
/// or if an affected tool has or gets findings, which may depend on other tools.
///
/// The time depends on the number of affected tools, apart from a copy of the list of tools.
pub(super) fn reload_scripts(cache: &mut Cache, from: &Path) -> Option<Load> {
    let mut last = cache.last.take()?;
    let mut affected = BTreeSet::new();
    for key in cache.changed()? {
        affected.extend(last.users.get(&key)?);
    }
    let of_index = |index: usize| cache.tools.get(&address(&last.load.tools.get(index)?.tool));
    let affected: Vec<(usize, &CachedTool)> =
        affected.into_iter().map(|index| Some((index, of_index(index)?))).collect::<Option<_>>()?;
    if !affected.iter().all(|(_, cached)| cached.is_clean) {
        return None;
    }
    cache
        .add_dependencies(affected.iter().filter_map(|(_, cached)| last.load.files.get(&cached.tool.source)));
    let lookups = parallel::map(&affected, |_, (_, cached)| {
        let script = cached.named_script().map(|(_, script)| script);
        CachedTool::look_up(cache, &cached.tool, &cached.root, script, from)
    });
    let is_same_unit = |((_, before), now): (&(usize, &CachedTool), &CachedTool)| before.keys == now.keys;
    if !affected.iter().zip(&lookups).all(is_same_unit) {
        return None;
    }
    let none = (HashSet::new(), NamedScripts::default());
    let mut reporter = ScriptReporter::new(&Load::default(), &[], (&none.0, &none.1), cache.snapshot(), from);
    let affected: Vec<usize> = affected.into_iter().map(|(index, _)| index).collect();
    for (index, mut cached) in affected.into_iter().zip(lookups) {
        let state = reporter.report(&mut last.load, &mut cached);
        if !cached.is_clean {
            return None;
        }
        let state = in_current_folder(cache, &cached.tool, state);
        Arc::make_mut(last.load.tools.get_mut(index)?).script = state;
        cache.tools.insert(address(&cached.tool), cached);
    }
    let load = last.load.clone();
    cache.last = Some(LastLoad { is_reused: true, ..last });
    Some(load)
}

/// Returns the paths of the script of a tool and of its modules.
pub(super) fn files_of(cache: &Cache, root: &Path, loaded: &LoadedTool, from: &Path) -> Vec<PathBuf> {
    let cached = cache.tools.get(&address(&loaded.tool)).map(|cached| cached.unit.paths().cloned().collect());
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

/// Keeps the load as the start of the next one.
pub(super) fn keep_load(cache: &mut Cache, load: &Load) {
    let mut users: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, loaded) in load.tools.iter().enumerate() {
        let keys = cache.tools.get(&address(&loaded.tool)).into_iter().flat_map(|cached| &cached.keys);
        keys.for_each(|key| users.entry(*key).or_default().push(index));
    }
    cache.last = Some(LastLoad { load: load.clone(), users, is_reused: false });
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

/// Returns the identity of a tool across loads. Entries with this key also hold the `Arc`, so it is not reused.
fn address(tool: &Arc<Tool>) -> usize {
    Arc::as_ptr(tool).addr()
}
