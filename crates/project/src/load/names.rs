//! Checks of the names in workers across files: duplicate workers, unknown tools and dialects.

use std::cell::OnceCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::spec::rules::{duplicate_definition, unknown_name};
use deftool_lang::spec::{DIALECTS, ToolKind};
use deftool_lang::syntax::quoted;
use deftool_lang::text::{Location, Spanned};

use super::specs::Specs;
use super::tool_names::ToolNames;
use crate::model::{Load, Scope};

/// Reports duplicate names of workers, and several default workers, in a project.
pub(super) fn report_duplicate_workers(load: &mut Load) {
    let mut first: HashMap<(Option<&Path>, Option<String>), Location> = HashMap::new();
    for worker in &mut load.workers {
        let Some(source) = worker.source else { continue };
        let here = Location { source, span: worker.name.span };
        let name = &worker.name.value;
        let root = load.roots.get(&source).map(AsRef::as_ref);
        let unique =
            [("worker", Some(Some(name.clone()))), ("default worker", worker.is_default.then_some(None))];
        for (what, key) in unique {
            match key.map(|key| first.entry((root, key))) {
                None => {}
                Some(Entry::Vacant(vacant)) => drop(vacant.insert(here)),
                Some(Entry::Occupied(other)) => {
                    let other = *other.get();
                    load.findings.push(duplicate_definition(here, what, name, other));
                    worker.valid = false;
                }
            }
        }
    }
}

/// Reports unknown tools in the workers of the `known` projects, whose specs are all read. `skipped`: the tools that were
/// not loaded, with their project.
pub(super) fn report_unknown_worker_tools(
    load: &mut Load,
    (specs, tools): (&Specs, &ToolNames),
    skipped: &[(Arc<Path>, ToolKind, String)],
    known: &HashSet<&Path>,
) {
    if load.workers.is_empty() {
        return;
    }
    let is_skipped: HashSet<(&Path, ToolKind, &str)> =
        skipped.iter().map(|(root, kind, name)| (&**root, *kind, name.as_str())).collect();
    let servers = &load.mcp_servers;
    let own = load.dialects.iter().map(|dialect| dialect.name.value.as_str());
    let dialects: Vec<&str> = own.chain(DIALECTS).collect();
    for worker in &mut load.workers {
        let Some(source) = worker.source else { continue };
        let Some(root) = load.roots.get(&source).filter(|root| known.contains(&***root)) else { continue };
        if let Some(Spanned { value: name, span }) = &worker.dialect
            && !dialects.contains(&name.as_str())
        {
            let at = Location { source, span: *span };
            let message = format!("unknown dialect `{name}` in worker `{}`", worker.name.value);
            load.findings.push(unknown_name(at, message, name, dialects.iter().copied(), str::to_owned));
            worker.valid = false;
        }
        let is_known = |kind, name: &str| {
            tools.contains(specs, Scope::of_project(root), kind, name)
                || is_skipped.contains(&(&**root, kind, name))
        };
        // The tools of an MCP server are not known here.
        let is_remote = |kind, name: &str| {
            kind == ToolKind::Normal && servers.iter().any(|server| server.is_named_by(name))
        };
        let lists = [
            (&worker.tools, ToolKind::Normal, ToolKind::Exit, "tool"),
            (&worker.exit_tools, ToolKind::Exit, ToolKind::Normal, "exit tool"),
        ];
        for (listed, kind, other, what) in lists {
            let is_unknown =
                |name: &&Spanned<String>| !(is_known(kind, &name.value) || is_remote(kind, &name.value));
            let similar = OnceCell::new();
            for Spanned { value: name, span } in listed.iter().flatten().filter(is_unknown) {
                let at = Location { source, span: *span };
                let message = format!("unknown {what} `{name}` in worker `{}`", worker.name.value);
                let is_other = is_known(other, name);
                let similar = similar.get_or_init(|| {
                    let is_same = |of: &Arc<Path>| **of == **root;
                    let loaded = load.tools.iter().map(|loaded| &loaded.tool);
                    let loaded = loaded.filter(|tool| {
                        tool.kind == kind && load.roots.get(&tool.source).is_some_and(is_same)
                    });
                    let skipped = skipped.iter().filter(|(of, of_kind, _)| *of_kind == kind && is_same(of));
                    let skipped = skipped.map(|(.., name)| name.as_str());
                    loaded.map(|tool| tool.name.value.as_str()).chain(skipped).collect::<Vec<_>>()
                });
                let similar = similar.iter().copied().filter(|_| !is_other);
                let finding = unknown_name(at, message, name, similar, quoted);
                load.findings.push(match (is_other, kind) {
                    (true, ToolKind::Normal) => finding.labelled("belongs in `:exit-tools`"),
                    (true, ToolKind::Exit) => finding.labelled("belongs in `:tools`"),
                    (false, _) => finding,
                });
                worker.valid = false;
            }
        }
    }
}
