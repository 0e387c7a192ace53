//! Loading of a set of inputs: spec files with their definitions and compiled schemas, scripts, and findings.
//!
//! [`load_with`] reads everything once. A [`Cache`] reuses unchanged files, and a [`LoadState`] what was found in the previous
//! load. File stamps and snapshots are part of this module, because the cache compares them.

mod asks;
mod below;
mod bios;
mod cache;
mod directives;
mod discover;
mod extent;
mod known_forms;
mod levels;
mod model;
mod names;
mod narrow;
mod other_files;
mod outside;
mod read;
mod scripts;
mod snapshot;
mod spec_file;
mod specs;
mod state;
mod tool_names;
mod wrappers;

use std::collections::BTreeMap;
use std::path::Path;

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::rules::repeats;
use deftool_lang::schema::{Target, check_count, check_target, of_json, takes_any_number};
use deftool_lang::spec::Tool;
use deftool_lang::spec::rules::merge_style;

use self::extent::Extent;
use self::narrow::narrow;
use self::specs::{Loose, Specs};
use self::state::Update;
use self::wrappers::report_wrappers;
use crate::model::{Input, Load, LoadOptions, ProjectError, Scope};
use crate::rules::{long_result, too_many_tools, unknown_preset_tool};

pub use below::{ProjectGlob, find_projects, has_specs, projects_below};
pub use bios::{outside_bios, read_bios};
pub(crate) use cache::Cache;
pub use discover::{find_root, resolve_inputs};
pub(crate) use discover::{resolve_paths, scan_scripts};
pub use other_files::FoundFiles;
pub(crate) use other_files::find_files;
pub use read::{SourceText, read_source, read_stream};
pub(crate) use scripts::resolve_permissions;
pub use scripts::{TestScript, find_tests, script_candidates, type_findings};
pub(crate) use snapshot::{FileStamp, Folder, FolderId, Lookup, Snapshot};
pub use specs::read_tool_forms;
pub(crate) use specs::read_workers;
pub(crate) use state::LoadState;

/// Reads all spec files of `inputs` and the scripts of their tools.
///
/// # Errors
/// If a spec file cannot be read.
pub fn load(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    load_with(inputs, from, &LoadOptions { with_scripts: true, ..LoadOptions::default() })
}

/// Reads all spec files of `inputs` without their scripts.
///
/// # Errors
/// If a file cannot be read.
pub fn load_specs(inputs: &[Input], from: &Path) -> Result<Load, ProjectError> {
    load_with(inputs, from, &LoadOptions::default())
}

/// Reads all spec files of `inputs`. File names in messages are relative to `from`.
///
/// # Errors
/// If a spec file cannot be read, and there is only one input. Of several, it is a finding.
pub fn load_with(inputs: &[Input], from: &Path, options: &LoadOptions) -> Result<Load, ProjectError> {
    let mut cache = Cache::default();
    cache.overlay.clone_from(&options.overlay);
    cache.selection.clone_from(&options.selection);
    cache.user.clone_from(&options.user);
    // One bad file does not stop the load of several projects.
    cache.keeps_going = inputs.len() > 1;
    load_with_cache(&mut cache, &mut None, inputs, from, options)
}

/// Reads files that changed since the load in `cache`, and reuses the rest. `last`: the state of the last load, if it can be
/// the start of this one.
pub(crate) fn load_with_cache(
    cache: &mut Cache,
    last: &mut Option<LoadState>,
    inputs: &[Input],
    from: &Path,
    options: &LoadOptions,
) -> Result<Load, ProjectError> {
    cache.reads_lists = options.reads_lists;
    let extent = Extent::of(inputs, options.with_scripts);
    let mut update = match last.take().and_then(|state| Update::after(cache, state, inputs, from)) {
        Some(update) => update,
        None => {
            let specs = Specs::read(cache, inputs, &extent, from)?;
            Update::first(cache, inputs, specs)
        }
    };
    let tools = std::mem::take(&mut update.state.tools);
    let (mut load, mut levels, loose) = update.state.specs.assemble(tools);
    report_across(&mut load, loose, &update.state, &extent);
    // The limit is that of OpenAI.
    if options.targets.is_empty() || !options.targets.iter().copied().all(takes_any_number) {
        load.findings.extend(too_many_tools::check(&load, &extent.known));
    }
    if options.with_scripts {
        scripts::load_scripts(cache, &mut load, &mut update, &extent, from);
    }
    report_losses(&mut load, &mut update, &options.targets);
    // The type checker reports findings of all scripts.
    let is_start = options.with_scripts && options.analyzer.is_none() && extent.scripts.is_empty();
    if is_start && !cache.is_single_load() {
        update.state.tools.clone_from(&load.tools);
        *last = Some(update.state);
    }
    narrow(&extent, cache, &mut load, &mut levels, (from, options.with_scripts))?;
    if options.with_scripts {
        bios::report_bios(&mut load);
        if let Some(program) = &options.analyzer {
            scripts::report_types(&mut load, program);
        }
    }
    levels::apply(&mut load, levels, options);
    if !options.targets.is_empty() {
        drop_repeated(&mut load);
    }
    merge_style(&mut load.findings);
    Ok(load)
}

/// Reports what depends on several specs.
fn report_across(load: &mut Load, loose: Loose, state: &LoadState, extent: &Extent<'_>) {
    let Loose { skipped, wrappers, preset_tools, long_results } = loose;
    report_wrappers(load, &wrappers);
    asks::report_asks(load, &skipped, &extent.known);
    load.findings.extend(state.names.findings().cloned());
    names::report_duplicate_workers(load);
    names::report_unknown_worker_tools(load, (&state.specs, &state.names), &skipped, &extent.known);
    let mut findings = unknown_preset_tool::check(load, &preset_tools);
    findings.extend(long_result::check(load, &long_results, &extent.known));
    load.findings.append(&mut findings);
}

/// Reports what the targets do not support. Checks only the changed tools again.
fn report_losses(load: &mut Load, update: &mut Update, targets: &[Target]) {
    let Update { state, changed, .. } = update;
    for slot in changed.iter().filter(|_| !targets.is_empty()) {
        let loaded = load.tools.get(state.position(*slot));
        let valid = loaded.filter(|loaded| loaded.tool.valid && loaded.shadowed_by.is_none());
        let is_list = load.lists.contains(&slot.source);
        let losses: Vec<Diagnostic> = valid.map_or_else(Vec::new, |loaded| {
            let losses = targets.iter().flat_map(|target| check_target(*target, &loaded.tool));
            losses.map(|loss| if is_list { of_json(loss) } else { loss }).collect()
        });
        if !losses.is_empty() {
            state.losses.insert(*slot, losses);
        }
    }
    load.findings.extend(state.losses.values().flatten().cloned());
    for &target in targets {
        let losses: Vec<_> =
            requests(load).into_values().filter_map(|tools| check_count(target, tools)).collect();
        load.findings.extend(losses);
    }
}

/// Returns the tools outside of projects that a request contains together. In a project, a request has those of a worker.
fn requests(load: &Load) -> BTreeMap<Scope, Vec<&Tool>> {
    let mut requests: BTreeMap<Scope, Vec<&Tool>> = BTreeMap::new();
    for tool in load.valid_tools().map(|loaded| &*loaded.tool) {
        let scope = load.scope_of(tool.source);
        if !matches!(scope, Scope::Project(_)) {
            requests.entry(scope).or_default().push(tool);
        }
    }
    requests
}

/// Removes target findings that repeat a general finding, unless the target finding is more severe.
fn drop_repeated(load: &mut Load) {
    let mut repeated = Vec::new();
    // Findings are sorted by location.
    for here in load.findings.chunk_by(|one, next| one.primary == next.primary) {
        repeated.extend(here.iter().map(|finding| {
            let is_reported = |base: &Diagnostic| {
                repeats(finding.rule, base.rule)
                    && (finding.severity != Severity::Error || base.severity == Severity::Error)
            };
            here.iter().any(is_reported)
        }));
    }
    let mut repeated = repeated.into_iter();
    load.findings.retain(|_| !repeated.next().unwrap_or_default());
}
