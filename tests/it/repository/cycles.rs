//! The files of a crate do not import each other in cycles.

use std::collections::BTreeMap;
use std::path::Path;

use super::architecture::{CRATES, code_lines, folder, sources};

/// The path of a module or an item in its crate.
type ItemPath = Vec<String>;

/// Returns the module of a source file. `path` is relative to `src`.
fn module_of(path: &Path) -> ItemPath {
    let name = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    let mut names: ItemPath = path.with_extension("").iter().map(name).collect();
    names.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
    names
}

/// Returns the items of the crate that the code of `module` names, also through imported names: `rules::x::check` after
/// `use super::rules`.
fn named_items(module: &[String], text: &str) -> Vec<ItemPath> {
    let code = code_lines(text).collect::<Vec<_>>().join("\n");
    let mut items = Vec::new();
    for start in ["crate::", "self::", "super::"] {
        for at in names_at(&code, start) {
            let tree = code[at..].trim_start_matches(start);
            let ups = (code.len() - at - tree.len()) / start.len();
            let base = match start {
                "crate::" => &[],
                "self::" => module,
                _ => &module[..module.len().saturating_sub(ups)],
            };
            add_leaves(base, tree, &mut items);
        }
    }
    for imported in items.clone() {
        let Some(name) = imported.last().filter(|name| *name != "self") else { continue };
        let start = format!("{name}::");
        for at in names_at(&code, &start) {
            add_leaves(&imported, &code[at + start.len()..], &mut items);
        }
    }
    items
}

/// Returns the places where a path begins with `start`.
fn names_at(code: &str, start: &str) -> impl Iterator<Item = usize> {
    code.match_indices(start)
        .map(|(at, _)| at)
        .filter(|at| !code[..*at].ends_with(|before: char| before.is_alphanumeric() || "_:".contains(before)))
}

/// Adds the leaves of an import tree: `a::b` and `a::c::d` of `a::{b, c::d}`.
fn add_leaves(base: &[String], tree: &str, leaves: &mut Vec<ItemPath>) {
    let (mut path, mut name) = (base.to_vec(), String::new());
    // The lengths of the paths before the open groups.
    let mut groups = Vec::new();
    for c in tree.chars() {
        match c {
            ':' if !name.is_empty() => path.push(std::mem::take(&mut name)),
            ':' | ' ' | '\n' => {}
            '{' if name.is_empty() => groups.push(path.len()),
            _ if c.is_alphanumeric() || c == '_' => name.push(c),
            _ => {
                let Some(length) = groups.last() else { break };
                if !name.is_empty() {
                    leaves.push(path.iter().cloned().chain([std::mem::take(&mut name)]).collect());
                }
                path.truncate(*length);
                if c == '}' {
                    groups.pop();
                    path.truncate(groups.last().copied().unwrap_or(base.len()));
                }
                if groups.is_empty() {
                    return;
                }
            }
        }
    }
    path.extend((!name.is_empty()).then_some(name));
    leaves.push(path);
}

#[test]
fn import_trees_are_expanded() {
    let module = ["a".to_owned(), "b".to_owned()];
    for (code, expected) in [
        ("use crate::x::{Y, z::{self, W},\n q};", &["x::Y", "x::z::self", "x::z::W", "x::q"][..]),
        ("use super::c::D;", &["a::c::D"]),
        ("use super::super::{text, x::Y};", &["text", "x::Y"]),
        ("pub use self::c::D;", &["a::b::c::D"]),
        ("fn f() -> crate::x::Y {", &["x::Y"]),
        ("use crate::x::*;", &["x"]),
        ("// crate::x\ndeftool_super::y", &[]),
        ("use super::rules;\nrules::x::check();", &["a::rules", "a::rules::x::check"]),
        ("use super::rules;\nother::rules::x::check();", &["a::rules"]),
    ] {
        let found: Vec<String> = named_items(&module, code).iter().map(|path| path.join("::")).collect();
        assert_eq!(found, expected, "{code}");
    }
}

#[test]
fn files_do_not_import_each_other_in_cycles() {
    let mut cycles = Vec::new();
    for (name, _) in CRATES {
        let src = folder(name).join("src");
        let files: BTreeMap<ItemPath, String> = sources(name)
            .into_iter()
            .map(|source| (module_of(source.path.strip_prefix(&src).unwrap()), source.text))
            .collect();
        let mut imports: BTreeMap<&ItemPath, Vec<&ItemPath>> = BTreeMap::new();
        for (module, text) in &files {
            for item in named_items(module, text) {
                let home = (1..=item.len()).rev().find_map(|length| files.get_key_value(&item[..length]));
                if let Some((home, _)) = home.filter(|(home, _)| *home != module) {
                    imports.entry(module).or_default().push(home);
                }
            }
        }
        // Without cycles, files that import none of the remaining files can be removed until none is left.
        let mut left: Vec<&ItemPath> = files.keys().collect();
        loop {
            let is_free = |module: &&ItemPath| {
                !imports.get(module).is_some_and(|homes| homes.iter().any(|home| left.contains(home)))
            };
            let free: Vec<&ItemPath> = left.iter().copied().filter(is_free).collect();
            if free.is_empty() {
                break;
            }
            left.retain(|module| !free.contains(module));
        }
        let left: Vec<String> = left.iter().map(|module| module.join("::")).collect();
        if !left.is_empty() {
            cycles.push(format!("{name}: {}", left.join(", ")));
        }
    }
    assert!(cycles.is_empty(), "these files form cycles or import from one:\n{}", cycles.join("\n"));
}

/// The parts of the command from the lowest to the highest layer.
const CLI: [&str; 7] = ["terminal", "outcome", "options", "project", "worker", "serve", "commands"];

#[test]
fn parts_of_the_command_import_only_lower_ones() {
    let height = |path: &[String]| CLI.iter().position(|part| path.get(1).is_some_and(|name| name == part));
    let mut count = 0;
    for source in sources("") {
        let module = module_of(source.path.strip_prefix(folder("").join("src")).unwrap());
        if module.first().is_none_or(|name| name != "cli") || module.len() == 1 {
            continue;
        }
        let own = height(&module).unwrap_or_else(|| panic!("{} is in no listed part", source.path.display()));
        for item in named_items(&module, &source.text) {
            let is_higher = item[0] == "cli" && height(&item).is_some_and(|other| other > own);
            assert!(!is_higher, "{} imports {}", source.path.display(), item.join("::"));
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
}
