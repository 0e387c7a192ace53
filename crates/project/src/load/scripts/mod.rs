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
mod test_scripts;
mod types;
mod unused;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::spec::{Tool, ToolKind};
use deftool_script::Script;

use self::findings::ScriptReporter;
use super::cache::Cache;
use super::model::CachedTool;
use crate::model::Load;
use crate::parallel;

pub(super) use file::find_script;
pub use file::script_candidates;
pub(crate) use lookup::resolve_permissions;
pub use test_scripts::{TestScript, find_tests};
pub(super) use types::report_types;

/// Loads the scripts of all normal tools in projects. Reports unused scripts in the projects of `whole`.
pub(super) fn load_scripts(cache: &mut Cache, load: &mut Load, whole: &HashSet<&Path>, from: &Path) {
    // Without the other tools it is unknown which scripts are used, and one tool needs no scan.
    let none = HashSet::new();
    let whole = if cache.only.is_some() { &none } else { whole };
    if cache.only.is_none() {
        let roots: HashSet<&Path> = load.roots.values().map(AsRef::as_ref).collect();
        for root in roots.into_iter().chain(whole.iter().copied()) {
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
    let mut reporter = ScriptReporter::new(load, &known, whole, cache.snapshot(), from);
    let mut tools = std::mem::take(&mut load.tools);
    for (loaded, cached) in tools.iter_mut().zip(known) {
        let Some(mut cached) = cached else { continue };
        loaded.script = reporter.report(load, &mut cached);
        cache.tools.insert(address(&loaded.tool), cached);
    }
    load.tools = tools;
    reporter.finish(cache, load);
    load.sort_findings();
}

/// Returns the identity of a tool across loads. Entries with this key also hold the `Arc`, so it is not reused.
fn address(tool: &Arc<Tool>) -> usize {
    Arc::as_ptr(tool).addr()
}
