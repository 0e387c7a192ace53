//! Checks of names across files: duplicates, and unknown tools in workers.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::schema::Target;
use deftool_lang::spec::rules::{duplicate_definition, near_name, unknown_key_among, unknown_name};
use deftool_lang::spec::{DIALECTS, FileKind, Origin, Tool, ToolKind};
use deftool_lang::syntax::quoted;
use deftool_lang::text::{Location, Spanned};

use crate::model::{Load, Scope};
use crate::rules;

/// Reports duplicate names of tools and workers in a project.
pub(super) fn report_duplicates(load: &mut Load) {
    report_duplicate_tools(load);
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

/// Reports duplicate tools. The first one is used, except in an Emacs Lisp file, which is evaluated in order: the later
/// definition of a name and category replaces the earlier one.
fn report_duplicate_tools(load: &mut Load) {
    let mut first: HashMap<(Scope, &str), (usize, &Tool)> = HashMap::new();
    let (mut invalid, mut shadowed, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for (index, tool) in load.tools.iter().map(|loaded| &loaded.tool).enumerate() {
        let name = &tool.name.value;
        let mut entry = match first.entry((load.scope_of(tool.source), name)) {
            Entry::Vacant(vacant) => {
                vacant.insert((index, tool));
                continue;
            }
            Entry::Occupied(entry) => entry,
        };
        let (other_index, other) = *entry.get();
        let name_of = |tool: &Tool| Location { source: tool.source, span: tool.name.span };
        let (here, there) = (name_of(tool), name_of(other));
        if can_coexist(tool, other) {
            shadowed.push((index, there));
        } else if is_emacs_lisp(load, tool) && tool.source == other.source {
            entry.insert((index, tool));
            invalid.push(other_index);
            findings.push(rules::replaced_tool::finding(here, name, there));
        } else {
            invalid.push(index);
            findings.push(duplicate_definition(here, "tool", name, there));
        }
    }
    load.findings.append(&mut findings);
    for index in invalid {
        if let Some(loaded) = load.tools.get_mut(index) {
            Arc::make_mut(&mut Arc::make_mut(loaded).tool).valid = false;
        }
    }
    for (index, first) in shadowed {
        if let Some(loaded) = load.tools.get_mut(index) {
            Arc::make_mut(loaded).shadowed_by = Some(first);
        }
    }
}

fn is_emacs_lisp(load: &Load, tool: &Tool) -> bool {
    load.sources.get(tool.source).is_some_and(|file| FileKind::of_name(&file.name).is_code())
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

/// Reports tools of one project or list whose names differ only in case or dashes.
pub(super) fn near_names(load: &Load) -> Vec<Diagnostic> {
    let mut seen = HashMap::<_, (&str, Location)>::new();
    let mut findings = Vec::new();
    for tool in load.tools.iter().map(|loaded| &loaded.tool) {
        let at = Location { source: tool.source, span: tool.name.span };
        let name = tool.name.value.as_str();
        let folded = name.replace('-', "_").to_ascii_lowercase();
        match seen.entry((load.scope_of(tool.source), folded)) {
            // Equal names are reported as duplicates.
            Entry::Occupied(first) if first.get().0 != name => {
                findings.push(near_name(at, name, *first.get()));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(vacant) => drop(vacant.insert((name, at))),
        }
    }
    findings
}

/// Reports overrides for unknown targets, which are never sent.
pub(super) fn unknown_targets(load: &Load) -> Vec<Diagnostic> {
    let known = Target::ALL.map(Target::as_str);
    let overrides = load.tools.iter().flat_map(|loaded| {
        let tool = &loaded.tool;
        tool.overrides.iter().map(|over| (tool.source, &over.target))
    });
    overrides
        .filter(|(_, target)| !known.contains(&target.value.as_str()))
        .map(|(source, target)| {
            let at = Location { source, span: target.span };
            unknown_key_among(at, "target", target.value.trim_end_matches(':'), known.into_iter())
        })
        .collect()
}

/// The names of a project's tools of one kind.
#[derive(Default)]
struct Names<'n> {
    in_order: Vec<&'n str>,
    all: HashSet<&'n str>,
}

impl<'n> Names<'n> {
    fn add(&mut self, name: &'n str) {
        self.in_order.push(name);
        self.all.insert(name);
    }
}

/// Reports unknown tools in the workers of the projects that are read completely. `skipped`: the tools that were not
/// loaded, with their project.
pub(super) fn report_unknown_worker_tools(
    load: &mut Load,
    skipped: &[(Arc<Path>, ToolKind, String)],
    whole: &HashSet<&Path>,
) {
    if load.workers.is_empty() {
        return;
    }
    let mut by_root: HashMap<&Path, (Names, Names)> =
        whole.iter().map(|root| (*root, Default::default())).collect();
    let loaded = load.tools.iter().filter_map(|loaded| {
        let tool = &loaded.tool;
        Some((load.roots.get(&tool.source)?, tool.kind, &tool.name.value))
    });
    for (root, kind, name) in loaded.chain(skipped.iter().map(|(root, kind, name)| (root, *kind, name))) {
        let Some((normal, exit)) = by_root.get_mut(&**root) else { continue };
        match kind {
            ToolKind::Normal => normal.add(name),
            ToolKind::Exit => exit.add(name),
        }
    }
    let servers = &load.mcp_servers;
    let own = load.dialects.iter().map(|dialect| dialect.name.value.as_str());
    let dialects: Vec<&str> = own.chain(DIALECTS).collect();
    for worker in &mut load.workers {
        let Some(source) = worker.source else { continue };
        let root = load.roots.get(&source).and_then(|root| by_root.get(&**root));
        let Some((normal, exit)) = root else { continue };
        if let Some(Spanned { value: name, span }) = &worker.dialect
            && !dialects.contains(&name.as_str())
        {
            let at = Location { source, span: *span };
            let message = format!("unknown dialect `{name}` in worker `{}`", worker.name.value);
            load.findings.push(unknown_name(at, message, name, dialects.iter().copied(), str::to_owned));
            worker.valid = false;
        }
        let lists = [(&worker.tools, normal, exit, "tool"), (&worker.exit_tools, exit, normal, "exit tool")];
        for (listed, known, other, what) in lists {
            // The tools of an MCP server are not known here.
            let is_remote =
                |name: &str| what == "tool" && servers.iter().any(|server| server.is_named_by(name));
            let is_unknown =
                |name: &&Spanned<String>| !known.all.contains(name.value.as_str()) && !is_remote(&name.value);
            for name in listed.iter().flatten().filter(is_unknown) {
                let Spanned { value: name, span } = name;
                let at = Location { source, span: *span };
                let message = format!("unknown {what} `{name}` in worker `{}`", worker.name.value);
                let is_other = other.all.contains(name.as_str());
                let similar = known.in_order.iter().copied().filter(|_| !is_other);
                let finding = unknown_name(at, message, name, similar, quoted);
                load.findings.push(match (is_other, what) {
                    (true, "tool") => finding.labelled("belongs in `:exit-tools`"),
                    (true, _) => finding.labelled("belongs in `:tools`"),
                    (false, _) => finding,
                });
                worker.valid = false;
            }
        }
    }
}
