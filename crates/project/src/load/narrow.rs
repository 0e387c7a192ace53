//! The check of files that the user named: that of their project, narrowed to them and to the tools that use them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::text::{SourceFile, SourceId};

use super::cache::Cache;
use super::extent::Extent;
use super::levels::Levels;
use super::scripts::{files_of, read_script};
use crate::model::{Load, ProjectError};
use crate::paths::{identity, is_script, normalize};

/// Removes the definitions of the context files, except for the tools that use named scripts, and the findings elsewhere.
///
/// # Errors
/// If a named script was not checked.
pub(super) fn narrow(
    extent: &Extent<'_>,
    cache: &Cache,
    load: &mut Load,
    levels: &mut Levels,
    (from, with_scripts): (&Path, bool),
) -> Result<(), ProjectError> {
    if extent.reports_all() {
        return Ok(());
    }
    let script_roots = extent.script_roots();
    let mut in_scope: HashSet<PathBuf> = extent.scripts.keys().cloned().collect();
    let mut used = HashSet::new();
    let roots = &load.roots;
    load.tools.retain(|loaded| {
        let tool = &loaded.tool;
        let forms = levels.context_files.get_mut(&tool.source);
        // The scripts of context files are read only in the projects of named scripts.
        let Some(root) = roots.get(&tool.source).filter(|root| script_roots.contains(&***root)) else {
            return forms.is_none();
        };
        let files = files_of(cache, root, loaded, from);
        let files: Vec<PathBuf> = files.iter().map(|path| identity(path)).collect();
        let of_tool: Vec<&PathBuf> = files.iter().filter(|file| extent.scripts.contains_key(*file)).collect();
        let uses_named = !of_tool.is_empty();
        used.extend(of_tool.into_iter().cloned());
        let is_kept = uses_named || forms.is_none();
        if let Some(forms) = forms {
            forms.extend(uses_named.then_some(tool.span));
        }
        in_scope.extend(files.into_iter().filter(|_| is_kept));
        is_kept
    });
    let is_context = |source: SourceId| levels.context_files.contains_key(&source);
    load.workers.retain(|worker| worker.source.is_none_or(|source| !is_context(source)));
    load.project_asks.retain(|loaded| !is_context(loaded.ask.source));
    load.mcp_servers.retain(|server| !is_context(server.source));
    load.dialects.retain(|dialect| !is_context(dialect.source));
    let (sources, roots) = (&load.sources, &load.roots);
    load.findings.retain(|finding| {
        let at = finding.primary;
        let script = sources.get(at.source).map(|file| Path::new(&file.name)).filter(|name| is_script(name));
        let is_in_scope = |script: &Path| {
            roots.get(&at.source).is_some_and(|root| !script_roots.contains(&**root))
                || in_scope.contains(&identity(&from.join(script)))
        };
        levels.is_in_scope(at) && script.is_none_or(is_in_scope)
    });
    load.checked.retain(|source| levels.context_files.get(source).is_none_or(|forms| !forms.is_empty()));
    add_checked(extent, cache, load, &used, (from, with_scripts))
}

/// Adds the scripts that no tool uses to the checked files.
fn add_checked(
    extent: &Extent<'_>,
    cache: &Cache,
    load: &mut Load,
    used: &HashSet<PathBuf>,
    (from, with_scripts): (&Path, bool),
) -> Result<(), ProjectError> {
    // Without the scripts, only tools are loaded, and a folder may contain other scripts beside theirs.
    if !with_scripts && !load.checked.is_empty() {
        return Ok(());
    }
    let mut loose: Vec<_> = extent.scripts.iter().filter(|(file, _)| !used.contains(*file)).collect();
    loose.sort_unstable();
    for (_, &(root, path)) in loose {
        let listed = normalize(path);
        let is_listed = || {
            let scripts = listed.parent().and_then(|folder| cache.snapshot().scripts.get(folder));
            scripts.is_some_and(|scripts| scripts.contains(&listed))
        };
        if !with_scripts || !is_listed() {
            return Err(ProjectError::UnusedScript { path: path.clone() });
        }
        let Ok(file) = read_script(cache, root, &listed, from) else { continue };
        let name = &file.script.file;
        let reported = load.findings.iter().map(|finding: &Diagnostic| finding.primary.source);
        let reported =
            reported.into_iter().find(|id| load.sources.get(*id).is_some_and(|file| file.name == *name));
        let source = reported.unwrap_or_else(|| {
            load.add_source(SourceFile::new(name.clone(), file.text()), Some(&Arc::from(root)))
        });
        load.checked.push(source);
    }
    Ok(())
}
