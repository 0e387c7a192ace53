//! Checks of names across files: duplicates, and unknown tools in workers.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::spec::{FileKind, Tool, ToolKind};
use deftool_lang::text::{Location, Spanned};

use crate::model::Load;
use crate::rules;

/// Reports duplicate names of tools and workers in a project.
pub(super) fn report_duplicates(load: &mut Load) {
    report_duplicate_tools(load);
    let mut first: HashMap<(Option<&Path>, String), Location> = HashMap::new();
    for worker in &mut load.workers {
        let Some(source) = worker.source else { continue };
        let here = Location { source, span: worker.name.span };
        let name = &worker.name.value;
        match first.entry((load.roots.get(&source).map(AsRef::as_ref), name.clone())) {
            Entry::Vacant(vacant) => drop(vacant.insert(here)),
            Entry::Occupied(other) => {
                let other = *other.get();
                load.findings.push(rules::duplicate_name::finding(here, "worker", name, other, None));
                worker.valid = false;
            }
        }
    }
}

/// Reports duplicate tools. In an Emacs Lisp file, which is evaluated in order, the later definition of a name and
/// category replaces the earlier one. Everywhere else the first one is kept.
fn report_duplicate_tools(load: &mut Load) {
    let mut first: HashMap<(Option<usize>, &str), (usize, &Tool)> = HashMap::new();
    let (mut losers, mut findings) = (Vec::new(), Vec::new());
    for (index, tool) in load.tools.iter().map(|loaded| &loaded.tool).enumerate() {
        let name = &tool.name.value;
        let mut entry = match first.entry((load.project_of(tool.source), name)) {
            Entry::Vacant(vacant) => {
                vacant.insert((index, tool));
                continue;
            }
            Entry::Occupied(entry) => entry,
        };
        let (other_index, other) = *entry.get();
        let name_of = |tool: &Tool| Location { source: tool.source, span: tool.name.span };
        let (here, there) = (name_of(tool), name_of(other));
        let (mine, theirs) = (category_of(tool), category_of(other));
        let file = load.sources.get(tool.source).map(|file| FileKind::of_name(&file.name));
        let is_code = file == Some(FileKind::EmacsLisp) && tool.source == other.source;
        if is_code && mine == theirs {
            entry.insert((index, tool));
            losers.push(other_index);
            findings.push(rules::replaced_tool::finding(here, name, there));
        } else {
            let categories = (mine != theirs).then_some((theirs, mine));
            losers.push(index);
            findings.push(rules::duplicate_name::finding(here, "tool", name, there, categories));
        }
    }
    load.findings.append(&mut findings);
    for loser in losers {
        if let Some(loser) = load.tools.get_mut(loser) {
            Arc::make_mut(&mut loser.tool).valid = false;
        }
    }
}

fn category_of(tool: &Tool) -> &str {
    tool.category.as_ref().map_or("misc", |name| name.value.as_str())
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

/// Reports unknown tools in the workers of the projects that are read completely.
pub(super) fn report_unknown_worker_tools(load: &mut Load, whole: &HashSet<&Path>) {
    if load.workers.is_empty() {
        return;
    }
    let mut by_root: HashMap<&Path, (Names, Names)> =
        whole.iter().map(|root| (*root, Default::default())).collect();
    for tool in load.tools.iter().map(|loaded| &loaded.tool) {
        let root = load.roots.get(&tool.source).and_then(|root| by_root.get_mut(&**root));
        let Some((normal, exit)) = root else { continue };
        match tool.kind {
            ToolKind::Normal => normal.add(&tool.name.value),
            ToolKind::Exit => exit.add(&tool.name.value),
        }
    }
    for worker in &mut load.workers {
        let Some(source) = worker.source else { continue };
        let root = load.roots.get(&source).and_then(|root| by_root.get(&**root));
        let Some((normal, exit)) = root else { continue };
        let lists = [(&worker.tools, normal, exit, "tool"), (&worker.exit_tools, exit, normal, "exit tool")];
        for (listed, known, other, what) in lists {
            let is_unknown = |name: &&Spanned<String>| !known.all.contains(name.value.as_str());
            for name in listed.iter().flatten().filter(is_unknown) {
                let finding = rules::unknown_worker_tool::finding(
                    Location { source, span: name.span },
                    &worker.name.value,
                    name,
                    what,
                    &known.in_order,
                    other.all.contains(name.value.as_str()),
                );
                load.findings.push(finding);
                worker.valid = false;
            }
        }
    }
}
