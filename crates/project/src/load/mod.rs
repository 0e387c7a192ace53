//! Loading of a set of inputs: spec files with their definitions and compiled schemas, scripts, and findings.
//!
//! [`load_with`] reads everything once. A [`Cache`] reuses the unchanged parts of the previous load. File stamps and
//! snapshots are part of this module, because the cache compares them.

mod below;
mod bios;
mod cache;
mod directives;
mod discover;
mod levels;
mod model;
mod named;
mod names;
mod narrow;
mod other_files;
mod outside;
mod read;
mod scripts;
mod snapshot;
mod specs;
mod wrappers;

use std::collections::HashSet;
use std::path::Path;

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::rules::repeats;
use deftool_lang::schema::{check_count, check_target, takes_any_number};
use deftool_lang::spec::rules::merge_style;

use self::named::NamedScripts;
use self::narrow::narrow;
use crate::model::{Input, Load, LoadOptions, LoadedTool, ProjectError};
use crate::rules::too_many_tools;

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
/// If a spec file cannot be read.
pub fn load_with(inputs: &[Input], from: &Path, options: &LoadOptions) -> Result<Load, ProjectError> {
    let mut cache = Cache::default();
    cache.overlay.clone_from(&options.overlay);
    cache.selection.clone_from(&options.selection);
    cache.user.clone_from(&options.user);
    load_with_cache(&mut cache, inputs, from, options)
}

/// Reads files that changed since the load in `cache`, and reuses the rest.
pub(crate) fn load_with_cache(
    cache: &mut Cache,
    inputs: &[Input],
    from: &Path,
    options: &LoadOptions,
) -> Result<Load, ProjectError> {
    // The analyzer reports findings of all scripts.
    let is_incremental = options.with_scripts && options.analyzer.is_none() && !cache.is_single_load();
    if is_incremental && let Some(load) = scripts::reload_scripts(cache, from) {
        return Ok(load);
    }
    let whole = whole_roots(inputs);
    let named = NamedScripts::of(inputs);
    let (mut load, mut levels) = specs::read_specs(cache, inputs, &whole, from)?;
    // The limit is that of OpenAI.
    if options.targets.is_empty() || !options.targets.iter().copied().all(takes_any_number) {
        load.findings.extend(too_many_tools::check(&load, &whole));
    }
    if options.with_scripts {
        scripts::load_scripts(cache, &mut load, (&whole, &named), from);
    }
    narrow(&named, cache, &mut load, (&mut levels, &whole), (from, options.with_scripts))?;
    if options.with_scripts {
        bios::report_bios(&mut load);
        if let Some(program) = &options.analyzer {
            scripts::report_types(&mut load, program);
        }
    }
    for &target in &options.targets {
        let mut losses: Vec<_> =
            load.valid_tools().flat_map(|loaded| check_target(target, &loaded.tool)).collect();
        // In a project, the limit applies to each worker.
        let is_outside_projects = |loaded: &&LoadedTool| !load.roots.contains_key(&loaded.tool.source);
        losses.extend(check_count(
            target,
            load.valid_tools().filter(is_outside_projects).map(|loaded| &*loaded.tool),
        ));
        load.findings.append(&mut losses);
    }
    levels::apply(&mut load, levels, options);
    if !options.targets.is_empty() {
        drop_repeated(&mut load);
    }
    merge_style(&mut load.findings);
    if is_incremental {
        scripts::keep_load(cache, &load);
    }
    Ok(load)
}

/// Returns the roots of the projects that are read completely.
fn whole_roots(inputs: &[Input]) -> HashSet<&Path> {
    inputs.iter().filter(|input| input.whole_project).filter_map(|input| input.root.as_deref()).collect()
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
